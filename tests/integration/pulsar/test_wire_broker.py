"""Questions to a real broker, with and without rights, and what they leave behind: nothing."""

from __future__ import annotations

import time

import pytest

from airflow_provider_streams.errors import AuthenticationFailed, NotAuthorized, ProtocolError, SourceNotFound
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.systems.pulsar.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.wire.broker import BrokerClient
from airflow_provider_streams.systems.pulsar.wire.commands import (
    CloseConsumer,
    Connect,
    LastMessageId,
    Lookup,
    MessageIdData,
    Pong,
    Subscribe,
)
from airflow_provider_streams.systems.pulsar.wire.connection import Connection

pytestmark = pytest.mark.pulsar


@pytest.fixture
def asking(bench):
    with BrokerClient(bench.endpoint) as client:
        yield client


def test_the_last_message_is_that_of_the_official_client(bench, asking):
    topic = bench.topic()
    assert asking.last_message_id(topic) is None
    for batch in (1, 10):
        bench.write(topic, [b"x"] * 60, batch=batch)
        assert asking.last_message_id(topic) == Position.of(*bench.peer(topic)[-1][0])


def test_a_compacted_view_of_a_topic_that_was_never_compacted_ends_there_too(bench, asking):
    topic = bench.topic()
    bench.write(topic, [b"x"] * 3)
    last = asking.last_message_id(topic)
    assert asking.last_message_id(topic, read_compacted=True) == last


def test_the_entry_before_crosses_ledgers(bench, asking):
    topic = bench.topic()
    bench.write(topic, [b"x"] * 120)
    first, second = bench.spans(topic)[:2]
    assert asking.entry_before(topic, Position.of(second.run, 0, -1)) == Position.of(first.run, first.end - 1, -1)
    assert asking.entry_before(topic, Position.of(second.run, 7, -1)) == Position.of(second.run, 6, -1)
    assert asking.entry_before(topic, Position.of(first.run, 0, -1)) is None


def test_many_partitions_are_asked_together_and_nothing_is_left(bench, asking, monkeypatch):
    topic = bench.topic("wide", partitions=50)
    assert asking.partitions(topic) == 50
    names = [f"{topic}-partition-{number}" for number in range(50)]
    bench.write(names[7], [b"x"])
    asking.last_message_ids(names)  # loads the topics
    before = bench.server.inventory()
    sent, send = [], Connection.send

    def noted(connection, *commands):
        sent.append([type(command) for command in commands])
        send(connection, *commands)

    monkeypatch.setattr(Connection, "send", noted)
    asking.close()  # and with that it forgets the topics' owners
    found = asking.last_message_ids(names)
    assert [name for name in names if found[name]] == [names[7]]
    together = [[kind] * 50 for kind in (Lookup, Subscribe, LastMessageId, CloseConsumer)]
    # the broker may be known by two names, and is then called twice
    assert [kinds for kinds in sent if kinds not in ([Pong], [Connect])] == together, (
        "50 questions of a kind are one message to the broker"
    )
    assert bench.server.inventory() == before
    assert not set(names) - set(asking.topics(bench.namespace))


def test_looking_at_a_missing_topic_does_not_make_it(bench, asking):
    missing = f"persistent://{bench.namespace}/missing"
    # the broker's own switch is on here: our commands must be what prevents it
    switch = {"allowAutoTopicCreation": True, "topicType": "non-partitioned"}
    bench.server.admin("POST", f"namespaces/{bench.namespace}/autoTopicCreation", switch)
    for ask in (asking.partitions, asking.last_message_id):
        with pytest.raises(SourceNotFound, match="missing"):
            ask(missing)
    with pytest.raises(SourceNotFound):
        asking.subscribe(missing, MessageIdData(1, 0))
    with pytest.raises(SourceNotFound):
        asking.last_message_id("persistent://public/no-such-namespace/t")
    assert asking.topics(bench.namespace) == ()


def test_an_unpartitioned_topic_has_no_partitions(bench, asking):
    assert asking.partitions(bench.topic()) == 0


def test_the_admin_port_is_named_as_a_mistake(bench):
    url = bench.server.admin_url.replace("http://", "pulsar://")
    with pytest.raises(ProtocolError, match="HTTP"), BrokerClient(Endpoint(url)) as client:
        client.partitions("persistent://public/default/t")


def test_the_answer_survives_an_unload(bench, asking):
    topic = bench.topic()
    bench.write(topic, [b"x"] * 3)
    last = asking.last_message_id(topic)
    for _ in range(3):
        bench.unload(topic)
        assert asking.last_message_id(topic) == last


@pytest.fixture
def secured(pulsar_auth_server):
    """A topic that the role `reader` may consume, and others may not."""
    namespace = f"public/secured-{time.time_ns():x}"
    pulsar_auth_server.create_namespace(namespace)
    pulsar_auth_server.grant(namespace, "reader", ["consume"])
    yield pulsar_auth_server, pulsar_auth_server.create_topic(f"{namespace}/t")
    pulsar_auth_server.delete_namespace(namespace)


def last(server, topic, **credentials):
    with BrokerClient(Endpoint(server.service_url, **credentials)) as client:
        return client.last_message_id(topic)


def test_consume_is_enough_to_ask(secured):
    server, topic = secured
    token = server.token("reader")
    assert last(server, topic, token=token) is None
    with BrokerClient(Endpoint(server.service_url, token=token)) as client:
        assert client.partitions(topic) == 0


@pytest.mark.parametrize("token", ["", "wrong", "a.b.c"])
def test_missing_or_wrong_tokens_are_authentication_failures(secured, token):
    server, topic = secured
    with pytest.raises(AuthenticationFailed) as caught:
        last(server, topic, token=token)
    assert not token or token not in str(caught.value)


def test_an_expired_token_is_an_authentication_failure(secured):
    server, topic = secured
    with pytest.raises(AuthenticationFailed, match="the token expired at"):
        last(server, topic, token=server.token("reader", valid_seconds=-60))


def test_a_role_without_rights_is_not_authorized(secured):
    server, topic = secured
    with pytest.raises(NotAuthorized):
        last(server, topic, token=server.token("nobody"))
