"""The whole way over TLS: REST, lookup and reading, with a token or with a client's certificate."""

from __future__ import annotations

import secrets
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pulsar
import pytest

from airflow_provider_streams.errors import AuthenticationFailed, CertificateNotTrusted
from airflow_provider_streams.model.plan import PlanRequest
from airflow_provider_streams.model.receipt import compare
from airflow_provider_streams.model.source import PulsarSource
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.systems.pulsar.system import PulsarSystem

pytestmark = pytest.mark.pulsar


@pytest.fixture(scope="module")
def topic(pulsar_auth_server):
    """A topic of 100 messages, written over TLS by the official client."""
    server, namespace = pulsar_auth_server, f"public/tls-{secrets.token_hex(4)}"
    server.create_namespace(namespace)
    topic = server.create_topic(f"{namespace}/t")
    files = server.certificates
    client = pulsar.Client(
        server.service_url_tls,
        authentication=pulsar.AuthenticationTLS(str(files.client.certificate), str(files.client.key)),
        tls_trust_certs_file_path=str(files.authority),
        tls_validate_hostname=True,
    )
    with closing(client):
        producer = client.create_producer(topic)
        for number in range(100):
            producer.send(b"%d" % number)
    yield topic
    server.delete_namespace(namespace)


def by_token(server):
    return {"token": server.token()}


def by_certificate(server):
    files = server.certificates.client
    return {"tls_cert_file": str(files.certificate), "tls_key_file": str(files.key)}


def connected(server, **options):
    urls = {"service_url": server.service_url_tls, "admin_url": server.admin_url_tls}
    return PulsarSystem.from_options({**urls, "tls_ca_file": str(server.certificates.authority), **options})


def request(topic):
    now = datetime.now(UTC)
    window = Window(now - timedelta(hours=1), now - timedelta(milliseconds=1))
    return PlanRequest(PulsarSource(topic), window, "d.read", slack=timedelta(0))


@pytest.mark.parametrize("credentials", [by_token, by_certificate])
def test_a_window_is_planned_and_read(pulsar_auth_server, topic, credentials):
    with closing(connected(pulsar_auth_server, **credentials(pulsar_auth_server))) as system:
        plan = system.plan(request(topic))
        values, receipts = [], []
        for split in plan.splits:
            with closing(system.read(plan, split, ["value"])) as reader:
                values += [value for batch in reader for value in batch["value"].to_pylist()]
                receipts.append(reader.receipt)
    assert values == [b"%d" % number for number in range(100)]
    assert compare(plan, receipts, seconds=0).verdict == "complete"


def test_a_certificate_of_an_unknown_authority_ends_it(pulsar_auth_server, topic):
    options = {**by_token(pulsar_auth_server), "tls_ca_file": ""}
    with (
        closing(connected(pulsar_auth_server, **options)) as system,
        pytest.raises(CertificateNotTrusted, match="tls_ca_file") as caught,
    ):
        system.plan(request(topic))
    assert not caught.value.retryable


def test_a_host_must_bear_the_name_in_its_certificate_unless_told_otherwise(pulsar_auth_server, topic):
    """`localhost` is the same broker, but the certificate does not name it."""
    strangers = {
        "service_url": pulsar_auth_server.service_url_tls.replace("127.0.0.1", "localhost"),
        "admin_url": pulsar_auth_server.admin_url_tls.replace("127.0.0.1", "localhost"),
        **by_token(pulsar_auth_server),
    }
    with closing(connected(pulsar_auth_server, **strangers)) as system, pytest.raises(CertificateNotTrusted):
        system.plan(request(topic))
    relaxed = {**strangers, "tls_verify_hostname": "false"}
    with closing(connected(pulsar_auth_server, **relaxed)) as system:
        assert not system.plan(request(topic)).is_empty


def test_without_credentials_a_broker_that_asks_for_them_refuses(pulsar_auth_server, topic):
    with closing(connected(pulsar_auth_server)) as system, pytest.raises(AuthenticationFailed):
        system.plan(request(topic))
