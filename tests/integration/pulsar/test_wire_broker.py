"""Questions to a real broker, with and without rights, which leave nothing."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from airflow_provider_streams.errors import (
    AuthenticationFailed,
    InvalidRequest,
    NotAuthorized,
    ProtocolError,
    SourceNotFound,
)
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.pulsar.client.admin import requests
from airflow_provider_streams.systems.pulsar.client.admin.client import AdminClient
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.client.wire import commands_pb2 as pb
from airflow_provider_streams.systems.pulsar.client.wire.broker_client import BrokerClient
from airflow_provider_streams.systems.pulsar.client.wire.connection import Connection

pytestmark = pytest.mark.pulsar

TOGETHER = (pb.CommandLookupTopic, pb.CommandSubscribe, pb.CommandGetLastMessageId, pb.CommandCloseConsumer)
"""What is sent of a topic to find its end."""


@pytest.fixture
def asking(bench):
    with BrokerClient(bench.endpoint) as client:
        yield client


def test_the_last_message_is_that_of_the_official_client(bench, asking):
    topic = bench.topic()
    assert asking.last_message_ids([topic])[topic] is None
    for batch in (1, 10):
        bench.write(topic, [b"x"] * 60, batch=batch)
        assert asking.last_message_ids([topic])[topic] == Position.of(*bench.peer(topic)[-1][0])


def test_the_entry_before_crosses_ledgers(bench, asking):
    topic = bench.topic()
    bench.write(topic, [b"x"] * 120)
    first, second = bench.spans(topic)[:2]
    assert asking.entry_before(topic, (second.run, 0)) == (first.run, first.end - 1)
    assert asking.entry_before(topic, (second.run, 7)) == (second.run, 6)
    assert asking.entry_before(topic, (first.run, 0)) is None


def test_many_partitions_are_asked_together_and_nothing_is_left(bench, asking, monkeypatch):
    topic = bench.topic("wide", partitions=50)
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
    together = [[kind] * 50 for kind in TOGETHER]
    # the broker may be known by two names, and is then called twice
    assert [kinds for kinds in sent if kinds not in ([pb.CommandPong], [pb.CommandConnect])] == together, (
        "50 questions of a kind are one message to the broker"
    )
    assert bench.server.inventory() == before
    assert not set(names) - set(_topics(bench))


def test_looking_at_a_missing_topic_does_not_make_it(bench, asking):
    missing = f"persistent://{bench.namespace}/missing"
    # the broker's own switch is on here: our commands must be what prevents it
    switch = {"allowAutoTopicCreation": True, "topicType": "non-partitioned"}
    bench.server.admin("POST", f"namespaces/{bench.namespace}/autoTopicCreation", switch)
    with pytest.raises(SourceNotFound, match="missing"):
        asking.last_message_ids([missing])
    with pytest.raises(SourceNotFound):
        asking.subscribe(missing, (1, 0))
    with pytest.raises(SourceNotFound):
        asking.last_message_ids(["persistent://public/no-such-namespace/t"])
    assert _topics(bench) == ()


def _topics(bench):
    with AdminClient(bench.endpoint) as admin:
        return admin(requests.topics(bench.namespace))


def test_the_admin_port_is_named_as_a_mistake(bench):
    url = bench.server.admin_url.replace("http://", "pulsar://")
    with pytest.raises(ProtocolError, match="HTTP"), BrokerClient(Endpoint(url)) as client:
        client.last_message_ids(["persistent://public/default/t"])


def test_the_answer_survives_an_unload(bench, asking):
    topic = bench.topic()
    bench.write(topic, [b"x"] * 3)
    last = asking.last_message_ids([topic])[topic]
    for _ in range(3):
        bench.unload(topic)
        assert asking.last_message_ids([topic])[topic] == last


def test_a_listener_that_no_broker_advertises_is_named_at_once(bench):
    endpoint = replace(bench.endpoint, listener_name="nowhere")
    with BrokerClient(endpoint) as client, pytest.raises(InvalidRequest, match="listener_name") as caught:
        client.last_message_ids([bench.topic()])
    assert not caught.value.retryable


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
        return client.last_message_ids([topic])[topic]


def test_consume_is_enough_to_ask(secured):
    server, topic = secured
    token = server.token("reader")
    assert last(server, topic, token=token) is None


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
        last(server, topic, token=server.token("stranger"))
