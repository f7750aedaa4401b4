"""A source's schema takes a column away.

What is refused leaves everything as it was, and `full_refresh` begins a new landing once.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from airflow_provider_streams.errors import LandingMismatch
from airflow_provider_streams.model.schema.payload import Json
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.testing.fake import FakeSource
from tests.unit.windows.plan.test_payload_decoding import minute, pinned, rows
from tests.unit.windows.run.test_older_plans import of

ASKED = Json("n long")
"""What the task says, always; the system tells more or less than that."""
KEY = FakeSource("numbers").key


def span(*numbers):
    return Window(minute(numbers[0]).start, minute(numbers[-1]).end)


def columns(world, number):
    return {name for name in of(world, number)[0] if not name.startswith("_")}


def landings(world):
    kept = world.journal.landing(KEY, "reader")
    return None if kept is None else kept.generation


@pytest.mark.parametrize("basis", ["publish", "chained"])
def test_a_fresh_plan_that_the_table_cannot_take_leaves_the_window_as_it_was(world, told, basis):
    world.read(minute(0), value=ASKED, basis=basis)
    before, plan = of(world, 0), pinned(world, 0)
    told("n long, other string")
    for dry_run in (False, True, False):
        wanted = r"shard is missing.*its window was not planned, and stays as it was"
        with pytest.raises(LandingMismatch, match=wanted) as found:
            world.read(minute(0), value=ASKED, basis=basis, replan=True, dry_run=dry_run)
        assert found.value.foreseeable, "doctor makes the same check"
        assert world.states(span(0)) == ["covered"]
        assert (pinned(world, 0), of(world, 0)) == (plan, before)
    world.read(minute(0), value=ASKED, basis=basis)
    assert of(world, 0) == before
    told("n long, shard string, other string")
    world.read(minute(0), value=ASKED, basis=basis, replan=True)
    assert columns(world, 0) == {"n", "shard", "other"}


def test_a_window_that_was_never_planned_is_planned_once_its_rows_fit(world, told):
    world.read(minute(0), value=ASKED)
    told("n long")
    for _ in range(2):
        with pytest.raises(LandingMismatch, match="shard is missing"):
            world.read(minute(1), value=ASKED)
        assert pinned(world, 1) is None
    told("n long, shard string")
    world.read(minute(1), value=ASKED)
    assert world.states(span(0, 1)) == ["covered", "covered"]


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_backfill_refuses_such_windows_alone(world, told, dry_run):
    world.read(minute(0), value=ASKED)
    for number in (1, 3):
        with suppress(LandingMismatch):
            world.read(minute(number), value=ASKED, dry_run=True)
    told("n long")
    preview, outcome = world.backfill(span(0, 3), value=ASKED, dry_run=dry_run)
    failed = [(item.window, type(item.error).__name__) for item in preview.having("failed")]
    assert failed == [(minute(2), "LandingMismatch")]
    assert [pinned(world, number) is None for number in range(4)] == [False, False, True, False]
    if not dry_run:
        assert [str(one) for one in outcome.covered] == [str(minute(1)), str(minute(3))]
        assert world.states(span(0, 3)) == ["covered", "covered", "failed", "covered"]


def test_a_backfill_that_plans_again_spoils_no_covered_window(world, told):
    world.backfill(span(0, 2), value=ASKED)
    plans, before = [pinned(world, number) for number in range(3)], rows(world)
    told("n long")
    _, outcome = world.backfill(span(0, 2), value=ASKED, select="all", replan=True)
    assert {text.partition(":")[0] for text in outcome.by_window().values()} == {"LandingMismatch"}
    assert len(outcome.failures) == 3
    assert [pinned(world, number) for number in range(3)] == plans
    assert world.states(span(0, 2)) == ["covered"] * 3
    assert rows(world) == before


@pytest.mark.parametrize("overrides", [{}, {"replan": True}])
def test_landed_again_the_table_has_the_present_columns(world, told, overrides):
    world.read(minute(0), value=ASKED)
    told("n long, other string")
    with pytest.raises(LandingMismatch, match="full_refresh=True"):
        world.read(minute(1), value=ASKED)
    world.read(minute(1), value=ASKED, full_refresh=True, **overrides)
    assert world.states(span(0, 1)) == ["missing", "covered"]
    assert world.windows() == [minute(1)]
    world.read(minute(0), value=ASKED)
    assert [columns(world, number) for number in (0, 1)] == [{"n", "other"}] * 2
    assert world.states(span(0, 1)) == ["covered", "covered"]


def test_a_task_that_always_lands_again_does_so_once_for_each_change(world, told):
    world.read(minute(0), value=ASKED, full_refresh=True)
    first = landings(world)
    for number in (0, 1):
        world.read(minute(number), value=ASKED, full_refresh=True)
    told("n long, shard string, other string")  # it grows: nothing need give way, for older plans neither
    for number in (2, 0, 1):
        world.read(minute(number), value=ASKED, full_refresh=True)
    assert landings(world) == first
    told("n long, other string")
    for number in (3, 0, 1, 2, 3, 0):
        world.read(minute(number), value=ASKED, full_refresh=True)
    assert landings(world) == first + 1
    assert world.states(span(0, 3)) == ["covered"] * 4
    assert [columns(world, number) for number in range(4)] == [{"n", "other"}] * 4


def test_a_backfill_lands_again_what_the_table_cannot_take_and_all_the_rest(world, told):
    world.backfill(span(0, 2), value=ASKED)
    first = landings(world)
    told("n int")
    for _ in range(2):
        _, outcome = world.backfill(span(0, 4), value=ASKED, full_refresh=True)
        assert not outcome.failures
        assert world.states(span(0, 4)) == ["covered"] * 5
        assert landings(world) == first + 1
    assert [columns(world, number) for number in range(5)] == [{"n"}] * 5


def test_a_plan_that_is_pinned_already_is_landed_again_too(world, told):
    """It was pinned before the table got a column that its rows have otherwise."""
    told("n long")
    world.read(minute(0), value=ASKED)
    told("n long, shard int")
    world.read(minute(1), value=ASKED, dry_run=True)
    told("n long, shard string")
    world.read(minute(2), value=ASKED)
    with pytest.raises(LandingMismatch, match=r"shard is int instead of string.*replan=True.*full_refresh=True"):
        world.read(minute(1), value=ASKED)
    world.read(minute(1), value=ASKED, full_refresh=True)
    world.read(minute(0), value=ASKED)
    assert {type(row["shard"]) for number in (0, 1) for row in of(world, number)} == {str}


def test_a_dry_run_of_landing_again_changes_nothing(world, told):
    world.read(minute(0), value=ASKED)
    plan, landing = pinned(world, 0), landings(world)
    told("n long")
    world.read(minute(0), value=ASKED, replan=True, full_refresh=True, dry_run=True)
    world.backfill(span(0, 1), value=ASKED, select="all", replan=True, full_refresh=True, dry_run=True)
    assert (pinned(world, 0), landings(world), world.states(span(0))) == (plan, landing, ["covered"])


def test_what_is_landed_nowhere_fits(world, told):
    world.read(minute(0), value=ASKED, sink=None)
    told("n int")
    assert world.read(minute(1), value=ASKED, sink=None).receipt.rows == 120


def test_windows_of_a_chain_are_landed_again_and_go_on_as_they_did(world, told):
    how = {"value": ASKED, "basis": "chained"}
    world.read(minute(0), **how)
    world.hold(events=700, records=1)
    told("n long")
    with pytest.raises(LandingMismatch, match="shard is missing"):
        world.read(minute(1), **how)
    for number in (1, 0, 1):
        world.read(minute(number), full_refresh=True, **how)
    assert pinned(world, 1).start_cut == pinned(world, 0).end_cut
    assert [columns(world, number) for number in (0, 1)] == [{"n"}] * 2
    assert len(rows(world)) == 2 * 700
