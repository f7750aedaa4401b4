"""Certificates are checked as the endpoint says, also where a redirect or a proxy leads to TLS."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_streams.errors import CertificateNotTrusted
from airflow_provider_streams.systems.connection.backoff import Backoff
from airflow_provider_streams.systems.pulsar.client.admin import requests
from airflow_provider_streams.systems.pulsar.client.admin.client import AdminClient, AsyncAdminClient
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from stream_servers.certificates import Certificates
from tests.unit.lake.iceberg.rest_servers import serving

ONCE = Backoff(attempts=1)


class Versioned(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        vars(self.server)["asked"].append(self.headers.get("Authorization"))
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"4.0")

    def log_message(self, *_: Any) -> None: ...


class Leading(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(307)
        self.send_header("Location", f"{vars(self.server)['target']}{self.path}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None: ...


class Proxy(BaseHTTPRequestHandler):
    """Passes the bytes of TLS on."""

    def do_CONNECT(self) -> None:
        vars(self.server)["asked"].append(self.path)
        host, _, port = self.path.partition(":")
        with socket.create_connection((host, int(port))) as other:
            self.send_response(200)
            self.end_headers()
            back = threading.Thread(target=passing_on, args=(other, self.connection))
            back.start()
            passing_on(self.connection, other)
            back.join()
        self.close_connection = True

    def log_message(self, *_: Any) -> None: ...


def passing_on(source: socket.socket, target: socket.socket) -> None:
    try:
        while part := source.recv(65536):
            target.sendall(part)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return  # the other end is gone


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates.make(tmp_path_factory.mktemp("certificates") / "tls", client="me")


@pytest.fixture
def secure(certificates: Certificates) -> Iterator[Any]:
    with serving(Versioned, certificates) as server:
        yield server


def host_of(server: Any) -> str:
    return f"127.0.0.1:{server.server_port}"


async def versions(address: str, authority: Path | None) -> list[str]:
    endpoint = Endpoint(
        "pulsar+ssl://127.0.0.1:1", admin_url=address, token="canary-87", tls_ca_file=str(authority or "")
    )
    with AdminClient(endpoint, backoff=ONCE) as blocking:
        found = [blocking(requests.brokers_version())]
    async with AsyncAdminClient(endpoint, backoff=ONCE) as client:
        return [*found, await client(requests.brokers_version())]


async def untrusting(address: str) -> None:
    endpoint = Endpoint("pulsar+ssl://127.0.0.1:1", admin_url=address, token="canary-87")
    with AdminClient(endpoint, backoff=ONCE) as blocking, pytest.raises(CertificateNotTrusted):
        blocking(requests.brokers_version())
    async with AsyncAdminClient(endpoint, backoff=ONCE) as client:
        with pytest.raises(CertificateNotTrusted):
            await client(requests.brokers_version())


@pytest.mark.parametrize("scheme", ["https", "HTTPS", "Https"])
async def test_certificates_are_checked_however_the_scheme_is_written(
    certificates: Certificates, secure: Any, scheme: str
) -> None:
    await untrusting(f"{scheme}://{host_of(secure)}")
    assert not secure.asked
    assert await versions(f"{scheme}://{host_of(secure)}", certificates.authority) == ["4.0", "4.0"]


async def test_a_redirect_to_tls_checks_the_certificate(certificates: Certificates, secure: Any) -> None:
    with serving(Leading, target=f"https://{host_of(secure)}") as plain:
        await untrusting(f"http://{host_of(plain)}")
        assert not secure.asked
        assert await versions(f"http://{host_of(plain)}", certificates.authority) == ["4.0", "4.0"]
    assert secure.asked == ["Bearer canary-87"] * 2


async def test_a_proxy_of_the_environment_changes_nothing_of_tls(
    certificates: Certificates, secure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(Proxy) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://{host_of(proxy)}")
        await untrusting(f"https://{host_of(secure)}")
        assert not secure.asked
        assert await versions(f"https://{host_of(secure)}", certificates.authority) == ["4.0", "4.0"]
        assert proxy.asked == [host_of(secure)] * 4


async def test_a_proxy_with_tls_shows_a_certificate_even_on_the_way_to_a_plain_address(
    certificates: Certificates, secure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"https://{host_of(secure)}")
    await untrusting("http://broker.example:8080")
    assert not secure.asked
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    assert await versions("http://broker.example:8080", None) == ["4.0", "4.0"]
