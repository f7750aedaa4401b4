# ruff: noqa: S311 - random test data
"""Random adjacent windows of topics whose clocks cannot be trusted equal Java's reader, row by row.

More of them: `PULSAR_WINDOWS=2000 pytest tests/integration/pulsar/test_random_clocks.py`; `STREAMS_SEED` repeats one.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from airflow_provider_streams.model.plan.plan import Plan, PlanRequest
from airflow_provider_streams.model.plan.receipt import compare
from airflow_provider_streams.model.window.window import EPOCH, Window
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.pulsar.system import PulsarSystem
from stream_servers.java import run_java
from tests.fuzz.writer import usual
from tests.integration.pulsar.raw_producer import RawProducer, metadata
from tests.integration.pulsar.test_codecs import COLUMNS, by_java, in_micros, our_row
from tests.seeds import chosen_seed

pytestmark = [pytest.mark.pulsar, pytest.mark.timeout(7200)]

WINDOWS = int(os.environ.get("PULSAR_WINDOWS", "8"))
PER_TOPIC = 100
"""So many windows of one topic at most."""
STEPS = 150
DISORDER_MS = 400
SLACK = timedelta(milliseconds=500)
MILLISECOND = timedelta(milliseconds=1)
LAG_MS = 2 * 3600 * 1000

Write = Callable[..., None]


def by_transactions(bench, topic, seed, first_ms):
    """Markers carry the broker's clock, two hours ahead of the producers'; chunks, batches, keys of 20 KB between."""
    source = Path(__file__).with_name("Clocks.java")
    arguments = [bench.server.service_url, topic, str(seed), str(STEPS), str(first_ms), str(DISORDER_MS)]
    assert "DONE" in run_java(source, arguments, bench.server.classpath, seconds=600)


def by_other_clusters(bench, topic, seed, first_ms):
    """Messages as replication writes them, stamped by producers of another cluster whose clock is up to hours away."""
    chance = random.Random(seed)
    other_ms = chance.choice([-1, 1]) * chance.choice([50, 5_000, chance.randint(0, LAG_MS)])
    with RawProducer(bench.endpoint, topic) as producer:
        for ms in _clock(chance, first_ms):
            if chance.random() < 0.3:
                # late are those that lie more than slack out of order, and only those may be missing
                key = b"late" if abs(other_ms) > (SLACK // MILLISECOND) - DISORDER_MS else b"other"
                head = metadata(ms + other_ms, sequence_id=0, key=key)
                producer.send(head + usual([(5, b"other")]), chance.randbytes(30))
            else:
                producer.send(_message(chance, ms), chance.randbytes(30))


def by_broken_clocks(bench, topic, seed, first_ms):
    """Now and then a stamp that no calendar has, or one of another century."""
    chance = random.Random(seed)
    broken = (-1, -(2**40), 2**62, 2**63 - 1, 0, 1, 253402300800000, 4 * 10**12)
    with RawProducer(bench.endpoint, topic) as producer:
        for ms in _clock(chance, first_ms):
            stamp = chance.choice(broken) if chance.random() < 0.05 else ms
            producer.send(_message(chance, stamp % 2**64), chance.randbytes(30))


def _clock(chance, first_ms):
    now = first_ms
    for _ in range(2 * STEPS):
        now += chance.randrange(3000) if chance.random() < 0.2 else chance.randrange(50)
        yield now - chance.randint(0, DISORDER_MS)


def _message(chance, publish_ms):
    key = {"key": b"k%d" % chance.randrange(9)} if chance.random() < 0.3 else {}
    return metadata(publish_ms, sequence_id=0, **key)


@pytest.mark.slow_except("by_broken_clocks")
@pytest.mark.parametrize("write", [by_transactions, by_other_clusters, by_broken_clocks])
def test_random_adjacent_windows_equal_javas_reader(bench, write: Write, capsys):
    seed = chosen_seed()
    windows = rows = life = 0
    while windows < WINDOWS:
        more, found = windows_of(bench, write, seed + life, min(PER_TOPIC, WINDOWS - windows))
        windows, rows, life = windows + more, rows + found, life + 1
    with capsys.disabled():
        print(f"\n{write.__name__}: {windows} windows of {life} topics, {rows} rows; STREAMS_SEED={seed}")


def windows_of(bench, write: Write, seed: int, count: int) -> tuple[int, int]:
    """Compare so many windows of one topic; how many, and their rows."""
    system, topic, chance = PulsarSystem(bench.endpoint), bench.topic("clocks"), random.Random(seed)
    first_ms = (datetime.now(UTC) - EPOCH) // MILLISECOND - LAG_MS
    write(bench, topic, seed, first_ms)
    theirs = sorted(by_java(bench, [topic])[topic])
    usual = sorted(row[6] for row in theirs if abs(row[6] - first_ms) < LAG_MS)
    edges = {usual[0], usual[-1] + 1}
    while len(edges) < count + 1:
        edges.add(chance.choice(usual) + chance.choice([0, 0, 1, chance.randint(-2000, 2000)]))
    rows, said = 0, set()
    for start_ms, end_ms in pairwise(sorted(edges)):
        ours, verdict = read(system, topic, Window(*(EPOCH + ms * MILLISECOND for ms in (start_ms, end_ms))))
        wanted = [row for row in theirs if start_ms <= row[6] < end_ms]
        where = f"STREAMS_SEED={chosen_seed()}, the topic of {seed}, window {start_ms} to {end_ms}"
        assert [row for row in ours if row[4] != "late"] == [row for row in wanted if row[4] != "late"], where
        assert {row[:3] for row in ours} <= {row[:3] for row in wanted}, where
        # the topic is younger than its messages claim to be: only an older one that is held proves that none was lost
        # (one after younger or broken ones may be found or not)
        assert verdict == "unproven" or min(row[6] for row in theirs) < start_ms - SLACK // MILLISECOND, where
        said.add(verdict)
        rows += len(ours)
    assert "complete" in said
    return len(edges) - 1, rows


def read(system: PulsarSystem, topic: str, window: Window) -> tuple[list[tuple], str]:
    """Planned, read, explained and proven: the rows, and the verdict."""
    made = system.plan(PlanRequest(PulsarSource(topic), window, "tests", slack=SLACK, target_split_bytes=20_000))
    plan = Plan.from_json(made.to_json())
    rows, receipts = [], []
    for split in plan.splits:
        reader = system.read(plan, split, COLUMNS)
        rows += [our_row(row) for batch in reader for row in in_micros(batch).to_pylist()]
        receipts.append(reader.receipt)
    receipt = compare(plan, system.explain(plan, receipts, on_loss="fail"), seconds=0)
    return sorted(rows), receipt.verdict
