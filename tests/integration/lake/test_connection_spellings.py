"""The same catalog by several spellings of one connection."""

from __future__ import annotations

import json

import pytest

from airflow_provider_streams.hooks.iceberg import IcebergHook

pytestmark = pytest.mark.lake


@pytest.mark.parametrize(
    "fields",
    [
        {"host": "http://127.0.0.1/", "port": "{port}"},
        {"host": "HTTP://127.0.0.1:{port}"},
        {"host": "127.0.0.1", "port": "{port}", "schema": "http"},
        {"conn_type": "iceberg+http", "host": "127.0.0.1", "port": "{port}"},
    ],
)
def test_a_catalog_is_reached_as_its_connection_says(seaweed_server, monkeypatch, fields):
    server = seaweed_server
    known = server.catalog_properties
    keys = {"login": server.access_key, "password": server.secret_key}
    extra = {name: known[name] for name in ("warehouse", "oauth2-server-uri")}
    port = server.catalog_url.rpartition(":")[2]
    given = {name: value.format(port=port) for name, value in fields.items()}
    monkeypatch.setenv("AIRFLOW_CONN_SPELT", json.dumps({"conn_type": "iceberg", **keys, **given, "extra": extra}))
    works, said = IcebergHook("spelt").test_connection()
    assert works, said
    assert f"The catalog at {server.catalog_url} answers" in said


def test_a_catalog_without_a_scheme_is_called_with_tls(seaweed_server, monkeypatch):
    server = seaweed_server
    address = server.catalog_url.partition("://")[2]
    monkeypatch.setenv("AIRFLOW_CONN_SPELT", f"iceberg://{server.access_key}:{server.secret_key}@{address}")
    works, said = IcebergHook("spelt").test_connection()
    assert not works
    assert server.secret_key not in said
