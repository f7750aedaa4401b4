"""Only some partitions, and only some keys, on a real broker: what is left out is counted, and others land it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from airflow_provider_streams.errors import InvalidRequest, SourceNotFound
from airflow_provider_streams.model.plan.plan import Plan, PlanRequest
from airflow_provider_streams.model.plan.receipt import compare
from airflow_provider_streams.model.stream.hold import HoldRequest
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pulsar.client.admin.client import AdminClient
from airflow_provider_streams.systems.pulsar.client.queries import ask, topics_of
from airflow_provider_streams.systems.pulsar.metadata import topics
from airflow_provider_streams.systems.pulsar.operations import hold
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.pulsar.system import PulsarSystem

pytestmark = pytest.mark.pulsar

WINDOW = Window(datetime(2026, 11, 20, 10, tzinfo=UTC), datetime(2026, 11, 20, 11, tzinfo=UTC))
PARTITIONS, COUNT = 4, 300


@pytest.fixture
def system(pulsar_server):
    return PulsarSystem.from_options({"service_url": pulsar_server.service_url, "admin_url": pulsar_server.admin_url})


@pytest.fixture
def topic(bench):
    """Numbers with keys: batched by chance and by key, and one in four without a key."""
    import pulsar

    topic = bench.topic(partitions=PARTITIONS)
    keyed = {"batching_type": pulsar.BatchingType.KeyBased}
    for batch, settings in ((20, {}), (20, keyed), (1, {})):
        bench.write(topic, [b"%d" % n for n in range(COUNT)], batch=batch, send=key_of, **settings)
    return topic


def key_of(number):
    return {"partition_key": f"k{number % 9}"} if number % 4 else {}


def read(system, source):
    plan = system.plan(PlanRequest(source, WINDOW, "r", basis="chained"))
    assert Plan.from_json(plan.to_json()) == plan
    rows, receipts = [], []
    for split in plan.splits:
        with closing(system.read(plan, split, ["partition", "key", "value"])) as reader:
            rows += [tuple(row.values()) for batch in reader for row in batch.to_pylist()]
            receipts.append(reader.receipt)
    receipt = compare(plan, system.explain(plan, receipts, on_loss="fail"), seconds=0)
    assert receipt.rows == len(rows)
    return plan, rows, receipt.totals["filtered"]


def test_partitions_keys_and_hashes_choose_what_lands(system, topic):
    _, everything, _ = read(system, PulsarSource(topic))
    assert len(everything) == 3 * COUNT

    plan, rows, filtered = read(system, PulsarSource(topic, partitions=[0, 3]))
    assert sorted(rows, key=str) == sorted((row for row in everything if row[0] in (0, 3)), key=str)
    assert filtered == 0
    assert [shard.rpartition("-")[2] for shard in plan.end_cut] == ["0", "3"]
    _, others, _ = read(system, PulsarSource(topic, partitions=[1, 2]))
    assert sorted(rows + others, key=str) == sorted(everything, key=str)

    plan, rows, filtered = read(system, PulsarSource(topic, keys=["k1", "k5", "unknown"]))
    assert sorted(rows, key=str) == sorted((row for row in everything if row[1] in ("k1", "k5")), key=str)
    assert filtered == len(everything) - len(rows)
    assert any("all is read" in remark for remark in plan.remarks)

    halves = [read(system, PulsarSource(topic, key_hash_ranges=[span])) for span in ((0, 32767), (32768, 65535))]
    assert sorted((row for _, rows, _ in halves for row in rows), key=str) == sorted(everything, key=str)
    assert all(rows for _, rows, _ in halves)
    keys = [{row[1] for row in rows} for _, rows, _ in halves]
    assert not keys[0] & keys[1], "each key is in one half"


def test_partitions_that_there_are_not_are_missed(system, topic, bench):
    with pytest.raises(SourceNotFound, match="partition 4"):
        system.tail(PulsarSource(topic, partitions=[0, 4]))
    with pytest.raises(SourceNotFound, match="partition 0"):
        system.tail(PulsarSource(bench.topic("single"), partitions=[0]))
    by_pattern = PulsarSource(pattern=f"{topic}.*", partitions=[0, 4])
    assert [shard.rpartition("-")[2] for shard in system.tail(by_pattern)] == ["0"]


def test_a_hold_on_some_partitions_stays_on_these(bench, topic):
    with AdminClient(bench.endpoint) as admin:
        some, others = (PulsarSource(topic, partitions=numbers) for numbers in ([0, 1], [2, 3]))
        request = HoldRequest(some, "nightly", "r")
        placed = [ask(admin, hold.place(replace(request, source=source)))["placed"] for source in (some, others)]
        assert [len(each) for each in placed] == [2, 2]
        assert ask(admin, hold.release(some, "nightly", "r"))["released"] == placed[0]
        assert [len(one.positions) for one in ask(admin, hold.holds(others))] == [2]
        with pytest.raises(InvalidRequest, match="whole topics"):
            ask(admin, topics.stats(ask(admin, topics_of(some))))
