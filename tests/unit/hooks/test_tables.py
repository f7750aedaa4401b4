"""What connections say of tables: properties by the names of Iceberg, and nothing that loads code."""

from __future__ import annotations

import json

import pytest
from pyiceberg.catalog import CatalogType

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.journal import open_journal
from airflow_provider_streams.hooks.tables import CATALOG_TYPES, properties_of
from airflow_provider_streams.lake import connections


@pytest.fixture
def connection(monkeypatch):
    def is_(**value: object) -> str:
        monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(value))
        return "lake"

    return is_


def test_an_iceberg_connection_is_a_catalogs_properties(connection):
    extra = {"warehouse": "s3://tables", "s3.endpoint": "http://store", "s3.request-timeout": 5, "s3.anonymous": False}
    given = connection(conn_type="iceberg", host="http://cat:8181/", login="me", password="canary-55", extra=extra)
    assert properties_of(given) == {
        "uri": "http://cat:8181",
        "credential": "me:canary-55",
        "warehouse": "s3://tables",
        "s3.endpoint": "http://store",
        "s3.request-timeout": "5",
        "s3.anonymous": "false",
    }


def test_a_connection_in_parts_is_put_together(connection):
    given = connection(conn_type="iceberg", host="cat", port=8181, schema="http", extra={"uri": "thrift://hive:9083"})
    assert properties_of(given) == {"uri": "thrift://hive:9083"}
    assert properties_of(connection(conn_type="iceberg", host="cat", port=8181)) == {"uri": "https://cat:8181"}


@pytest.mark.parametrize("kind", ["aws", "generic"])
def test_a_store_of_a_connection_is_told_by_its_type(connection, kind):
    given = connection(conn_type=kind, login="key", password="secret", extra={"region_name": "eu-west-1"})
    properties = {"s3.access-key-id": "key", "s3.secret-access-key": "secret", "s3.region": "eu-west-1"}
    assert properties_of(given) == properties


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"conn_type": "http"}, r"'http'.*'iceberg'.*'aws' or 'generic'"),
        ({"conn_type": "iceberg", "extra": {"py-io-impl": "os:system"}}, "names code to load"),
        (
            {"conn_type": "iceberg", "extra": {"type": "nessie"}},
            "'lake': .* type 'nessie'; known: rest, hive, .*sql",
        ),
        ({"conn_type": "iceberg", "extra": {"s3.endpoint": "http://me:pass@store"}}, "without name and password"),
        ({"conn_type": "iceberg", "extra": {"ssl": {"client": {"cert": "/etc/x"}}}}, "one text or number"),
    ],
)
def test_other_connections_are_refused(connection, value, said):
    with pytest.raises(InvalidRequest, match=said):
        properties_of(connection(**value))


def test_the_types_of_catalogs_are_those_of_pyiceberg(connection):
    assert sorted(CATALOG_TYPES) == sorted(one.value for one in CatalogType)
    for kind in (*CATALOG_TYPES, "REST", ""):
        assert properties_of(connection(conn_type="iceberg", extra={"type": kind})) == {"type": kind}


def test_whoever_has_the_journal_open_can_ask(connection, airflow_home, monkeypatch):
    monkeypatch.setattr(connections, "_resolvers", [])
    given = connection(conn_type="iceberg", host="http://cat")
    with pytest.raises(InvalidRequest, match="not known here"):
        connections.properties_of(given)
    with open_journal():
        assert connections.properties_of(given) == {"uri": "http://cat"}
