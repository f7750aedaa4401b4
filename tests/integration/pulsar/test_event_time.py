"""Basis `event` on a real broker: times set by both clients, alone, in batches and in chunks, some late, some none."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_provider_streams.errors import WindowNotReady
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.plan import range_pruning
from airflow_provider_streams.model.plan.plan import PlanRequest, Terms
from airflow_provider_streams.model.plan.range_pruning import Proof
from airflow_provider_streams.model.plan.receipt import compare
from airflow_provider_streams.model.schema.payload import Json
from airflow_provider_streams.model.sinks.landing import Landing
from airflow_provider_streams.model.sinks.sink import ParquetSink
from airflow_provider_streams.model.window.backfill import Selection, parse_select
from airflow_provider_streams.model.window.basis import EventTime
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.model.window.window_schedule import Every
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.pulsar.system import PulsarSystem
from airflow_provider_streams.systems.source_json import payloads_of
from airflow_provider_streams.testing.landing import context_without_spark
from airflow_provider_streams.windows.after_landing.late_rows import LateRows
from airflow_provider_streams.windows.plan.pruning_by_receipts import narrowed_by_receipts
from airflow_provider_streams.windows.run.request import ReadRequest, WindowsOfSpan
from airflow_provider_streams.windows.run.window_run import WindowRun
from stream_servers.java import run_java
from tests.integration.event_rows import Rows, typed
from tests.seeds import chosen_seed

pytestmark = pytest.mark.pulsar

HERE = Path(__file__).parent
MILLISECOND = timedelta(milliseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LATENESS, SLACK, LOOKBACK = timedelta(seconds=1), timedelta(milliseconds=500), timedelta(minutes=5)
FIELD = Rows(pa.struct([("id", pa.string()), ("at", pa.int64())]))


@dataclass(frozen=True)
class Order:
    """As pulsar-client reads it."""

    time_ms: int
    """Its event time; without one, when it was published."""
    late_ms: int
    is_timed: bool


@dataclass
class Shop:
    bench: object
    topic: str
    dice: random.Random

    def lateness(self, count):
        return [self.dice.choice((None, 0, 300, 900, 900, 20_000)) for _ in range(count)]

    def write(self, batch):
        late, now = self.lateness(15), int(time.time() * 1000)
        times = [None if one is None else now - one for one in late]
        values = [json.dumps({"id": f"{batch}-{now}-{n}", "at": at}).encode() for n, at in enumerate(times)]
        self.bench.write(self.topic, values, batch=batch, send=lambda number: {"event_timestamp": times[number]})

    def write_by_java(self):
        late = ["-" if one is None else str(one) for one in self.lateness(10)]
        server = self.bench.server
        run_java(HERE / "EventTimes.java", [server.service_url, self.topic, *late], server.classpath)

    def orders(self, shards):
        """What is stored, by an independent client."""
        found = {}
        for row in (row for shard in shards for row in self.bench.peer(shard)):
            _, value, _, _, published, event, _ = row
            found[value] = Order(event or published, published - event if event else 0, bool(event))
        return found


@pytest.fixture
def system(bench):
    return PulsarSystem(bench.endpoint)


def plan(system, source, window, **event):
    asked = EventTime(LATENESS, SLACK, **event)
    made = system.plan(PlanRequest(source, window, "tests", basis="event", slack=SLACK, event=asked))
    terms = Terms(SLACK, None, "fail", LATENESS, asked.event_time, asked.unit, asked.rows)
    return replace(made, terms=terms)


def rows_of(system, made):
    """The values of a plan's rows, by the broker's event times."""
    rows, receipts = Counter(), []
    for split in made.splits:
        with closing(system.read(made, split, ["value"])) as reader:
            rows.update(value for batch in reader for value in batch.column(0).to_pylist())
        receipts.append(reader.receipt)
    receipt = compare(made, receipts, seconds=0)
    assert receipt.rows == rows.total()
    return rows, receipt


class Receipts:
    """What a journal has of windows that were read before, and of which column of their rows is compared."""

    def __init__(self, column="id"):
        self.known, self.column, self.skipped = [], column, Counter()

    def proofs(self, *_):
        return self.known

    def check(self, system, source, whole, rows, late):
        """A plan that skips what is proven has the same rows, and so has the recount after it."""
        made = narrowed_by_receipts(self, source.key, whole, lateness=LATENESS, slack=SLACK)
        found, receipt = self._rows(system, made)
        assert found == rows
        assert all(one.times for one in receipt.splits)
        later = LateRows(self, system, source, LOOKBACK).after(whole)
        assert self._rows(system, later)[0] == late
        self.known.append(Proof(made, receipt))
        for name, one in (("window", made), ("later", later)):
            self.skipped[name] += sum(piece.entries for piece in one.skipped)

    def _rows(self, system, made):
        return rows_of(system, made) if self.column == "value" else typed(system, made, self.column)


NOTHING = Receipts()


@pytest.mark.slow
def test_random_windows_hold_each_event_once_or_count_it_late_and_then_land_it(bench, system):
    seed = chosen_seed()
    dice = random.Random(seed)  # noqa: S311 - a seed
    shop = Shop(bench, bench.topic("orders", partitions=2), dice)
    shards = [f"{shop.topic}-partition-{number}" for number in range(2)]
    for batch in (1, 5, 15):
        shop.write(batch)
        time.sleep(0.3)
    bench.unload(shards[0])
    shop.write_by_java()
    shop.write(3)
    ended = datetime.now(UTC)
    source = PulsarSource(shop.topic, value=Json("id string, at long"))
    orders = shop.orders(shards)
    assert len(orders) == 4 * 15 + 3 * 10
    with pytest.raises(WindowNotReady, match="at the earliest"):
        plan(system, source, Window(ended - timedelta(hours=1), ended))
    time.sleep((LATENESS + SLACK).total_seconds())

    first = EPOCH + min(one.time_ms for one in orders.values()) * MILLISECOND
    # the first order is late for a window of its own; also edges between milliseconds
    inner = [first + MILLISECOND, *(first + dice.random() * (ended - first) for _ in range(2))]
    windows = [Window(*pair) for pair in pairwise(sorted([first, *inner, ended]))]
    landed, counted, whole = Counter(), Counter(), Counter()
    untimed = 0
    broker, by_field = Receipts("value"), Receipts("id")
    dice.shuffle(windows)
    for window in windows:
        made = plan(system, source, window)
        rows, receipt = rows_of(system, made)
        late, _ = rows_of(system, LateRows(NOTHING, system, source, LOOKBACK).after(made))
        again, _ = rows_of(system, LateRows(NOTHING, system, source, LOOKBACK).included(made))
        assert again == rows + late, f"STREAMS_SEED={seed}"
        assert all(window.start <= EPOCH + orders[row].time_ms * MILLISECOND < window.end for row in again)
        landed, counted, whole = landed + rows, counted + late, whole + again
        untimed += receipt.totals.get("untimed", 0)
        # the same time, in the payload
        field = plan(system, source, window, event_time="at", unit="ms")
        found = Counter(FIELD.kept(system, field))
        later = Counter(FIELD.kept(system, LateRows(NOTHING, system, source, LOOKBACK).after(field)))
        columns, told = typed(system, field, "id")
        assert columns == Counter(json.loads(row)["id"] for row in found)
        counted_alike = ("rows", "filtered", "untimed", "bytes")
        assert [told.totals.get(name) for name in counted_alike] == [receipt.totals.get(name) for name in counted_alike]
        assert (found, later) == (rows, late), f"STREAMS_SEED={seed}"
        # and the same by the receipts of the windows before
        broker.check(system, source, made, rows, late)
        by_field.check(system, source, field, columns, Counter(json.loads(row)["id"] for row in late))
    assert landed + counted == whole == Counter(dict.fromkeys(orders, 1)), f"STREAMS_SEED={seed}"
    assert {row for row, one in orders.items() if one.late_ms <= LATENESS / MILLISECOND} <= landed.keys()
    assert counted, "some are late"
    assert untimed == sum(not one.is_timed for one in orders.values())


@pytest.mark.slow
def test_windows_that_are_read_newest_first_skip_what_the_later_ones_have_proven(bench, system):
    topic, second = bench.topic("newest"), timedelta(seconds=1)
    source = PulsarSource(topic, value=Json("id string, at long"))
    start = datetime.now(UTC) + second
    times_ms = {}
    for number in range(80):
        at = start + number * second / 20
        time.sleep(max(0.0, (at - datetime.now(UTC)).total_seconds()))
        # one in twenty is of the second before
        millis = (at - (second if number % 20 == 10 else 0 * second) - EPOCH) // MILLISECOND
        value = b'{"id": "%d", "at": %d}' % (number, millis)
        times_ms[value] = millis
        bench.write(topic, [value], send=lambda _, millis=millis: {"event_timestamp": millis})
    time.sleep((LATENESS + SLACK).total_seconds() * 2)
    broker, by_field = Receipts("value"), Receipts("id")
    with patch.object(range_pruning, "WORTH_A_SPLIT", 0):
        for number in (3, 2, 1, 0):
            window = Window(start + number * second, start + (number + 1) * second)
            rows = Counter(row for row, ms in times_ms.items() if window.start <= EPOCH + ms * MILLISECOND < window.end)
            broker.check(system, source, plan(system, source, window), rows, Counter())
            field = plan(system, source, window, event_time="at", unit="ms")
            by_field.check(system, source, field, Counter(json.loads(row)["id"] for row in rows), Counter())
    for receipts in (broker, by_field):
        assert min(receipts.skipped["window"], receipts.skipped["later"]) > 0, receipts.skipped


@pytest.mark.slow
def test_a_backfill_counts_late_events_and_lands_them_in_their_own_window(bench, tmp_path):
    topic, readers = bench.topic("late"), {"broker": {}, "field": {"event_time": "at", "unit": "ms"}}
    two = timedelta(seconds=2)
    start = EPOCH + ((datetime.now(UTC) - EPOCH) // two + 1) * two

    def until(moment):
        time.sleep(max(0.0, (moment - datetime.now(UTC)).total_seconds()))

    def write(*ids, at):
        millis = (at - EPOCH) // MILLISECOND
        values = [json.dumps({"id": one, "at": millis}).encode() for one in ids]
        bench.write(topic, values, send=lambda _: {"event_timestamp": millis})

    span, first, second = Window(start, start + 2 * two), start + MILLISECOND, start + two
    for number, moment in (("first", first), ("second", second)):
        until(moment)
        write(*(f"{number}-{count}" for count in range(30)), at=moment)
    until(span.end + LATENESS + SLACK)

    def backfill(select, reader):
        source = PulsarSource(topic, value=Json("id string, at long"))
        asked = ReadRequest(
            source,
            reader,
            WindowsOfSpan(span, Selection(parse_select(select)), lookback=LOOKBACK),
            TaskInstanceKey("dag", select, "fill", 1),
            Landing(ParquetSink(str(tmp_path / reader)), None, ("id",), **payloads_of(source)),
            EventTime(LATENESS, SLACK, **readers[reader]),
            Every(two),
        )
        options = {"service_url": bench.server.service_url, "admin_url": bench.server.admin_url}
        with Journal.open(f"sqlite:///{tmp_path / 'journal.db'}") as journal:
            place = context_without_spark(journal, "pulsar", options)
            run = WindowRun(place, asked)
            prepared = run.prepare()
            done = run.land(prepared, lambda *_: None)
            assert done.failures == {}
            return prepared.late_rows, done.rows

    for reader in readers:
        assert backfill("missing", reader) == (0, 60)
        assert backfill("late", reader) == (0, 0)
    write("late-0", "late-1", at=first)
    write("late-2", at=second)
    for reader in readers:
        assert backfill("late", reader) == (3, 63), "both windows again"
        assert backfill("late", reader) == (0, 0)
        files = sorted((tmp_path / reader).glob("window_start=*/window_end=*/*.parquet"))
        landed = [pq.ParquetFile(file).read(["id"])["id"].to_pylist() for file in files]
        late = [sorted(one for one in rows if "late" in one) for rows in landed]
        assert late == [["late-0", "late-1"], ["late-2"]]
        assert [len(rows) for rows in landed] == [32, 31]
