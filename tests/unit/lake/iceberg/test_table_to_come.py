"""Where the files of a table will be that is not made yet."""

from __future__ import annotations

import pytest
from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.exceptions import NoSuchNamespaceError

from airflow_provider_streams.lake.iceberg.files.table_files import storage_to_come


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
