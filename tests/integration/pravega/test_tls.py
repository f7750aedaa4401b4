"""The whole way over TLS with accounts: controller, segment store and REST."""

from __future__ import annotations

import asyncio
from contextlib import closing
from urllib.parse import quote

import pytest

from airflow_provider_streams.errors import CertificateNotTrusted
from airflow_provider_streams.hooks.pravega import PravegaHook
from airflow_provider_streams.systems.pravega.client.segment_store_connection import AsyncConnection, Connection
from airflow_provider_streams.systems.pravega.operations.health import UP, health
from airflow_provider_streams.systems.pravega.planning import cuts
from airflow_provider_streams.systems.pravega.system import PravegaSystem
from stream_servers import QUICK_START, PravegaServer
from stream_servers.pravega import ADMIN
from tests.integration.pravega.conftest import Lab, Peer

pytestmark = pytest.mark.pravega


@pytest.fixture(scope="module")
def server():
    with PravegaServer(accounts={}, tls=True, heap="1g", jvm=QUICK_START) as one:
        one.create_scope("s")
        yield one


@pytest.fixture(scope="module")
def stream(server, tmp_path_factory):
    """100 events, written over TLS by the Java client."""
    stream = server.create_stream("s", "t")
    peer = Peer(server, tmp_path_factory.mktemp("peer") / "logback.xml")
    with closing(peer):
        peer.write(stream, 100)
    return stream


def connected(server, **options):
    given = {
        "controller": server.controller_uri,
        "rest_url": server.rest_url,
        "username": ADMIN,
        "password": server.password(),
        "tls_ca_file": str(server.certificates.authority),
    }
    return closing(PravegaSystem.from_options({**given, **options}))


STRANGER = "localhost"
"""The same server, but its certificate does not name it."""


def test_a_window_is_planned_and_read(server, stream):
    with connected(server) as system:
        lab = Lab(system, "s")
        events, receipt = lab.read(lab.plan(stream))
        assert len(events) == len(set(events)) == 100
        assert receipt.verdict == "complete"
        assert health(system.client) == dict.fromkeys(("controller", "segment store", "REST API"), UP)


def no_authority(_):
    return {"tls_ca_file": ""}


def another_name(server):
    return {"controller": server.controller_uri.replace("127.0.0.1", STRANGER)}


@pytest.mark.parametrize("options", [no_authority, another_name])
def test_a_controller_that_cannot_be_trusted_ends_it(server, stream, options):
    with connected(server, **options(server)) as system, pytest.raises(CertificateNotTrusted) as caught:
        system.client.run(cuts.tail(stream))
    assert not caught.value.retryable


def test_a_name_that_the_certificate_lacks_can_be_accepted(server, stream):
    with connected(server, **another_name(server), tls_verify_hostname="false") as system:
        lab = Lab(system, "s")
        assert len(lab.read(lab.plan(stream))[0]) == 100


def test_a_rest_api_that_cannot_be_trusted_is_named(server):
    with connected(server, rest_url=server.rest_url.replace("127.0.0.1", STRANGER)) as system:
        found = health(system.client)
    assert isinstance(found["REST API"], CertificateNotTrusted)
    assert found["controller"] == UP


def test_a_segment_store_that_cannot_be_trusted_ends_it(server):
    store = (STRANGER, server.port["segment_store"])
    with connected(server) as system:
        endpoint = system.client.endpoint
        with pytest.raises(CertificateNotTrusted):
            Connection(endpoint, store)
        with pytest.raises(CertificateNotTrusted):
            asyncio.run(AsyncConnection.open(endpoint, store))


SPELLINGS = [
    "tls://{user}:{password}@{address}/s?tls_ca_file={ca}",
    "pravega+tls://{user}:{password}@{address}/s?tls_ca_file={ca}",
    "pravega://tls://{user}:{password}@{address}/s?tls_ca_file={ca}",
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_uri_that_asks_for_tls_gets_it(server, monkeypatch, spelling):
    words = {
        "user": ADMIN,
        "password": quote(server.password(), safe=""),
        "address": server.controller_uri.partition("://")[2],
        "ca": quote(str(server.certificates.authority), safe=""),
    }
    monkeypatch.setenv("AIRFLOW_CONN_SPELT", spelling.format(**words))
    with closing(PravegaHook("spelt")) as hook:
        works, said = hook.test_connection()
    assert works, said
    assert f"Pravega at {server.controller_uri} accepts us" in said
