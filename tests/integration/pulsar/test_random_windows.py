# ruff: noqa: S311 - random test data
"""Random adjacent windows of topics of every kind, each planned and read: the rows of Pulsar's Java reader.

More of them: `PULSAR_WINDOWS=2000 pytest tests/integration/pulsar/test_random_windows.py`; `STREAMS_SEED` repeats one,
`PULSAR_KINDS` (like `ZLIB`) chooses.
"""

from __future__ import annotations

import os
import random
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from airflow_provider_streams.model.plan.plan import Plan, PlanRequest
from airflow_provider_streams.model.plan.receipt import compare
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.pulsar.system import PulsarSystem
from stream_servers.waiting import wait_until
from tests.fuzz.shapes import keyed, rich, written
from tests.fuzz.writer import METADATA
from tests.integration.pulsar.raw_producer import RawProducer, batch, metadata
from tests.integration.pulsar.test_codecs import (
    CODECS,
    COLUMNS,
    by_java,
    decorated,
    in_micros,
    our_row,
    write_with_java,
)
from tests.integration.pulsar.test_raw_entries import SEQUENCE, JavasWriter, legible
from tests.seeds import chosen_seed

pytestmark = [pytest.mark.pulsar, pytest.mark.timeout(14_400)]

WINDOWS = int(os.environ.get("PULSAR_WINDOWS", "4"))
"""Of each kind of topic."""
CHAIN = 20
"""Windows, at most, between two random edges of a topic; each begins where the one before it ends."""
KINDS = os.environ.get("PULSAR_KINDS", "")
"""Only those that are named like this."""
PUBLISHED = COLUMNS.index("publish_time")
MILLISECOND = timedelta(milliseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PAST = 1_763_700_000_000
"""Publish times of the producer that writes any bytes."""

Row = tuple[Any, ...]
Write = Callable[[Any, str, random.Random], None]


def by_pulsar_client(codec: str) -> Write:
    def write(bench, topic, dice):
        import pulsar

        kind = getattr(pulsar.CompressionType, CODECS[codec])
        for size in (1, 7, 3):
            values = [(b"message %d " % number) * dice.choice((0, 1, 40, 200)) for number in range(42)]
            bench.write(topic, values, batch=size, send=decorated, compression_type=kind)

    return write


def with_long_keys(bench, topic, dice):
    """Longer than HTTP headers may be, and than Pulsar's REST service can answer."""
    for size in (1, 3):
        keys = [dice.choice("kß") * 20_000 + str(number) for number in range(30)]
        values = [b"%d" % number for number in range(30)]
        bench.write(topic, values, batch=size, send=[{"partition_key": key} for key in keys].__getitem__)


def with_unusual_times(bench, topic, dice):
    """Event times from all over the calendar and beyond, publish times that go forth and back, or are none."""
    event_times = (
        -1,
        -PAST,
        1,
        253_402_300_800_000,
        -62_135_596_800_001,
        9_223_372_036_854_774,
        -9_223_372_036_854_774,
    )
    with RawProducer(bench.endpoint, topic) as producer:
        for number in range(120):
            published = PAST + number + dice.randint(-20, 20)
            if number % 40 == 7:
                published = dice.choice((-5, -(1 << 52), 0))
            event = dice.choice(event_times)
            if number % 3:
                producer.send(metadata(published, event_ms=event), b"%d" % number)
            else:
                producer.send(metadata(published, num_messages=2), batch(b"a%d" % number, b""), messages=2)


def in_unusual_encodings(bench, topic, dice):
    writer = JavasWriter(dice, 0.2)
    with RawProducer(bench.endpoint, topic) as producer:
        for number in range(60):
            shape = keyed if number % 2 else rich
            messages = [legible(shape(dice)) for _ in range(dice.choice((1, 3, 20)))]
            payload = b"".join(written(message, writer) for message in messages)
            head = [(1, b"raw"), (2, number), (3, PAST + number // 2), (11, len(messages))]
            producer.send(writer.write(head, METADATA), payload, messages=len(messages))


BY_JAVA = {
    **{f"java {codec}": (codec, "batches", "single", "batches") for codec in CODECS},
    "java chunks": ("NONE", "chunks", "batches", "chunks"),
    "java chunks ZLIB": ("ZLIB", "chunks", "single", "chunks"),
    "java long keys": ("LZ4", "keys", "keys"),
}
"""The codec, and ways that `Codecs.java` knows."""
BY_OTHERS: dict[str, Write] = {
    **{f"python {codec}": by_pulsar_client(codec) for codec in CODECS},
    "python long keys": with_long_keys,
    "unusual times": with_unusual_times,
    "unusual encodings": in_unusual_encodings,
}


class Checked:
    """A topic, its rows as the Java reader gives them, and random windows of it."""

    def __init__(self, bench, topic: str, rows: Sequence[Row], dice: random.Random) -> None:
        self.system, self.source, self.rows, self.dice = PulsarSystem(bench.endpoint), PulsarSource(topic), rows, dice
        self.topic = topic
        self.windows = 0

    def check(self, windows: int) -> None:
        """So many windows, and at most one chain more."""
        while self.windows < windows:
            chain = min(CHAIN, windows)
            self.dice.choice((self._check_times, self._check_cuts))(chain)

    def _check_times(self, count: int) -> None:
        times = sorted({row[PUBLISHED] for row in self.rows if row[PUBLISHED] > 0})
        inner = [self.dice.choice(times) + self.dice.choice((0, 0, 1)) for _ in range(count - 1)]
        edges = sorted({times[0] - 1, *inner, times[-1] + 1})
        for start, end in pairwise(edges):
            window = Window(EPOCH + start * MILLISECOND, EPOCH + end * MILLISECOND)
            found = self._read(PlanRequest(self.source, window, "tests", slack=timedelta(seconds=3), **self._split()))
            self._equal(found, [row for row in self.rows if start <= row[PUBLISHED] < end], (start, end))

    def _check_cuts(self, count: int) -> None:
        places = [row[:3] for row in self.rows]
        first, end = (*places[0][:2], -1), (places[-1][0], places[-1][1] + 1, -1)
        inner = [self._near(self.dice.choice(places)) for _ in range(count - 1)]
        window = Window(EPOCH, EPOCH + MILLISECOND)
        for start, stop in pairwise(sorted({first, *inner, end})):
            cuts = {"start_cut": self._cut(start), "end_cut": self._cut(stop)}
            found = self._read(PlanRequest(self.source, window, "tests", basis="cuts", **cuts, **self._split()))
            inside = slice(bisect_left(places, start), bisect_left(places, stop))
            self._equal(found, self.rows[inside], (start, stop))

    def _near(self, place: tuple[int, int, int]) -> tuple[int, int, int]:
        """In the midst of a batch, or before it."""
        ledger, entry, index = place
        return (ledger, entry, self.dice.choice((-1, index, index + 1)) if index >= 0 else -1)

    def _cut(self, place: tuple[int, int, int]) -> Cut:
        return Cut({self.topic: Position.of(*place)})

    def _split(self) -> dict[str, int]:
        return {"target_split_bytes": self.dice.choice((500, 64_000_000, 64_000_000))}

    def _read(self, request: PlanRequest) -> list[Row]:
        plan = Plan.from_json(self.system.plan(request).to_json())
        rows: list[Row] = []
        receipts = []
        for split in plan.splits:
            reader = self.system.read(plan, split, COLUMNS)
            rows += [our_row(row) for found in reader for row in in_micros(found).to_pylist()]
            receipts.append(reader.receipt)
        compare(plan, self.system.explain(plan, receipts, on_loss="fail"), seconds=0)
        return rows

    def _equal(self, ours: Sequence[Row], theirs: Sequence[Row], window: object) -> None:
        # Java gives a message without a sequence id its batch's id
        shown = [
            (*row[:SEQUENCE], None if mine[SEQUENCE] is None else row[SEQUENCE], *row[SEQUENCE + 1 :])
            for mine, row in zip(ours, theirs, strict=False)
        ]
        assert len(ours) == len(theirs), window
        assert list(ours) == shown, window
        self.windows += 1


@pytest.fixture
def seed() -> int:
    chosen = chosen_seed()
    print(f"STREAMS_SEED={chosen}")
    return chosen


def test_random_adjacent_windows_equal_the_java_reader(bench, seed):
    topics = {kind: bench.topic() for kind in (*BY_JAVA, *BY_OTHERS) if KINDS in kind}
    by_client = {kind: BY_JAVA[kind] for kind in topics.keys() & BY_JAVA}
    write_with_java(bench, [(topics[kind], codec, way) for kind, (codec, *ways) in by_client.items() for way in ways])
    for kind in topics.keys() & BY_OTHERS:
        BY_OTHERS[kind](bench, topics[kind], random.Random(f"{seed} {kind}"))
    ended = time.time()
    expected = by_java(bench, list(topics.values()))
    wait_until(lambda: time.time() > ended + 4, "all windows are over")
    for kind, topic in topics.items():
        began = time.monotonic()
        checked = Checked(bench, topic, expected[topic], random.Random(f"{seed} {kind} windows"))
        try:
            checked.check(WINDOWS)
        except Exception as error:
            raise AssertionError(f"STREAMS_SEED={seed}, {kind}, after {checked.windows} windows: {error}") from error
        seconds = time.monotonic() - began
        print(
            f"STREAMS_SEED={seed}, {kind}: {checked.windows} windows of {len(checked.rows)} rows equal, {seconds:.0f} s"
        )
