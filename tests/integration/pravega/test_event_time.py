"""Basis `event` by a decoded field on a real server, between recorded cuts: a stream that no writer notes times of."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pyarrow as pa
import pytest

from airflow_provider_streams.errors import InvalidRequest, PlanMismatch, WindowNotReady
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.plan import range_pruning
from airflow_provider_streams.model.schema.payload import Json
from airflow_provider_streams.model.sinks.landing import Landed
from airflow_provider_streams.model.window.basis import EventTime
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.testing.pravega_writer import PravegaWriter
from airflow_provider_streams.windows.after_landing.late_rows import LateRows
from airflow_provider_streams.windows.plan.cut_recording import record
from airflow_provider_streams.windows.plan.planning import WindowRead, fresh_plan
from airflow_provider_streams.windows.plan.readiness import WindowQuestion, check_planned
from tests.integration.event_rows import Rows, typed
from tests.seeds import chosen_seed

pytestmark = pytest.mark.pravega

SECOND = timedelta(seconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
KIND = pa.struct([("id", pa.int64()), ("at", pa.int64())])
LATENESS, LOOKBACK = SECOND, 60 * SECOND


@pytest.fixture
def journal(tmp_path):
    with Journal.open(f"sqlite:///{tmp_path / 'journal.db'}") as opened:
        yield opened


def decode(payload):
    try:
        return json.loads(payload)
    except ValueError:
        return None


class Shop:
    """Writes orders, some late, some without a time, some not to be decoded, while a recorder ticks."""

    def __init__(self, lab, journal, stream, seed):
        self.lab, self.journal, self.dice = lab, journal, random.Random(seed)  # noqa: S311 - no secret
        self.source = PravegaSource(stream, value=Json("id long, at long"))
        self.stream = stream
        self.events: dict[bytes, tuple[datetime | None, datetime]] = {}
        """Event time, None: it has none; and when it was acknowledged."""

    def order(self):
        number, now = len(self.events), datetime.now(UTC)
        # up to LATENESS late, some much more
        late = self.dice.choice((0.0, 0.2, 0.5, 3.0)) * self.dice.random() * LATENESS
        at = None if self.dice.random() < 0.1 else now - late
        micros = None if at is None else (at - EPOCH) // timedelta(microseconds=1)
        payload = json.dumps({"id": number, "at": micros}).encode()
        if self.dice.random() < 0.05:
            at, payload = None, b"not json %d" % number
        with PravegaWriter(self.lab.system.endpoint, self.stream) as writer:
            writer.write([(str(number % 7), payload)])
        self.events[payload] = (at, datetime.now(UTC))

    def tick(self):
        [done] = record(self.journal, {self.source.conn_id: self.lab.system}, [self.source], "tests")
        assert done.error is None

    def read(self, window, lateness=LATENESS):
        basis = EventTime(lateness, SECOND / 2, "at", "us")
        return WindowRead(WindowQuestion(self.source, window, basis), "tests")

    def cover(self, plan, receipt):
        task = TaskInstanceKey("dag", "run", "tests", 1)
        started = self.journal.start_run(self.source.key, self.journal.pin(self.source.key, plan), task)
        self.journal.finish_run(started.run, Landed(receipt))


@pytest.mark.slow
def test_windows_that_are_read_newest_first_skip_what_the_later_ones_have_proven(lab, journal, stream, monkeypatch):
    shop = Shop(lab, journal, stream, 5)
    # every event has a time, and is not late
    monkeypatch.setattr(shop.dice, "random", lambda: 0.5)
    monkeypatch.setattr(shop.dice, "choice", lambda _: 0.0)
    monkeypatch.setattr(range_pruning, "WORTH_A_SPLIT", 0)
    began = datetime.now(UTC)
    shop.tick()
    for _ in range(50):
        shop.order()
        time.sleep(0.03)
        shop.tick()
    ended = datetime.now(UTC)
    time.sleep((LATENESS + SECOND / 2).total_seconds())
    shop.tick()
    edges = [began + share * (ended - began) for share in (0, 1 / 3, 2 / 3, 1)]
    skipped = 0
    for window in reversed([Window(*pair) for pair in pairwise(edges)]):
        plan = fresh_plan(journal, lab.system, shop.read(window))
        whole = fresh_plan(journal, lab.system, shop.read(window), replan=True)
        rows = rows_of(lab, plan)
        assert rows
        assert rows == rows_of(lab, whole)
        assert all(window.start <= shop.events[row][0] < window.end for row in rows)
        shop.cover(plan, typed(lab.system, plan, "id")[1])
        assert plan.estimate.bytes == whole.estimate.bytes - sum(piece.bytes for piece in plan.skipped)
        skipped += sum(piece.entries for piece in plan.skipped)
    assert skipped > 0


@pytest.mark.slow
def test_random_windows_between_recorded_cuts_hold_each_event_once_or_count_it_late(lab, journal, stream, monkeypatch):
    seed = chosen_seed()
    shop = Shop(lab, journal, stream, seed)
    began = datetime.now(UTC)
    shop.tick()
    for number in range(60):
        shop.order()
        time.sleep(0.03)
        if number % 5 == 0:
            shop.tick()
        if number == 25:
            lab.split(stream)
    ended = datetime.now(UTC)
    last = Window(ended - SECOND, ended)
    with pytest.raises(WindowNotReady, match=r"no watermark: .* and no cut was recorded"):
        check_planned(lab.system, WindowQuestion(shop.source, last, shop.read(last).question.basis), journal)
    time.sleep((2 * LATENESS + SECOND / 2).total_seconds())
    shop.tick()
    check_planned(lab.system, WindowQuestion(shop.source, last, shop.read(last).question.basis), journal)

    first = min(at for at, _ in shop.events.values() if at) - 2 * SECOND
    edges = sorted([first, *(began + shop.dice.random() * (ended - began) for _ in range(3)), ended])
    landed, counted, whole = Counter(), Counter(), Counter()
    windows = [Window(*pair) for pair in pairwise(edges)]
    shop.dice.shuffle(windows)
    monkeypatch.setattr(range_pruning, "WORTH_A_SPLIT", 0)
    for window in windows:
        # what is asked of a reader may change from one window to the next
        read = shop.read(window, shop.dice.choice((LATENESS, 2 * LATENESS)))
        plan = fresh_plan(journal, lab.system, read)
        rows = rows_of(lab, plan)
        late = rows_of(lab, LateRows(journal, lab.system, shop.source, LOOKBACK).after(plan))
        again = rows_of(lab, LateRows(journal, lab.system, shop.source, LOOKBACK).included(plan))
        assert again == rows + late, f"STREAMS_SEED={seed}"
        assert all(shop.events[row][0] is None or window.start <= shop.events[row][0] < window.end for row in again)
        landed, counted, whole = landed + rows, counted + late, whole + again
        # as Spark's tasks read it: what cannot be decoded is left out of the one window in which it was stored
        ids, receipt = typed(lab.system, plan, "id")
        assert ids == Counter(found["id"] for row in rows if (found := decode(row)) is not None)
        assert receipt.totals["dropped"] == sum(decode(row) is None for row in rows)
        assert receipt.totals.get("untimed", 0) == sum((decode(row) or {"at": 0})["at"] is None for row in rows)
        # without what receipts of the windows before prove
        assert rows == rows_of(lab, fresh_plan(journal, lab.system, read, replan=True)), f"STREAMS_SEED={seed}"
        shop.cover(plan, receipt)
    timed = {payload for payload, (at, _) in shop.events.items() if at is not None}
    assert {row for row in whole if row in timed} == timed, f"STREAMS_SEED={seed}"
    assert set(whole.values()) == {1}, f"STREAMS_SEED={seed}: an event in two windows, or in one and late in another"
    in_time = {one for one in timed if shop.events[one][1] - shop.events[one][0] <= LATENESS}
    assert in_time <= landed.keys(), f"STREAMS_SEED={seed}"
    assert counted.keys() <= timed, "what has no time is late for nothing"
    untimed = {one for one, (at, _) in shop.events.items() if at is None}
    assert untimed <= landed.keys(), f"STREAMS_SEED={seed}: all were stored in these windows"


def rows_of(lab, plan):
    return Counter(Rows(KIND, decode, "event").kept(lab.system, plan))


def test_without_a_field_a_window_by_event_time_is_refused_before_anything_is_asked(lab, stream):
    with pytest.raises(InvalidRequest, match=r"needs the field that is its time: EventTime\(event_time='created_at'\)"):
        lab.plan(stream, basis="event", event=EventTime())
    with pytest.raises(InvalidRequest, match="nothing is decoded"):
        lab.plan(stream, basis="event", event=EventTime(event_time="at"))


def test_a_window_next_to_one_whose_plan_cannot_be_read_is_planned_by_its_own_edges(lab, journal, stream, monkeypatch):
    shop, began = Shop(lab, journal, stream, 11), datetime.now(UTC)
    shop.tick()
    for _ in range(20):
        shop.order()
        shop.tick()
    edges = [began, datetime.now(UTC) - SECOND / 10, datetime.now(UTC)]
    time.sleep(LATENESS.total_seconds())
    shop.tick()
    windows = [Window(*pair) for pair in pairwise(edges)]
    journal.pin(shop.source.key, fresh_plan(journal, lab.system, shop.read(windows[0])))
    plan = fresh_plan(journal, lab.system, shop.read(windows[1]))

    def refuse(*_):
        raise PlanMismatch("a plan of another release")

    monkeypatch.setattr(Journal, "neighbors", refuse)
    alone = fresh_plan(journal, lab.system, shop.read(windows[1]))
    assert (alone.filter, alone.splits) == (plan.filter, plan.splits)


def test_between_given_cuts_what_has_no_time_is_in_no_window_and_the_plan_says_so(lab, journal, stream):
    shop = Shop(lab, journal, stream, 7)
    for _ in range(30):
        shop.order()
    span = Window(datetime(2020, 1, 1, tzinfo=UTC), datetime.now(UTC) + SECOND)
    asked = {"source": shop.source, "window": span, "basis": "event", "event": EventTime(event_time="at", unit="us")}
    plan = lab.plan(stream, lab.head(stream), lab.tail(stream), **asked)
    assert plan.remarks == ("events without at are in no window: its cuts do not say where the window before ends",)
    assert rows_of(lab, plan) == Counter(one for one, (at, _) in shop.events.items() if at is not None)


def test_windows_of_several_streams_hold_each_event_once_and_nothing_of_a_stream_that_came_later(lab, journal):
    streams = [lab.create(name) for name in ("one", "two")]
    source = PravegaSource(scope=lab.scope, value=Json("id long, at long"))
    sent = Counter()

    def write(stream, number, at):
        payload = json.dumps({"id": number, "at": at and (at - EPOCH) // timedelta(microseconds=1)}).encode()
        with PravegaWriter(lab.system.endpoint, stream) as writer:
            writer.write([("k", payload)])
        return payload

    def tick():
        [done] = record(journal, {source.conn_id: lab.system}, [source], "tests")
        assert done.error is None

    basis = EventTime(SECOND / 5, SECOND / 10, "at", "us")
    tick()
    time.sleep(0.5)
    began = datetime.now(UTC)
    for number in range(20):
        sent[write(streams[number % 2], number, None if number % 5 == 4 else datetime.now(UTC))] += 1
        time.sleep(0.05)
        tick()
    ended = datetime.now(UTC)
    time.sleep(0.5)
    tick()
    # a stream that came when all of the windows was stored; its event, of a time of theirs, is late
    later = write(lab.create("three"), 99, began + SECOND / 10)
    landed, counted = Counter(), Counter()
    for window in (Window(began - SECOND / 4, began + SECOND / 2), Window(began + SECOND / 2, ended)):
        plan = fresh_plan(journal, lab.system, WindowRead(WindowQuestion(source, window, basis), "tests"))
        landed += rows_of(lab, plan)
        counted += rows_of(lab, LateRows(journal, lab.system, source, LOOKBACK).after(plan))
    assert set(landed.values()) == {1}
    assert counted == Counter([later])
    assert {row for row in sent if json.loads(row)["at"]} <= landed.keys() <= sent.keys()
