"""Quarantined events become rows after a fix: each exactly once, whatever is killed in between."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections import Counter
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from airflow_provider_streams import Window
from airflow_provider_streams.errors import (
    DecodeError,
    InvalidRequest,
    LandingMismatch,
    PlanMismatch,
    SinkError,
    WindowNotReady,
)
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.lake.parquet.table import ParquetTable
from airflow_provider_streams.model.plan.row_filter import FieldFilter, Stored
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy
from airflow_provider_streams.model.schema.decoding import ANY_VERSION, Decoding, RecordTypes, WriterSchema
from airflow_provider_streams.model.schema.payload import Json, Utf8
from airflow_provider_streams.model.schema.types import Simple
from airflow_provider_streams.model.sinks.landing import TableMark, TableTerms
from airflow_provider_streams.spark.quarantine.replay import ParquetReplay, Redecoding
from airflow_provider_streams.spark.quarantine.window_quarantine import WindowQuarantine
from airflow_provider_streams.testing.fake import EPOCH, FakeSource, FakeSystem
from airflow_provider_streams.windows.after_landing.quarantine_replay import Replayer, quarantined_windows
from airflow_provider_streams.windows.claim.landing_defaults import stored_landing
from airflow_provider_streams.windows.plan.payload_decoding import decoding_now, with_earlier
from airflow_provider_streams.windows.run.outcome import Outcome, undecodable_sentence
from airflow_provider_streams.windows.run.summary import summary_of_window

MINUTE = timedelta(minutes=1)
REPLAYING = TaskInstanceKey("cli", "me", "replay", 1)
TORN, BARE = 20, 6
STRICT = Json("n long, shard string not null")
FIXED = Json("n long, shard string")
WIDER = Json("n long, shard string, day string")
KEY = FakeSource().key


def minute(number: int) -> Window:
    return Window(EPOCH + number * MINUTE, EPOCH + (number + 1) * MINUTE)


def test_a_failed_replan_leaves_a_replayed_window_covered_by_the_replays_plan(typed):
    typed.read(minute(0), value=STRICT)
    replay(typed, minute(0))
    before = typed.journal.pinned(KEY, "reader", minute(0))
    with pytest.raises(DecodeError):
        typed.read(minute(0), value=FIXED, replan=True, undecodable=DecodeErrorPolicy("fail"))
    check(typed, minute(0), is_bad=is_torn)
    assert typed.journal.pinned(KEY, "reader", minute(0)) == before
    typed.read(minute(0), value=FIXED)
    check(typed, minute(0), is_bad=is_torn)


@pytest.fixture
def typed(world):
    """One of 20 events is torn, and stays undecodable; one of 6 has no `shard`, and is not once that may be."""
    world.hold(events=600, records=1, torn_every=TORN, bare_every=BARE)
    return world


def replay(world, window, value=FIXED, reader="reader"):
    source = FakeSource(value=value)
    return Replayer(world.place(source), source, reader, REPLAYING).replay(window)


def is_bare(number: int) -> bool:
    return number % BARE == BARE - 1


def is_torn(number: int) -> bool:
    return number % TORN == TORN - 1


def events(window: Window) -> Counter:
    first = (window.start - EPOCH) // timedelta(seconds=1)
    numbers = range(first, first + int(window.length.total_seconds()))
    return Counter((f"numbers-{shard}", number) for shard in range(2) for number in numbers)


def rows(world, window) -> Counter:
    folder = ParquetTable(world.sink().path).folder_of(window)
    found = [row for file in folder.glob("*.parquet") for row in pq.ParquetFile(file).read().to_pylist()]
    assert all(row["n"] == row["_number"] for row in found)
    assert all(row["shard"] in (None, row["_shard"]) for row in found)
    return Counter((row["_shard"], row["n"]) for row in found)


def aside(world, window) -> Counter:
    folder = ParquetTable(world.sink().path).folder_of(window)
    found = [row for file in folder.glob("_quarantine/*") for row in pq.ParquetFile(file).read().to_pylist()]
    return Counter((row["shard"], row["number"]) for row in found)


def state(world, window):
    (item,) = world.journal.coverage(KEY, "reader", window.start, window.end).windows
    return item


def check(world, window, *, is_bad):
    """Each event once: a row, or aside; and the journal says so."""
    kept = aside(world, window)
    assert rows(world, window) + kept == events(window)
    assert kept == Counter({event: 1 for event in events(window) if is_bad(event[1])})
    item = state(world, window)
    assert (item.state, item.rows, item.quarantined) == ("covered", rows(world, window).total(), kept.total())


def bad_before(number: int) -> bool:
    return is_bare(number) or is_torn(number)


def test_a_window_with_bad_events_is_covered_and_counts_them(typed):
    typed.read(minute(0), value=STRICT)
    typed.hold(torn_every=0)
    typed.read(minute(1), value=FIXED, reader="other", sink="other")
    check(typed, minute(0), is_bad=bad_before)
    assert [item.window for item in quarantined_windows(typed.journal, KEY, "reader", minute(0))] == [minute(0)]
    assert quarantined_windows(typed.journal, KEY, "other", minute(1)) == []


def test_what_was_not_decoded_is_said_in_summaries(typed):
    landed = typed.read(minute(0), value=STRICT)
    bad = aside(typed, minute(0)).total()
    plan = typed.journal.pinned(KEY, "reader", minute(0))
    said = summary_of_window(plan, landed, typed.sink())
    assert (said["quarantined"], said["dropped"], said["rows"]) == (bad, 0, 120 - bad)
    sentence = undecodable_sentence(minute(0), landed.receipt, typed.sink())
    assert f"{bad} quarantined" in sentence
    assert typed.sink().asset_uri in sentence
    dropped = typed.read(minute(1), value=STRICT, undecodable=DecodeErrorPolicy("drop"))
    assert undecodable_sentence(minute(1), dropped.receipt, typed.sink()).endswith(
        "24 dropped: they could not be decoded"
    )
    fine = typed.read(minute(2), value=Utf8(), reader="other", sink="other")
    assert undecodable_sentence(minute(2), fine.receipt, typed.sink()) == ""
    both = Outcome(((None, plan, landed), (None, plan, dropped)))
    assert (
        both.words
        == f"2 windows covered, {240 - 2 * bad} rows ({bad} quarantined and 24 dropped: they could not be decoded)"
    )


def test_a_replay_adds_what_can_be_decoded_now_and_leaves_the_rest(typed):
    typed.read(minute(0), value=STRICT)
    before = rows(typed, minute(0))
    done = replay(typed, minute(0))
    check(typed, minute(0), is_bad=is_torn)
    added = rows(typed, minute(0)) - before
    assert (done.rows, done.left) == (added.total(), aside(typed, minute(0)).total())
    assert done.rows == sum(is_bare(n) and not is_torn(n) for n in range(60)) * 2
    assert stored_landing(typed.journal, KEY, "reader").value == FIXED, "an override"


def test_a_second_replay_does_nothing(typed):
    typed.read(minute(0), value=STRICT)
    replay(typed, minute(0))
    runs = typed.journal.runs(KEY, "reader", minute(0))
    assert replay(typed, minute(0)).rows == 0
    check(typed, minute(0), is_bad=is_torn)
    assert typed.journal.runs(KEY, "reader", minute(0)) == runs


def test_nothing_changes_where_nothing_more_can_be_decoded(typed):
    typed.read(minute(0), value=STRICT)
    before = {path: path.stat().st_ino for path in Path(typed.sink().path).rglob("*")}
    assert replay(typed, minute(0), STRICT).rows == 0
    assert {path: path.stat().st_ino for path in Path(typed.sink().path).rglob("*")} == before
    assert len(typed.journal.runs(KEY, "reader", minute(0))) == 1


def test_a_run_of_the_task_reads_the_plan_of_the_replay_and_lands_the_same_table(typed):
    typed.read(minute(0), value=STRICT)
    replay(typed, minute(0))
    before = rows(typed, minute(0))
    typed.read(minute(0), value=FIXED)
    assert rows(typed, minute(0)) == before
    check(typed, minute(0), is_bad=is_torn)
    with pytest.raises(LandingMismatch, match="values json columns"):
        typed.read(minute(0), value=STRICT)


def test_without_a_replay_a_run_decodes_as_its_plan_says(typed):
    """P1: the same plan, the same rows; also after the fix."""
    typed.read(minute(0), value=STRICT)
    replay(typed, minute(0))
    typed.read(minute(1), value=FIXED)
    check(typed, minute(1), is_bad=is_torn)


def test_the_stream_need_not_hold_the_events_any_more(typed):
    typed.read(minute(0), value=STRICT)
    typed.hold(head=300)
    replay(typed, minute(0))
    check(typed, minute(0), is_bad=is_torn)


def test_columns_may_grow(typed):
    typed.read(minute(0), value=STRICT)
    replay(typed, minute(0), WIDER)
    assert ("day", "string") in typed.journal.landing(KEY, "reader").columns
    check(typed, minute(0), is_bad=is_torn)


@pytest.mark.parametrize("value", [Json("n long"), Json("n string, shard string"), Utf8()])
def test_columns_may_not_go_or_change(typed, value):
    typed.read(minute(0), value=STRICT)
    before = state(typed, minute(0))
    with pytest.raises(LandingMismatch, match=r"shard is missing|n is string instead of bigint"):
        replay(typed, minute(0), value)
    assert state(typed, minute(0)) == before
    check(typed, minute(0), is_bad=bad_before)


def test_rows_of_a_transform_are_none_of_events(typed):
    typed.read(minute(0), value=STRICT, transform="package:function")
    with pytest.raises(InvalidRequest, match=r"again with replan=True"):
        replay(typed, minute(0))


def test_who_landed_nothing_has_no_quarantine(typed):
    with pytest.raises(InvalidRequest, match="has landed nothing yet"):
        replay(typed, minute(0))
    typed.read(minute(0), value=STRICT)
    with pytest.raises(InvalidRequest, match="does not hold"):
        replay(typed, minute(1))
    with pytest.raises(InvalidRequest, match="--value-format"):
        replay(typed, minute(0), None)


def test_a_system_that_decodes_no_payloads_replays_none(typed, monkeypatch):
    """Its source says what values are, and its plans leave them as they are."""
    typed.read(minute(0), value=STRICT)
    plan, pinned = FakeSystem.plan, typed.journal.pinned(KEY, "reader", minute(0))
    monkeypatch.setattr(FakeSystem, "plan", lambda self, request: replace(plan(self, request), decoding=None))
    for lasting in (True, False):
        source = FakeSource(value=FIXED)
        replayer = Replayer(typed.place(source), source, "reader", REPLAYING, lasting=lasting)
        with pytest.raises(InvalidRequest, match=r"numbers: fake does not decode .* can become rows"):
            replayer.replay(minute(0))
    assert typed.journal.pinned(KEY, "reader", minute(0)) == pinned
    assert len(typed.journal.runs(KEY, "reader", minute(0))) == 1
    check(typed, minute(0), is_bad=bad_before)
    monkeypatch.undo()
    replay(typed, minute(0))
    check(typed, minute(0), is_bad=is_torn)


def test_a_window_that_was_planned_again_is_read_first(typed):
    typed.read(minute(0), value=STRICT)
    typed.hold(life="2")
    typed.before = _exit
    with pytest.raises(SystemExit):
        typed.read(minute(0), value=STRICT, replan=True, allow_fewer_rows=True)
    with pytest.raises(PlanMismatch, match="planned again"):
        replay(typed, minute(0))


def _exit(_spec):
    sys.exit()


def test_a_chain_goes_on_after_a_replayed_window(typed):
    for number in range(2):
        typed.hold(events=60 * (number + 1))
        typed.read(minute(number), value=STRICT, basis="chained")
    replay(typed, minute(0))
    typed.hold(events=180)
    typed.read(minute(1), value=FIXED, basis="chained")
    typed.read(minute(2), value=FIXED, basis="chained")
    for number in range(3):
        assert rows(typed, minute(number)) + aside(typed, minute(number)) == events(minute(number))
        assert state(typed, minute(number)).state == "covered"
    with pytest.raises((WindowNotReady, InvalidRequest)):
        typed.read(minute(1), value=FIXED, basis="chained", replan=True)


def test_late_rows_that_were_counted_stay_counted(typed):
    typed.read(minute(0), value=STRICT)
    typed.journal.count_late(state(typed, minute(0)).run.id, 7)
    replay(typed, minute(0))
    assert state(typed, minute(0)).late_rows == 7


@pytest.mark.parametrize(("seconds", "others"), [(60, 0), (30, 4)])
def test_events_of_other_windows_by_their_own_time_stay_aside(typed, seconds, others, caplog):
    """As `event_time="n"` would have it: until they could be decoded, they were kept aside where they were stored."""
    landed = typed.read(minute(0), value=STRICT)
    plan, kept = typed.journal.pinned(KEY, "reader", minute(0)), typed.journal.landing(KEY, "reader")
    with closing(typed.place(FakeSource()).stream.system()) as system:
        changed = replace(plan, decoding=decoding_now(system, FakeSource(value=FIXED), plan))
        by_field = FieldFilter("n", 0, seconds * 1_000_000, "s", Stored("publish_time"))
        redecoding = Redecoding(replace(changed, filter=by_field), landed.receipt, None, kept.columns)
        terms = TableTerms(TableMark(kept.table_id, KEY, "reader"), kept.columns)
        writer = ParquetReplay(typed.sink(), terms, redecoding)
        try:
            found = writer.decode(system).receipt
        finally:
            writer.discard()
    fixed = found.rows - landed.receipt.rows
    assert fixed > 0
    left = found.totals["quarantined"]
    assert left == landed.receipt.totals["quarantined"] - fixed, "each event is a row, or is still counted"
    assert ("other windows'" in caplog.text) == bool(others)
    check(typed, minute(0), is_bad=bad_before)


@pytest.mark.parametrize(
    "columns", [("n", "shard", "_shard", "_number"), ("_number", "n", "_value", "shard", "_shard")]
)
def test_the_chosen_columns_are_those_of_the_reader(typed, columns):
    typed.read(minute(0), value=STRICT, columns=columns)
    replay(typed, minute(0))
    check(typed, minute(0), is_bad=is_torn)
    folder = ParquetTable(typed.sink().path).folder_of(minute(0))
    assert {tuple(pq.ParquetFile(file).schema_arrow.names) for file in folder.glob("*.parquet")} == {columns}


def test_a_window_that_another_run_landed_meanwhile_stays(typed, monkeypatch):
    typed.read(minute(0), value=STRICT)
    decode = ParquetReplay.decode

    def slow(self, system):
        landed = decode(self, system)
        typed.read(minute(0), value=STRICT)
        return landed

    monkeypatch.setattr(ParquetReplay, "decode", slow)
    with pytest.raises(SinkError, match="landed again by another run"):
        replay(typed, minute(0))
    monkeypatch.undo()
    assert rows(typed, minute(0)) + aside(typed, minute(0)) == events(minute(0))
    assert state(typed, minute(0)).state == "failed", "its plan is another one, and was not read"
    replay(typed, minute(0))
    check(typed, minute(0), is_bad=is_torn)


def test_where_a_file_system_has_no_links_files_are_copied(typed, monkeypatch):
    def refuse(self, target):
        raise PermissionError(1, "Operation not permitted")

    typed.read(minute(0), value=STRICT)
    monkeypatch.setattr(Path, "hardlink_to", refuse)
    replay(typed, minute(0))
    check(typed, minute(0), is_bad=is_torn)


def test_files_of_the_replay_have_the_types_of_those_next_to_them(typed):
    typed.read(minute(0), value=STRICT)
    replay(typed, minute(0))
    folder = ParquetTable(typed.sink().path).folder_of(minute(0))
    one, other = (pq.ParquetFile(file).schema for file in sorted(folder.glob("*.parquet")))
    assert [str(one.column(n)) for n in range(len(one))] == [str(other.column(n)) for n in range(len(other))]


def test_versions_that_are_told_no_more_stay_known():
    old, new = WriterSchema("utf8"), WriterSchema("bytes")
    pinned = Decoding(Simple("string"), schemas={"a": {"0": old, "1": old}, "gone": {"0": old}}, framing="message")
    told = Decoding(Simple("string"), schemas={"a": {"1": new, "2": new}, "b": {ANY_VERSION: new}}, framing="message")
    assert with_earlier(told, pinned).schemas == {
        "a": {"0": old, "1": new, "2": new},
        "b": {ANY_VERSION: new},
        "gone": {"0": old},
    }
    made = replace(pinned, made={"a": {"0": 1, "1": 2}, "gone": {"0": 3}})
    assert with_earlier(replace(told, made={"a": {"1": 4, "2": 5}}), made).made == {
        "a": {"0": 1, "1": 4, "2": 5},
        "gone": {"0": 3},
    }
    without = Decoding(Simple("string"), schemas={"a": {ANY_VERSION: old}})
    assert with_earlier(told, without) == told


def test_versions_of_a_type_that_is_not_read_now_do_not_come_back():
    avro, text = WriterSchema("utf8"), Simple("string")
    pinned = Decoding(text, schemas={"a": {"0": avro, "1": avro, "2": avro}}, framing="message")
    types = RecordTypes({"a": {"0": "Order", "1": "Payment"}}, {"Order": text})
    told = Decoding(text, schemas={"a": {"0": avro}}, framing="message", types=types)
    assert with_earlier(told, pinned).schemas == {"a": {"0": avro, "2": avro}}
    before = replace(pinned, types=RecordTypes({"a": {"2": "Payment", "3": "Gone"}}, {"Order": text}))
    found = with_earlier(told, before)
    assert found.schemas == {"a": {"0": avro}}
    assert found.types.of == {"a": {"0": "Order", "1": "Payment", "2": "Payment"}}


# Killed at any step

STEPS = {
    "decoded": (ParquetReplay, "decode"),
    "pinned": (Journal, "redecode"),
    "started": (Journal, "start_run"),
    "put": (ParquetTable, "put"),
    "finished": (Journal, "finish_run"),
}


@contextmanager
def dying(step: str, *, after: bool):
    """This process is killed before a step is done, or when it is."""
    owner, name = STEPS[step]
    whole = getattr(owner, name)

    def die(*arguments, **named):
        done = whole(*arguments, **named) if after else None
        os.kill(os.getpid(), signal.SIGKILL)
        return done

    setattr(owner, name, die)
    try:
        yield
    finally:
        setattr(owner, name, whole)


def killed(work, step: str, *, after: bool) -> None:
    """Do something in a process that dies meanwhile; it may be that it does not come so far."""
    child = os.fork()
    if not child:
        with dying(step, after=after):
            try:
                work()
            finally:
                os._exit(0)
    os.waitpid(child, 0)


pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


@pytest.mark.slow_except("decoded-True-replay", "pinned-False-read", "put-True-replay", "finished-True-read")
@pytest.mark.parametrize(
    ("step", "after", "then"),
    [
        ("decoded", True, "replay"),
        *(("pinned", after, then) for after in (False, True) for then in ("replay", "read")),
        ("started", True, "replay"),
        ("put", False, "read"),
        *(("put", True, then) for then in ("replay", "read")),
        ("finished", True, "read"),
    ],
)
def test_a_replay_that_is_killed_leaves_the_old_window_or_the_new_one(typed, step, after, then):
    typed.read(minute(0), value=STRICT)
    killed(lambda: replay(typed, minute(0)), step, after=after)
    is_new = step == "finished" or (step == "put" and after)
    kept = aside(typed, minute(0))
    assert [item.window for item in quarantined_windows(typed.journal, KEY, "reader", minute(0))] == [minute(0)]
    assert rows(typed, minute(0)) + kept == events(minute(0))
    assert kept.total() == 2 * sum((is_torn if is_new else bad_before)(n) for n in range(60))
    if then == "read":
        value = stored_landing(typed.journal, KEY, "reader").value
        typed.read(minute(0), value=value)
        assert value == (STRICT if step == "decoded" or (step == "pinned" and not after) else FIXED)
        check(typed, minute(0), is_bad=bad_before if value == STRICT else is_torn)
    replay(typed, minute(0))
    check(typed, minute(0), is_bad=is_torn)
    assert not [path for path in Path(typed.sink().path, "_staging").iterdir() if path.is_dir()]


ROUNDS = int(os.environ.get("STREAMS_REPLAY_ROUNDS", "3"))


@pytest.mark.slow_except("0")
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_whatever_is_done_in_whatever_order_each_event_is_there_once(typed, seed):
    """Land, land again, replay, and kill of all of these: rows and quarantine are the events, and the journal knows."""
    chance = random.Random(seed)  # noqa: S311 - the same each time
    windows = [minute(number) for number in range(2)]
    for _ in range(8):
        window, kept = chance.choice(windows), stored_landing(typed.journal, KEY, "reader")
        value = STRICT if kept is None else kept.value

        def land(window=window, value=value):
            typed.read(window, value=value)

        def fix(window=window):
            if aside(typed, window):
                replay(typed, window)

        act = chance.choice((land, fix))
        if chance.random() < 0.5:
            killed(act, chance.choice(list(STEPS)), after=chance.random() < 0.5)
        elif act is land or aside(typed, window):
            act()
        for one in windows:
            found = rows(typed, one) + aside(typed, one)
            assert found in (Counter(), events(one)), (seed, one)
    for one in windows:
        if not rows(typed, one):
            kept = stored_landing(typed.journal, KEY, "reader")
            typed.read(one, value=kept.value if kept else STRICT)
        replay(typed, one)
        check(typed, one, is_bad=is_torn)


def test_what_is_kept_aside_says_why_and_how_often(typed):
    typed.read(minute(0), value=STRICT)
    seen = WindowQuarantine.of(typed.sink(), minute(0))
    causes = seen.causes()
    assert causes.total() == seen.events == aside(typed, minute(0)).total()
    assert len({cause for cause, _ in causes}) >= 2
    first = [event for _, event in seen.first(3)]
    assert [event["number"] for event in first] == [5, 11, 17]
    assert json.loads(first[0]["value"]) == {"n": 5}


def test_what_is_said_once_holds_for_these_events_alone(typed):
    """The reader goes on as it did, its re-runs land the same, and what was replayed stays rows."""
    typed.read(minute(0), value=STRICT)
    source = FakeSource(value=FIXED)
    replayer = Replayer(typed.place(source), source, "reader", REPLAYING, lasting=False)
    replayer.replay(minute(0))
    check(typed, minute(0), is_bad=is_torn)
    for _ in range(2):
        typed.read(minute(0), value=STRICT)
        check(typed, minute(0), is_bad=is_torn)
    typed.read(minute(1), value=STRICT)
    check(typed, minute(1), is_bad=bad_before)
    with pytest.raises(LandingMismatch, match="values json"):
        typed.read(minute(2), value=FIXED)


def test_windows_planned_again_may_be_decoded_otherwise(typed):
    typed.read(minute(0), value=STRICT)
    with pytest.raises(LandingMismatch, match="values json"):
        typed.read(minute(1), value=WIDER)
    typed.read(minute(0), value=WIDER, replan=True)
    check(typed, minute(0), is_bad=is_torn)
    typed.read(minute(1), value=WIDER)  # which is what the reader lands now
    with pytest.raises(LandingMismatch, match="values json"):
        typed.read(minute(2), value=STRICT)


def test_a_failed_new_plan_leaves_what_the_reader_lands(typed):
    typed.read(minute(0), value=STRICT)
    typed.before = _exit
    with pytest.raises(SystemExit):
        typed.read(minute(0), value=WIDER, replan=True)
    typed.before = lambda _spec: None
    typed.read(minute(1), value=STRICT)
    check(typed, minute(1), is_bad=bad_before)


def test_a_backfill_of_another_decoding_is_refused(typed):
    typed.read(minute(0), value=STRICT)
    with pytest.raises(LandingMismatch, match="values json"):
        typed.backfill(Window(minute(0).start, minute(1).end), value=FIXED)
    check(typed, minute(0), is_bad=bad_before)


def test_what_was_replayed_by_words_stays_when_the_reader_replays_as_ever(typed):
    typed.read(minute(0), value=STRICT)
    source = FakeSource(value=FIXED)
    Replayer(typed.place(source), source, "reader", REPLAYING, lasting=False).replay(minute(0))
    replay(typed, minute(0), STRICT)
    check(typed, minute(0), is_bad=is_torn)
    typed.read(minute(0), value=STRICT)
    check(typed, minute(0), is_bad=is_torn)
