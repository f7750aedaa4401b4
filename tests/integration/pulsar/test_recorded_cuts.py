"""Basis `append` on a real broker: each message is in exactly one window, whatever befalls recorders and topics."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import closing
from itertools import pairwise

import pytest

from airflow_provider_streams.model.plan.receipt import compare
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.pulsar.system import PulsarSystem
from tests.integration.recording import AppendWindows, Recorders, now
from tests.seeds import chosen_seed

pytestmark = pytest.mark.pulsar


@pytest.fixture
def options(pulsar_server):
    return {"service_url": pulsar_server.service_url, "admin_url": pulsar_server.admin_url}


class Stream:
    """A topic, what was written to it, its recorders, and its windows."""

    def __init__(self, source, options, url, client) -> None:
        self.client = client
        self.recorders = Recorders(url, source, options)
        self.windows = AppendWindows(url, PulsarSystem.from_options(options), source)
        self.written: Counter[bytes] = Counter()

    def batch(self, topic, count=200) -> None:
        producer = self.client.create_producer(topic, batching_enabled=True, batching_max_messages=7)
        values = [b"%s %d" % (topic.encode(), len(self.written) + number) for number in range(count)]
        for number, value in enumerate(values):
            producer.send_async(value, lambda *_: None, partition_key=f"k{number % 23}")
        producer.flush()
        producer.close()
        self.written += Counter(values)

    def read(self, plan) -> list[bytes]:
        values, receipts = [], []
        for split in plan.splits:
            with closing(self.windows.system.read(plan, split, ["value"])) as reader:
                values += [value for batch in reader for value in batch.column("value").to_pylist()]
                receipts.append(reader.receipt)
        compare(plan, self.windows.system.explain(plan, receipts, on_loss="fail"), seconds=0)
        return values


def test_no_message_is_lost_or_doubled_by_what_befalls_recorders_and_partitions(
    options, tmp_path, pulsar_server, pulsar_namespace, pulsar_peer
):
    seed = chosen_seed()
    chance = random.Random(seed)  # noqa: S311 - a test's seed
    topic = f"persistent://{pulsar_namespace}/orders"
    source = PulsarSource(pattern=f"persistent://{pulsar_namespace}/.*")
    pulsar_server.create_topic(topic, 2)
    stream = Stream(source, options, f"sqlite:///{tmp_path / 'journal.db'}", pulsar_peer)
    start = now()
    stream.recorders.once("first")
    with stream.recorders.running("one", "two"):
        stream.batch(topic)
        pulsar_server.create_topic(f"{topic}-late")
        stream.batch(f"{topic}-late")
        stream.batch(topic)
    stream.recorders.killed()
    gap = now()
    stream.batch(topic)
    pulsar_server.admin("POST", f"persistent/{pulsar_namespace}/orders/partitions", 4)
    stream.batch(topic)
    with stream.recorders.running("three", "two"):
        stream.batch(topic)
        stream.batch(f"{topic}-late")
    stream.recorders.once("last")
    end = stream.windows.journal.recorded_cuts(source.key, 1)[0].sampled_from
    between = [start + chance.random() * (end - start) for _ in range(6)]
    plans = [stream.windows.plan(*pair) for pair in pairwise(sorted([start, *between, gap, end]))]
    entries = stream.windows.journal.recorded_cuts(source.key, 1000)
    assert (len(entries[0].cut), len(entries[-1].cut)) == (2, 5)
    assert {entry.recorder for entry in entries} == {"first", "one", "two", "three", "last"}
    read = Counter(value for plan in plans for value in stream.read(plan))
    assert read == stream.written, f"STREAMS_SEED={seed}"
