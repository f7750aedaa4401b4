"""A catalog in a database: what its address may say, and that no password reaches a server without TLS."""

from __future__ import annotations

import pytest

from airflow_provider_streams import IcebergSink
from airflow_provider_streams.errors import InvalidRequest, SinkError
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.iceberg.catalogs.catalog import catalog_of
from tests.unit.databases_without_tls import mysql, postgres, repeating, serving

SINK = IcebergSink("shop.orders", conn_id="lake")
CANARY = "canary-4711"


def opened(uri: str):
    with given("lake", {"type": "sql", "uri": uri, "warehouse": "file:///lake"}):
        return catalog_of(SINK)


@pytest.mark.parametrize(("scheme", "answer"), [("postgresql+psycopg", postgres), ("mysql+pymysql", mysql)])
def test_a_server_without_tls_gets_no_password(scheme, answer, monkeypatch):
    monkeypatch.setenv("PGSSLMODE", "disable")
    with serving(answer) as server, pytest.raises(SinkError, match=r"Switch TLS on.*sslmode=disable") as caught:
        opened(f"{scheme}://me:{CANARY}@127.0.0.1:{server.port}/lake")
    assert not caught.value.retryable
    assert {*server.heard} == {b""}


def test_a_service_that_may_hold_a_password_needs_a_mode(monkeypatch, tmp_path):
    file = tmp_path / "service.conf"
    monkeypatch.setenv("PGSERVICEFILE", str(file))
    with serving(postgres) as server:
        file.write_text(f"[lake]\nhost=127.0.0.1\nport={server.port}\nuser=me\npassword={CANARY}\n")
        with pytest.raises(InvalidRequest, match=r"catalog 'lake': the option service .*write sslmode"):
            opened("postgresql+psycopg:///?service=lake")
        with pytest.raises(SinkError, match="Switch TLS on"):
            opened("postgresql+psycopg:///?service=lake&sslmode=require")
    assert {*server.heard} == {b""}


def test_a_database_that_repeats_the_machines_password_is_quoted_without_it(monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "canary-2292")
    monkeypatch.setenv("PGSSLMODE", "disable")
    with serving(repeating) as server, pytest.raises(SinkError, match=r"you said \*\*\*") as caught:
        opened(f"postgresql+psycopg://me@127.0.0.1:{server.port}/lake")
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("ssl_ca=/nowhere/ca.pem", r"FileNotFoundError.*no file ssl_ca=/nowhere/ca\.pem"),
        ("ssl_mode=DISABLED", "TypeError.*'ssl_mode'"),
        ("connect_timeout=soon", "ValueError.*'soon'"),
    ],
)
def test_an_option_that_the_driver_cannot_use_is_named(option, said):
    with serving(mysql) as server, pytest.raises(InvalidRequest, match=f"catalog 'lake'.*{said}") as caught:
        opened(f"mysql+pymysql://me:{CANARY}@127.0.0.1:{server.port}/lake?{option}")
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("sslmode", ["disable", "prefer"])
def test_a_password_travels_in_clear_if_the_address_says_so(sslmode):
    with serving(postgres) as server, pytest.raises(SinkError):
        opened(f"postgresql+psycopg://me:{CANARY}@127.0.0.1:{server.port}/lake?sslmode={sslmode}")
    assert CANARY.encode() in server.heard[1]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (f"postgresql+psycopg://me:p@{CANARY}@127.0.0.1:1/lake", "in its uri, an '@' .*%40 for '@'"),
        (f"postgresql+psycopg://me:p/{CANARY}@127.0.0.1:1/lake", "in its uri, an '@' .*%2F for '/'"),
        (f"postgresql+psycopg://me:{CANARY}@127.0.0.1:port/lake", "no address of a database.*the port is a number"),
        (f"postgresql+psycopg://me:{CANARY}/lake", "no address of a database.*the port is a number"),
        (CANARY, "no address of a database"),
    ],
)
def test_an_address_that_is_none_is_refused_without_being_shown(address, said):
    with pytest.raises(InvalidRequest, match=f"catalog 'lake'.*{said}") as caught:
        opened(address)
    assert "canary" not in str(caught.value)
    assert "Could not parse" not in str(caught.value.__cause__)


@pytest.mark.parametrize(
    ("address", "advice"),
    [
        ("postgresql+asyncpg://me@db/x", r"write postgresql\+psycopg://"),
        ("mysql+aiomysql://me@db/x", r"write mysql\+pymysql://"),
        ("sqlite+aiosqlite:////lake/catalog.db", r"write sqlite\+pysqlite://"),
    ],
)
def test_a_driver_for_asyncio_is_refused_with_the_one_to_write(address, advice):
    with pytest.raises(InvalidRequest, match=f"catalog 'lake': .* is a driver for asyncio, .*: {advice}"):
        opened(address)


def test_a_driver_that_there_is_not_is_named():
    with pytest.raises(SinkError, match="nodriver"):
        opened("postgresql+nodriver://db/x")
