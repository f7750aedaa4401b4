"""Which catalog it is, is known before anybody is asked."""

from __future__ import annotations

import pytest

from airflow_provider_streams import IcebergSink
from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.iceberg.catalog import catalog_of

SINK = IcebergSink("shop.orders", conn_id="lake")


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"type": "nessie", "uri": "http://127.0.0.1:1"}, "no catalog of type 'nessie': type is one of rest, hive, "),
        ({"warehouse": "s3://lake"}, "nothing says where the catalog 'lake' is: .*; known types: rest, "),
        ({"type": "REST", "warehouse": "s3://lake"}, "nothing says where the catalog 'lake' is"),
    ],
)
def test_a_catalog_that_nobody_knows_is_refused_with_those_that_are_known(properties, said):
    with given("lake", properties), pytest.raises(SinkError, match=f"lake:shop.orders: .*{said}") as caught:
        catalog_of(SINK)
    assert not caught.value.retryable


def test_a_type_that_is_said_counts_more_than_an_address(tmp_path):
    """Also where it needs none."""
    with given("lake", {"type": "in-memory", "warehouse": f"file://{tmp_path}"}):
        assert type(catalog_of(SINK)).__name__ == "InMemoryCatalog"
