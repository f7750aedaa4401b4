"""Chained windows: which events outside its time a window reads, and which window may replace another."""

from __future__ import annotations

from datetime import timedelta

import pytest

from airflow_provider_streams.errors import ChainOutOfOrder, PlanMismatch, WindowNotReady
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.testing.fake import EPOCH, FakeSource

MINUTE = timedelta(minutes=1)
MINUTE_OF_ROWS = 120
KEY = FakeSource("numbers").key


def minutes(start, end):
    return Window(EPOCH + start * MINUTE, EPOCH + end * MINUTE)


class SparkDied(Exception):
    pass


def chained(world, start, end, events, **how):
    world.hold(events=events)
    return world.read(minutes(start, end), basis="chained", **how)


def fail(world, start, end, events, **how):
    def die(_spec):
        raise SparkDied

    world.before = die
    with pytest.raises(SparkDied):
        chained(world, start, end, events, **how)
    world.before = lambda _spec: None


def coverage(world, start, end):
    span = minutes(start, end)
    return world.journal.coverage(KEY, "reader", span.start, span.end, MINUTE)


def once(values):
    return set(values.values()) == {1}


def test_a_window_that_was_never_planned_is_read_with_the_next_one(world):
    chained(world, 0, 1, 60)
    chained(world, 3, 4, 240)
    assert (len(world.values()), once(world.values())) == (4 * MINUTE_OF_ROWS, True)
    seen = coverage(world, 0, 4)
    assert seen.is_complete
    assert [(item.window, item.cause, item.rows) for item in seen.windows] == [
        (minutes(0, 1), "", MINUTE_OF_ROWS),
        (minutes(1, 3), f"read with {minutes(3, 4)}", 0),
        (minutes(3, 4), "", 3 * MINUTE_OF_ROWS),
    ]
    with pytest.raises(ChainOutOfOrder):
        chained(world, 1, 2, 240)


def test_a_window_that_gave_up_its_place_is_read_with_the_next_one(world):
    chained(world, 0, 1, 60)
    fail(world, 1, 2, 120)
    fail(world, 2, 3, 180, replan=True)
    assert [item.state for item in coverage(world, 0, 3).windows] == ["covered", "failed", "failed"]
    chained(world, 2, 3, 180)
    assert coverage(world, 0, 3).is_complete
    assert (len(world.values()), once(world.values())) == (3 * MINUTE_OF_ROWS, True)


def test_a_dry_run_takes_no_window_s_place(world):
    chained(world, 0, 1, 60)
    fail(world, 1, 2, 120)
    plan = world.journal.pinned(KEY, "reader", minutes(1, 2))
    world.hold(events=180)
    world.read(minutes(2, 3), basis="chained", replan=True, dry_run=True)
    assert (world.shown.window, world.shown.start_cut) == (minutes(2, 3), plan.start_cut)
    assert world.journal.pinned(KEY, "reader", minutes(1, 2)) == plan
    chained(world, 1, 2, 120)


def test_nothing_is_taken_out_of_coverage_because_the_table_has_no_folder_of_it(world, caplog):
    chained(world, 0, 1, 60)
    chained(world, 2, 3, 180)
    chained(world, 0, 1, 180)
    assert coverage(world, 0, 3).is_complete
    assert "no longer in" not in caplog.text


def test_a_window_that_is_being_read_keeps_its_place(world):
    chained(world, 0, 1, 60)
    refused = []

    def the_next_run(_spec):
        world.before = lambda _: None
        with pytest.raises(WindowNotReady, match="is being read"):
            chained(world, 2, 3, 240, replan=True)
        refused.append(True)

    world.hold(events=120)
    world.before = the_next_run
    world.read(minutes(1, 2), basis="chained")
    chained(world, 2, 3, 240)
    assert refused
    assert (len(world.values()), once(world.values())) == (4 * MINUTE_OF_ROWS, True)


def test_a_run_that_was_taken_for_dead_does_not_cover_what_another_window_has_read(world):
    """It lives on, while a second run of its window fails, and a later window takes its place."""
    chained(world, 0, 1, 60)

    def meanwhile(_spec):
        fail(world, 1, 2, 120)
        chained(world, 2, 3, 180, replan=True)

    world.hold(events=120)
    world.before = meanwhile
    with pytest.raises(PlanMismatch, match="took the place"):
        world.read(minutes(1, 2), basis="chained")
    seen = coverage(world, 0, 3)
    assert [(item.window, item.rows) for item in seen.windows] == [
        (minutes(0, 1), MINUTE_OF_ROWS),
        (minutes(1, 2), 0),
        (minutes(2, 3), 2 * MINUTE_OF_ROWS),
    ]
    (dead,) = [run for run in world.journal.runs(KEY, "reader", minutes(1, 2)) if run.error_type == "PlanMismatch"]
    assert "Remove this window's rows" in dead.error_message
