"""A plan is read only on the cluster, and in the incarnation of its topics, that it was made of."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from airflow_provider_streams.errors import NotAuthorized, SourceReplaced
from airflow_provider_streams.model.plan.plan import Plan, PlanRequest
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.pulsar.system import PulsarSystem
from stream_servers import QUICK_START, PulsarServer
from stream_servers.waiting import wait_until

pytestmark = pytest.mark.pulsar

ROLE = "reader"


@pytest.fixture(scope="module")
def server():
    with PulsarServer(token_auth=True, ledger_entries=20, jvm=QUICK_START) as server:
        yield server


@pytest.fixture
def system(server):
    return connected(server, server.token())


def connected(server, token):
    return PulsarSystem.from_options({"service_url": server.service_url, "admin_url": server.admin_url, "token": token})


def write(server, topic, values):
    import pulsar

    client = pulsar.Client(server.service_url, authentication=pulsar.AuthenticationToken(server.token()))
    producer = client.create_producer(topic, batching_enabled=False, block_if_queue_full=True)
    for value in values:
        producer.send_async(value, lambda *_: None)
    producer.flush()
    client.close()


def plan(system, topic):
    now = datetime.now(UTC)
    window = Window(now - timedelta(hours=1), now - timedelta(milliseconds=1))
    source = topic if isinstance(topic, PulsarSource) else PulsarSource(topic)
    made = system.plan(PlanRequest(source, window, "tests", slack=timedelta(0), on_loss="record"))
    return Plan.from_json(made.to_json())


def read(system, made):
    rows = []
    for split in made.splits:
        reader = system.read(made, split, ["value"])
        rows += [value for batch in reader for value in batch.column(0).to_pylist()]
    return rows


def ledgers(server, topic):
    return [row["ledgerId"] for row in server.admin("GET", f"{topic.replace('://', '/', 1)}/internalStats")["ledgers"]]


@pytest.mark.slow
def test_a_life_outlasts_all_that_may_happen_to_a_topic(server, system):
    topic = server.create_topic("public/default/lasting", 3)
    first = f"{topic}-partition-0"
    path, partition = (name.replace("://", "/", 1) for name in (topic, first))
    write(server, first, [b"%d" % number for number in range(50)])
    made = plan(system, topic)
    assert [shard for shard, _ in made.source.incarnation] == [f"{topic}-partition-{number}" for number in range(3)]

    def checked():
        system.check_origin(made)
        assert plan(system, topic).source.incarnation[:3] == made.source.incarnation

    server.admin("PUT", f"{partition}/unload")
    checked()
    server.admin("POST", f"{path}/partitions", 5)
    checked()
    server.admin("PUT", f"{partition}/properties", {"a": "b"})
    server.admin("PUT", f"{partition}/compaction")
    server.set_retention("public/default", minutes=0, megabytes=0)
    wait_until(lambda: trimmed(server, first), "the first ledgers are gone")
    checked()
    server.set_retention("public/default")
    server.restart()
    checked()
    server.admin("POST", f"{path}/terminate/partitions")
    checked()


def trimmed(server, topic):
    server.admin("POST", f"{topic.replace('://', '/', 1)}/trim")
    return len(ledgers(server, topic)) == 1


@pytest.mark.parametrize("partitions", [None, 2])
def test_a_topic_that_was_deleted_and_made_anew_is_another_one(server, system, partitions):
    topic = server.create_topic(f"public/default/anew-{partitions}", partitions)
    shard = topic if partitions is None else f"{topic}-partition-1"
    write(server, shard, [b"1"] * 30)
    made = plan(system, topic)
    path = topic.replace("://", "/", 1)
    server.admin("DELETE", f"{path}{'/partitions' if partitions else ''}?force=true")
    system.check_origin(made), "of a topic that is gone, the read tells"
    server.create_topic(topic.removeprefix("persistent://"), partitions)
    write(server, shard, [b"2"] * 30)
    with pytest.raises(SourceReplaced, match="made at"):
        system.check_origin(made)
    assert made.fingerprint != plan(system, topic).fingerprint


def test_who_may_only_consume_knows_it_too(server, system):
    topic = server.create_topic("public/default/granted")
    server.grant("public/default", ROLE, ["consume"])
    write(server, topic, [b"1"] * 30)
    user = connected(server, server.token(ROLE))
    made = plan(user, topic)
    assert made.source.incarnation == plan(system, topic).source.incarnation != ()
    user.check_origin(made)


def test_a_wiped_cluster_under_the_same_address_and_names_is_another_one():
    ports: dict[str, int] = {}
    incarnations = []
    for life in (b"one", b"two"):
        server = PulsarServer(ledger_entries=20, jvm=QUICK_START)
        server.port.update(ports)
        with server:
            ports = dict(server.port)
            topic = server.create_topic("public/default/t")
            stamped = SimpleNamespace(service_url=server.service_url, token=lambda: "none")
            write(stamped, topic, [b"%s %d" % (life, number) for number in range(400)])
            system = connected(server, "")
            incarnations.append((plan(system, topic), ledgers(server, topic)))
            if life == b"two":
                (before, then), (_, now) = incarnations
                # what makes it dangerous: ledgers of the same numbers, so that a reader would be content
                assert set(then) & set(now)
                assert any(row.startswith(b"two") for row in read(system, replace(before, filter=None)))
                with pytest.raises(SourceReplaced, match="but the connection leads to one made at"):
                    system.check_origin(before)


def test_who_may_read_one_topic_of_a_namespace_is_refused_its_list_and_is_shown_no_part_of_it(server):
    topics = [server.create_topic(f"public/default/partly-{letter}") for letter in "ab"]
    server.admin("POST", f"{topics[0].replace('://', '/', 1)}/permissions/partly", ["consume"])
    system = connected(server, server.token("partly"))
    assert plan(system, topics[0]).source.names == (topics[0],)
    source = PulsarSource(pattern="persistent://public/default/partly-.*")
    for ask in (system.observe_tail, system.singles, system.tail, lambda one: plan(system, one)):
        with pytest.raises(NotAuthorized, match="public/default"):
            ask(source)
