"""A catalog in Hive's metastore: what its address may say, and what Kerberos needs."""

from __future__ import annotations

import sys

import pytest

from airflow_provider_streams import IcebergSink
from airflow_provider_streams.errors import InvalidRequest, SinkError
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.iceberg.catalogs.catalog import catalog_of

SINK = IcebergSink("shop.orders", conn_id="lake")


def opened(uri: str, **properties: str):
    with given("lake", {"type": "hive", "uri": uri, **properties}):
        return catalog_of(SINK)


@pytest.mark.parametrize(
    "uri",
    [
        *(f"thrift://{address}" for address in ("db:canary", "db", "db:99999", ":9083", "", "[::1", "::1:9083")),
        "db:9083",
        "thrift://me:canary@db:9083",
        "thrift://db,other:9083",
    ],
)
def test_an_address_without_host_and_port_or_with_a_user_is_refused_without_being_shown(uri):
    with pytest.raises(InvalidRequest, match=r"catalog 'lake': .* is thrift://host:port, without user") as caught:
        opened(uri)
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("uri", ["thrift://db:9083", "thrift://[::1]:9083", "thrift://one:9083,two"])
def test_the_first_address_of_a_metastore_is_the_one_that_is_asked(uri):
    socket = opened(uri)._client._transport._TBufferedTransport__trans
    assert (socket.host, socket.port) == (uri.split("//")[1].split(":9083")[0].strip("[]"), 9083)


def test_what_kerberos_needs_is_named(monkeypatch):
    for module in ("puresasl", "puresasl.client"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SinkError, match=r"kerberos-authentication needs puresasl.*pip install 'pyiceberg\[hive-kerb"):
        opened("thrift://db:9083", **{"hive.kerberos-authentication": "true"})
