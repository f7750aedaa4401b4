"""What is decided from facts alone, for a run and its dry run alike."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_streams import ParquetSink
from airflow_provider_streams.errors import LandingMismatch, SinkError, TableOwnedByOther, WindowNotAligned
from airflow_provider_streams.journal.landings import StoredLanding
from airflow_provider_streams.model.schema.payload import Json
from airflow_provider_streams.model.sinks.custom_sink import CustomSink
from airflow_provider_streams.model.sinks.landing import Landing, TableMark, TableState
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.model.window.window_schedule import parse_schedule
from airflow_provider_streams.testing.fake import EPOCH, FakeSource
from airflow_provider_streams.windows.claim.decision import Facts, TableFacts, decide
from airflow_provider_streams.windows.claim.landing_request import LandingRequest, new_landing
from airflow_provider_streams.windows.claim.overrides import Overrides
from tests.unit.windows.conftest import MINUTE

SOURCE = FakeSource("numbers")
SINK = ParquetSink("/lake")
REQUEST = LandingRequest(SOURCE, "reader", Landing(SINK), "publish", parse_schedule("1m"))
OTHER = replace(REQUEST, landing=Landing(SINK, columns=("value",)))
REFRESH = Overrides(full_refresh=True)
ABSENT = TableFacts(is_seen=True)
UNSEEN = TableFacts(failure=SinkError("/lake", "no answer"))
COLUMNS = (("value", "binary"),)


def minutes(start, end):
    return Window(EPOCH + start * MINUTE, EPOCH + end * MINUTE)


WINDOWS = (minutes(0, 1), minutes(1, 2))
STORED = StoredLanding(7, 3, new_landing(REQUEST).landing, "ours", COLUMNS, "1m", "publish")


def table(mark="ours", reader="reader", windows=WINDOWS):
    return TableFacts(TableState(TableMark(mark, SOURCE.key, reader), frozenset(windows)), is_seen=True)


def facts(request=REQUEST, overrides=None, **known):
    known = {"stored": STORED, "table": table(), "is_covered": True, "is_landed": True, "holds_rows": True, **known}
    return Facts(request, WINDOWS, overrides or Overrides(), **known)


def fresh(request=REQUEST, **known):
    """Of a reader under whose landing nothing landed."""
    known = {"table": ABSENT, "is_covered": False, "is_landed": False, "holds_rows": False, **known}
    return facts(request, **known)


def test_a_reader_begins():
    decision = decide(fresh(stored=None))
    assert (decision.change, decision.is_begun, decision.columns) == ("begin", False, None)
    assert decision.landing.landing == STORED.landing


def test_a_reader_keeps_its_landing_and_is_held_to_its_table():
    decision = decide(facts())
    assert (decision.change, decision.landing, decision.held) == ("keep", STORED, table().state)
    assert (decision.terms.mark, decision.terms.columns) == (table().state.mark, COLUMNS)


def test_a_landing_is_completed_with_what_was_not_known_of_it():
    decision = decide(facts(stored=replace(STORED, window_schedule=None, basis=None)))
    assert (decision.change, decision.landing) == ("keep", STORED)


def test_a_reader_with_a_table_that_names_none_proves_only():
    assert decide(facts(replace(REQUEST, landing=Landing()))).change == "prove"


def test_a_reader_that_only_proved_begins_to_land():
    proved = replace(STORED, landing=Landing().to_json())
    assert decide(facts(stored=proved, table=ABSENT)).change == "begin"


@pytest.mark.parametrize(
    ("known", "change"),
    [
        ({}, "correct"),
        ({"table": table(windows=())}, "correct"),
        ({"table": table("another", windows=WINDOWS)}, "correct"),
        ({"table": table()}, None),
        ({"table": UNSEEN}, None),
        ({"is_landed": True}, None),
    ],
    ids=["no table", "an empty table", "another table", "its own rows", "an unseen table", "a run that may land"],
)
def test_what_failed_before_anything_landed_is_corrected(known, change):
    if change is None:
        with pytest.raises(LandingMismatch, match="columns"):
            decide(fresh(OTHER, **known))
    else:
        decision = decide(fresh(OTHER, **known))
        assert (decision.change, decision.terms.mark.id, decision.columns) == (change, STORED.table_id, None)


@pytest.mark.parametrize("covered", [WINDOWS, WINDOWS[:1]])
def test_bytes_become_columns_while_no_row_landed(covered):
    typed = replace(REQUEST, source=FakeSource("numbers", value=Json("n long")))
    known = facts(typed, holds_rows=False, covered=covered)
    if covered == WINDOWS:
        decision = decide(known)
        assert (decision.change, decision.needs_room) == ("replace_empty", True)
        assert decision.terms.earlier == (STORED.table_id,)
    else:  # a task may have died after it landed
        with pytest.raises(LandingMismatch):
            decide(known)


def test_a_full_refresh_begins_with_room_for_its_rows():
    decision = decide(facts(OTHER, REFRESH))
    assert (decision.change, decision.needs_room, decision.terms.earlier) == ("begin", True, (STORED.table_id,))


def test_a_full_refresh_of_the_same_sets_aside_what_is_found_and_nothing_later():
    decision = decide(facts(overrides=REFRESH, table=table("a copy")))
    assert (decision.change, decision.held.windows) == ("keep", frozenset())
    assert (decision.terms.earlier, decision.terms.set_aside) == (("a copy",), False)


def test_a_table_that_is_gone_loses_its_windows():
    decision = decide(facts(table=ABSENT, covered=WINDOWS))
    assert (decision.change, decision.lost, decision.terms.earlier) == ("begin", WINDOWS, ())


@pytest.mark.parametrize("found", [table("a copy"), table(reader="another")], ids=["a copy", "another reader's"])
def test_a_covered_reader_is_refused_a_table_that_is_not_its_own(found):
    with pytest.raises(TableOwnedByOther):
        decide(facts(table=found))


@pytest.mark.parametrize(
    ("known", "request_"),
    [(facts, REQUEST), (facts, OTHER), (fresh, OTHER)],
    ids=["the same", "other columns", "before anything landed"],
)
def test_not_even_a_full_refresh_takes_another_readers_table(known, request_):
    with pytest.raises(TableOwnedByOther, match="belongs to reader 'another'"):
        decide(known(request_, overrides=REFRESH, table=table(reader="another")))


def test_a_run_that_must_see_its_table_fails_where_it_cannot():
    assert decide(facts(table=UNSEEN)).failure is UNSEEN.failure
    assert decide(fresh(table=UNSEEN)).failure is None
    assert decide(fresh(table=UNSEEN, overrides=REFRESH)).failure is UNSEEN.failure
    assert decide(facts(table=TableFacts())).failure is None


# A dry run and its run


def test_a_dry_run_of_a_proof_is_refused_no_more_than_the_proof(world):
    world.read(minutes(0, 10), window_schedule="10m")
    with pytest.raises(WindowNotAligned):
        world.read(minutes(10, 11), dry_run=True)
    world.read(minutes(10, 11), sink=None, dry_run=True)
    assert world.read(minutes(10, 11), sink=None).receipt.rows


def test_windows_without_rows_are_not_in_the_way_of_columns_that_begin(world):
    world.read(minutes(-3, -1))
    typed = {"value": Json("n long")}
    world.read(minutes(-2, 0), dry_run=True, **typed)
    world.read(minutes(-2, 0), **typed)
    assert world.states(minutes(-2, 0))[-1] == "covered"


def test_what_was_only_proved_is_not_in_the_way_of_a_table_that_cannot_tell(world, tmp_path):
    world.read(minutes(0, 2), sink=None)
    own = CustomSink("tests.spark.own_files_writer:ListedFiles", str(tmp_path / "own"))
    world.sink = lambda _name="lake": own
    world.read(minutes(1, 3), dry_run=True)
    assert world.states(minutes(0, 2))[0] == "covered"
