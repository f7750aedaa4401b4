"""Where the files of a table will be that is not made yet."""

from __future__ import annotations

import pytest
from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.exceptions import NoSuchNamespaceError
from pyiceberg.schema import Schema

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.lake import connections
from airflow_provider_streams.lake.iceberg.catalogs.catalog import catalog_of
from airflow_provider_streams.lake.iceberg.files.table_files import storage_to_come
from airflow_provider_streams.lake.iceberg.table import IcebergTable
from airflow_provider_streams.model.sinks.sink import IcebergSink


@pytest.fixture
def catalog(monkeypatch):
    """A catalog of a server, whose namespaces have these properties."""

    def of(namespaces, **properties):
        def load(_self, namespace):
            if namespace not in namespaces:
                raise NoSuchNamespaceError("no")
            return namespaces[namespace]

        kind = type("Served", (MetastoreCatalog,), {"load_namespace_properties": load})
        monkeypatch.setattr(kind, "__abstractmethods__", frozenset())
        return kind("served", **properties)

    return of


def test_the_folder_of_a_namespace_is_where_its_tables_are(catalog):
    namespaces = {("shop",): {"location": "s3://lake/s/"}, ("other",): {}}
    served = catalog(namespaces, warehouse="s3://lake", **{"s3.region": "x"})
    found = storage_to_come(served, "shop.orders")
    assert (found.root, found.options, found.is_vended) == ("s3://lake/s/orders/data", {"s3.region": "x"}, False)
    assert storage_to_come(served, "other.orders").root == "s3://lake/other.db/orders/data"


def test_a_server_chooses_the_folder_of_a_new_namespace(catalog):
    assert storage_to_come(catalog({}, warehouse="s3://lake"), "shop.orders") is None
    assert storage_to_come(catalog({("shop",): {}}), "shop.orders") is None
    assert storage_to_come(object(), "shop.orders") is None


@pytest.fixture
def without_warehouse(tmp_path):
    """A sink in a SQL catalog that names no warehouse."""
    with connections.given("here", {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db"}):
        yield IcebergSink("shop.orders", conn_id="here")


def test_a_catalog_in_a_database_without_a_warehouse_can_make_no_table(without_warehouse):
    table = IcebergTable(without_warehouse)
    with pytest.raises(
        InvalidRequest, match=r"no warehouse, so it cannot make the table shop\.orders: add 'warehouse'"
    ):
        table.storage()
    with pytest.raises(InvalidRequest, match="add 'warehouse'"):
        table.made(Schema(), {})
    assert catalog_of(without_warehouse).list_namespaces() == []


def test_a_place_of_its_namespace_is_enough(without_warehouse, tmp_path):
    catalog_of(without_warehouse).create_namespace("shop", {"location": f"file://{tmp_path}/shop"})
    assert IcebergTable(without_warehouse).storage().root == f"file://{tmp_path}/shop/orders/data"
    assert IcebergTable(without_warehouse).made(Schema(), {}).location() == f"file://{tmp_path}/shop/orders"
