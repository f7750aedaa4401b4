from dataclasses import replace

import pytest

from airflow_provider_streams.errors import SourceReplaced
from airflow_provider_streams.model.plan.plan import PlanRequest
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pulsar.metadata.incarnation import incarnation_of
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from tests.unit.systems.pulsar.cluster import EPOCH_MS, Cluster, Stored, Topic, at_ms

NAME = "persistent://public/default/t"
PARTS = "persistent://public/default/p"


@pytest.fixture
def cluster():
    cluster = Cluster(partitions={PARTS: 2})
    for name, ledger in (("t", 10), ("p-partition-0", 20), ("p-partition-1", 30)):
        cluster.add(name, Topic.of([Stored(EPOCH_MS)] * 8, first_ledger=ledger))
    return cluster


def plan(cluster, *topics):
    request = PlanRequest(PulsarSource(topics or ("t", "p")), Window(at_ms(EPOCH_MS), at_ms(EPOCH_MS + 1)), "r")
    return cluster.plan(request, now=at_ms(EPOCH_MS * 2))


def check(cluster, planned):
    cluster.requests.clear()
    cluster.ask(lambda planner: planner.check_origin(planned))


def test_a_plan_knows_when_each_shard_was_made(cluster):
    made = at_ms(EPOCH_MS).isoformat()
    assert dict(plan(cluster).source.incarnation) == dict.fromkeys(cluster.topics, made)


def test_the_same_life_is_accepted_with_two_calls_a_topic(cluster):
    planned = plan(cluster)
    topic = cluster.topics[NAME]
    topic.trim(1, EPOCH_MS + 5)
    topic.ledgers[99] = []
    cluster.partitions[PARTS] = 3
    cluster.add("p-partition-2", Topic.of([], first_ledger=40))
    check(cluster, planned)
    assert len(cluster.requests) == 4


def test_the_identity_decides_the_fingerprint(cluster):
    planned = plan(cluster, "t")
    cluster.topics[NAME].created_ms += 1
    assert plan(cluster, "t").fingerprint != planned.fingerprint


@pytest.mark.parametrize("shard", [NAME, f"{PARTS}-partition-1"])
def test_another_life_of_any_shard_is_refused(cluster, shard):
    planned = plan(cluster)
    cluster.topics[shard].created_ms += 1
    with pytest.raises(SourceReplaced) as caught:
        check(cluster, planned)
    assert caught.value.source == shard


def test_of_a_topic_that_is_gone_the_read_tells(cluster):
    planned = plan(cluster)
    del cluster.topics[NAME]
    check(cluster, planned)


@pytest.mark.parametrize("created_ms", [0, None])
def test_a_store_that_keeps_no_times_gives_no_identity(cluster, created_ms):
    topic = cluster.topics[NAME]
    topic.created_ms = 0
    assert plan(cluster, "t").source.incarnation == ()
    assert incarnation_of(None) is None


def without_identity(planned):
    return replace(planned, source=replace(planned.source, incarnation=()))


def test_without_identities_ledgers_and_their_entries_are_compared(cluster):
    planned = without_identity(plan(cluster, "t"))
    check(cluster, planned)
    topic = cluster.topics[NAME]
    topic.ledgers[13].append(Stored(EPOCH_MS))
    check(cluster, planned)
    topic.ledgers[10].pop()
    with pytest.raises(SourceReplaced, match="5 entries in ledger 10"):
        check(cluster, planned)


def test_numbers_of_ledgers_only_grow_on_one_cluster(cluster):
    planned = without_identity(plan(cluster, "t"))
    cluster.topics[NAME].ledgers = {77: []}
    check(cluster, planned), "they may have been trimmed"
    cluster.topics[NAME].ledgers = {3: [Stored(EPOCH_MS)]}
    with pytest.raises(SourceReplaced, match="ledgers up to 3"):
        check(cluster, planned)


def test_without_identities_the_clusters_name_is_compared(cluster):
    planned = without_identity(plan(cluster, "t"))
    with pytest.raises(SourceReplaced, match="the cluster elsewhere"):
        check(cluster, replace(planned, source=replace(planned.source, cluster="elsewhere")))
