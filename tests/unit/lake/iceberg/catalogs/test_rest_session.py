"""An answer of a REST catalog ends, whatever the catalog sends."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from itertools import count, repeat

import pytest

from airflow_provider_streams import IcebergSink
from airflow_provider_streams.errors import SinkError, TableUnavailable
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.iceberg.catalogs import rest_session, timeouts
from airflow_provider_streams.lake.iceberg.catalogs.catalog import catalog_of
from airflow_provider_streams.lake.iceberg.catalogs.catalog_errors import errors_of
from tests.unit.lake.iceberg.rest_servers import serving

SINK = IcebergSink("shop.orders", conn_id="lake")


class Saying(BaseHTTPRequestHandler):
    """Configures a client, and then says something else: what the test gives."""

    def do_GET(self):
        self.server.asked.append(self.path)
        if "/v1/config" in self.path:
            self.send(200, [b"{}"], Content_Length="2")
        else:
            self.send(self.server.status, self.server.parts, **self.server.headers)

    def send(self, status, parts, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        with suppress(OSError):
            for part in parts:
                self.wfile.write(part)

    def log_message(self, *_):
        """Nothing."""


def saying(parts, status=200, **headers):
    return serving(Saying, parts=parts, status=status, headers=headers)


def connection(server):
    return {"type": "rest", "uri": f"http://127.0.0.1:{server.server_port}"}


def listed(server):
    with given("lake", connection(server)):
        catalog = catalog_of(SINK)
        with errors_of(SINK):
            return catalog.list_namespaces()


@pytest.fixture
def hurrying(monkeypatch):
    """Ten seconds pass between two looks at the clock."""
    monkeypatch.setattr(rest_session, "monotonic", count(0.0, 10.0).__next__)


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.usefixtures("hurrying")
def test_an_answer_that_drips_is_ended(status):
    with saying(repeat(b" "), status) as server, pytest.raises(TableUnavailable, match="in 600 seconds"):
        listed(server)


@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_an_answer_that_is_too_large_is_ended(monkeypatch, coding):
    monkeypatch.setattr(timeouts, "MOST_BYTES", 100_000)
    body = b" " * 200_000
    parts = [gzip.compress(body) if coding == "gzip" else body]
    with saying(parts, Content_Encoding=coding) as server, pytest.raises(TableUnavailable, match="than 100,000 bytes"):
        listed(server)


@pytest.mark.parametrize("status", [200, 500])
def test_an_answer_that_breaks_off_is_asked_for_again_later(status):
    with saying([b"{"], status, Content_Length="100") as server, pytest.raises(TableUnavailable):
        listed(server)


class Saying11(Saying):
    protocol_version = "HTTP/1.1"


@pytest.mark.parametrize("coding", ["identity", "gzip", "chunked"])
def test_answers_are_read_however_they_are_sent(coding):
    body = json.dumps({"namespaces": [[f"n{one}"] for one in range(50_000)]}).encode()
    headers = {"Connection": "close", "Content_Encoding": coding}
    if coding == "gzip":
        body = gzip.compress(body)
    elif coding == "chunked":
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        headers = {"Transfer_Encoding": "chunked"}
    with serving(Saying11, parts=[body], status=200, headers=headers) as server:
        assert len(listed(server)) == 50_000


def test_a_caller_may_stream_an_answer():
    with saying([b"a" * 100_000, b"b"]) as server:
        with given("lake", connection(server)):
            answer = catalog_of(SINK)._session.get(f"{connection(server)['uri']}/x", stream=True)
        assert b"".join(answer.iter_content(1000)) == b"a" * 100_000 + b"b"


def test_a_list_whose_page_comes_again_is_ended():
    body = json.dumps({"namespaces": [["a"]], "next-page-token": "again"}).encode()
    with saying([body]) as server, pytest.raises(SinkError, match="never ends") as caught:
        listed(server)
    assert not caught.value.retryable
    assert sum("namespaces" in one for one in server.asked) == 2


def test_a_list_may_be_read_twice():
    class Paged(Saying):
        def do_GET(self):
            token = "" if "pageToken" in self.path else "second"
            self.server.parts = [json.dumps({"namespaces": [["a"]], "next-page-token": token}).encode()]
            super().do_GET()

    with serving(Paged, parts=[], status=200, headers={}) as server, given("lake", connection(server)):
        catalog = catalog_of(SINK)
        assert [catalog.list_namespaces() for _ in range(2)] == [[("a",), ("a",)]] * 2
