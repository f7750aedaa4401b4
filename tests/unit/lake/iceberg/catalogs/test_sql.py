"""A catalog in a database: what its address may say, and that no password reaches a server without TLS."""

from __future__ import annotations

import pytest

from airflow_provider_streams import IcebergSink
from airflow_provider_streams.errors import InvalidRequest, SinkError
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.iceberg.catalogs.catalog import catalog_of
from tests.unit.databases_without_tls import mysql, postgres, serving

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
