"""A real Pulsar broker: what its settings promise, and that data outlives a crash."""

from pathlib import Path

import httpx
import pulsar
import pytest

from airflow_provider_streams.testing.plugin import LEDGER_ENTRIES
from stream_servers import QUICK_START, PulsarServer, wait_until
from stream_servers.java import run_java
from tests.integration.listening import places_of

pytestmark = [pytest.mark.pulsar, pytest.mark.slow]


def connect(server, patience_seconds=60, **login):
    quiet = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    return pulsar.Client(server.service_url, logger=quiet, operation_timeout_seconds=patience_seconds, **login)


def publish(server, topic, count, start=0, **login):
    client = connect(server, **login)
    try:
        producer = client.create_producer(topic, batching_enabled=False)
        for number in range(start, start + count):
            producer.send(str(number).encode())
    finally:
        client.close()


def read(server, topic, count):
    client = connect(server)
    try:
        reader = client.create_reader(topic, pulsar.MessageId.earliest)
        return [int(reader.read_next(timeout_millis=60_000).data()) for _ in range(count)]
    finally:
        client.close()


def ledgers(server, topic):
    stats = server.admin("GET", f"{topic.replace('://', '/', 1)}/internalStats")
    return [ledger["entries"] for ledger in stats["ledgers"]]


def test_it_listens_on_loopback_alone_and_on_the_ports_it_names(pulsar_server):
    assert places_of(pulsar_server.pid) == sorted((port, "127.0.0.1") for port in pulsar_server.port.values())


def test_an_ordinary_topic_crosses_ledgers_and_keeps_them(pulsar_server, pulsar_namespace):
    topic = pulsar_server.create_topic(f"{pulsar_namespace}/many")
    publish(pulsar_server, topic, 2 * LEDGER_ENTRIES + 1)
    assert ledgers(pulsar_server, topic)[:2] == [LEDGER_ENTRIES, LEDGER_ENTRIES]
    assert read(pulsar_server, topic, 2 * LEDGER_ENTRIES + 1) == list(range(2 * LEDGER_ENTRIES + 1))


def test_retention_set_to_nothing_trims(pulsar_server, pulsar_namespace):
    topic = pulsar_server.create_topic(f"{pulsar_namespace}/trimmed")
    publish(pulsar_server, topic, 2 * LEDGER_ENTRIES + 1)
    pulsar_server.set_retention(pulsar_namespace, minutes=0, megabytes=0)
    wait_until(lambda: sum(ledgers(pulsar_server, topic)) < 2 * LEDGER_ENTRIES, "the trim")


def test_no_topic_comes_from_looking_at_it(pulsar_server, pulsar_namespace, pulsar_unchanged):
    with pytest.raises(pulsar.TopicNotFound):
        read(pulsar_server, f"persistent://{pulsar_namespace}/never", 1)
    assert pulsar_server.topics(pulsar_namespace) == []


def test_a_java_peer_reads_what_we_wrote(pulsar_server, pulsar_namespace, tmp_path):
    topic = pulsar_server.create_topic(f"{pulsar_namespace}/peer")
    publish(pulsar_server, topic, 3)
    source = tmp_path / "Peer.java"
    source.write_text(
        """
        import org.apache.pulsar.client.api.*;
        public class Peer {
            public static void main(String[] a) throws Exception {
                try (PulsarClient c = PulsarClient.builder().serviceUrl(a[0]).build();
                     Reader<byte[]> r = c.newReader().topic(a[1]).startMessageId(MessageId.earliest).create()) {
                    while (r.hasMessageAvailable()) System.out.println("read " + new String(r.readNext().getData()));
                }
            }
        }
        """
    )
    told = run_java(source, [pulsar_server.service_url, topic], pulsar_server.classpath)
    assert [line for line in told.splitlines() if line.startswith("read ")] == ["read 0", "read 1", "read 2"]


def test_data_outlives_a_crash_and_a_restart():
    with PulsarServer(ledger_entries=10, jvm=QUICK_START) as server:
        topic = server.create_topic("public/default/kept")
        publish(server, topic, 25)
        server.kill()
        with pytest.raises(httpx.TransportError):
            server.topics("public/default")
        server.start()
        assert read(server, topic, 25) == list(range(25))
        publish(server, topic, 5, start=25)
        server.restart()
        assert read(server, topic, 30) == list(range(30))


def test_tokens_decide_who_may_do_what(pulsar_auth_server):
    server = pulsar_auth_server
    topic = server.create_topic("public/default/guarded")
    server.grant("public/default", "writer", ["produce"])
    publish(server, topic, 1, authentication=pulsar.AuthenticationToken(server.token("writer")))
    with pytest.raises(pulsar.AuthorizationError):
        publish(server, topic, 1, authentication=pulsar.AuthenticationToken(server.token("stranger")))
    for login in ({}, {"authentication": pulsar.AuthenticationToken(server.token("writer", valid_seconds=-60))}):
        with pytest.raises(pulsar.PulsarException):
            publish(server, topic, 1, patience_seconds=5, **login)
    assert httpx.get(f"{server.admin_url}/admin/v2/tenants").status_code == 401


def test_no_secret_is_on_the_command_line_or_readable_by_others(pulsar_auth_server):
    command = Path(f"/proc/{pulsar_auth_server.pid}/cmdline").read_text()
    assert "standalone" in command
    assert pulsar_auth_server.token() not in command
    for name in ("standalone.conf", "token.key"):
        assert (pulsar_auth_server.home / name).stat().st_mode & 0o077 == 0
