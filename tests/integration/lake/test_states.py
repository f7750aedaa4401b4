"""What each landing asks of a table: whose it is, and which of its windows share time with the landing's own."""

from __future__ import annotations

import pytest

from airflow_provider_streams import DeltaSink, ParquetSink
from airflow_provider_streams.lake.connections import given
from airflow_provider_streams.lake.registry import table_state
from tests.integration.lake.iceberg_reading import new_table
from tests.integration.lake.landing import TERMS, hour, land, rows_of

pytestmark = pytest.mark.lake


@pytest.fixture(params=["parquet", "delta", "iceberg"])
def sink(request, tmp_path):
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/lake"}
    with given("iceberg_test", catalog):
        made = {"parquet": ParquetSink(f"{tmp_path}/t"), "delta": DeltaSink(f"{tmp_path}/t"), "iceberg": new_table()}
        yield made[request.param]


def test_the_windows_near_one_are_all_that_share_time_with_it(sink):
    assert table_state(sink, hour(0)) is None
    held = [hour(-30, 20), *(hour(number) for number in range(4)), hour(6.5, 0.25)]
    for window in held:
        land(sink, window, rows_of(0, 1))
    for window in (hour(-11), hour(1), hour(0.5), hour(1, 10), hour(6), hour(6.6, 0.1), hour(-40, 5), hour(50)):
        near = table_state(sink, window)
        assert near.mark == TERMS.mark
        assert near.windows <= table_state(sink).windows == set(held)
        assert {one for one in near.windows if one.overlaps(window)} == {one for one in held if one.overlaps(window)}
