"""What can be kept in order, said when a DAG is parsed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from airflow_provider_streams import CompactTableOperator, DeltaSink, ExpireTableOperator, IcebergSink, ParquetSink
from airflow_provider_streams.errors import InvalidRequest


@pytest.mark.parametrize("sink", [IcebergSink("shop.orders"), DeltaSink("/lake/orders")])
def test_tables_with_a_log_are_compacted_and_lose_their_past(sink):
    assert CompactTableOperator(task_id="compact", sink=sink).target_file_bytes == 512 * 1024 * 1024
    assert ExpireTableOperator(task_id="expire", sink=sink).keep == timedelta(days=7)


def test_a_folder_loses_its_past_only():
    assert ExpireTableOperator(task_id="expire", sink=ParquetSink("/lake/orders")).sink
    with pytest.raises(InvalidRequest, match="known: delta, iceberg"):
        CompactTableOperator(task_id="compact", sink=ParquetSink("/lake/orders"))


@pytest.mark.parametrize("sink", ["shop.orders", IcebergSink, None])
def test_a_sink_is_asked_for(sink):
    for kind in (CompactTableOperator, ExpireTableOperator):
        with pytest.raises(InvalidRequest, match="sink must be one like"):
            kind(task_id="keep", sink=sink)


def test_tables_of_many_topics_are_named_one_by_one():
    for kind in (CompactTableOperator, ExpireTableOperator):
        with pytest.raises(InvalidRequest, match="a table for each topic or stream"):
            kind(task_id="keep", sink=IcebergSink("lake.{topic}"))


@pytest.mark.parametrize("size", [0, -1, 1.5, "512MB", None, True])
def test_sizes_that_make_no_sense_are_refused(size):
    with pytest.raises(InvalidRequest, match="target_file_bytes is a number of bytes"):
        CompactTableOperator(task_id="compact", sink=IcebergSink("shop.orders"), target_file_bytes=size)


@pytest.mark.parametrize(
    ("keep", "why"),
    [
        (timedelta(minutes=1), "too short"),
        *((keep, r"like timedelta\(days=7\)") for keep in (7, "7d", None)),
        *((keep, "longer than any table") for keep in (timedelta.max, timedelta(days=365 * 3000))),
    ],
)
def test_times_that_make_no_sense_are_refused(keep, why):
    with pytest.raises(InvalidRequest, match=why):
        ExpireTableOperator(task_id="expire", sink=IcebergSink("shop.orders"), keep=keep)


def test_a_table_may_keep_its_past_for_a_hundred_years():
    long = timedelta(days=36500)
    assert ExpireTableOperator(task_id="expire", sink=IcebergSink("shop.orders"), keep=long).keep == long
