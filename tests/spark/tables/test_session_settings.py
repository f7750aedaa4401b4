"""Settings that a session has from elsewhere, and under which a table would get other rows, or none."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import functions as F  # noqa: N812

from airflow_provider_streams.errors import PreflightFailed
from airflow_provider_streams.model.sinks.table_sink import TableSink
from airflow_provider_streams.spark.launch import preflight
from airflow_provider_streams.spark.session_setting import setting
from tests.spark.conftest import WAYS
from tests.spark.running import run_window

OLD_DAY, OLD_MICROS = -171_000, -14_831_724_583_876_544  # in 1501 and 1500: before the calendar's change
HOSTILE = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
}


def with_an_old_time(df):
    """A transform."""
    day, at = F.date_from_unix_date(F.lit(OLD_DAY)), F.timestamp_micros(F.lit(OLD_MICROS))
    return df.select("shard", "number", day.alias("day"), at.alias("at"))


def stored(spark, sink) -> set[tuple[int, int]]:
    """Days and microseconds in a Delta table's files, as they are, read without Spark."""
    place = spark.sql(f"DESCRIBE DETAIL {sink.table}").collect()[0]["location"]
    found = set()
    for file in DeltaTable(place).file_uris():
        table = pq.read_table(
            Path(file.removeprefix("file://")), partitioning=None, coerce_int96_timestamp_unit="us"
        ).select(["day", "at"])
        days, times = table["day"].cast("int32").to_pylist(), table["at"].cast("int64").to_pylist()
        found |= set(zip(days, times, strict=True))
    return found


@pytest.mark.parametrize("name", HOSTILE)
def test_times_are_stored_as_they_are(spark, stream, name):
    spark.sql("CREATE SCHEMA IF NOT EXISTS spark_catalog.shop")
    sink = TableSink(f"spark_catalog.shop.times_{name.rpartition('.')[2]}", using="delta")
    spec = stream.spec(sink=sink, small_plan_bytes=WAYS["driver"], transform=f"{__name__}:with_an_old_time")
    try:
        with setting(spark, name, HOSTILE[name]):
            preflight.settle(spark, "this session")
            assert run_window(spec, spark).written == 1200
        assert stored(spark, sink) == {(OLD_DAY, OLD_MICROS)}
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {sink.table}")


@pytest.mark.parametrize("name", ["spark.wap.id", "spark.wap.branch"])
def test_rows_that_iceberg_would_keep_apart_are_refused(spark, name):
    with setting(spark, name, "audit"), pytest.raises(PreflightFailed, match="keep the rows apart from the table"):
        preflight.settle(spark, "this session")


def test_iceberg_does_keep_them_apart(spark, stream, sink):
    """Why they are refused: the window counts as landed, and readers of the table do not see it."""
    run_window(stream.spec(sink=sink, small_plan_bytes=WAYS["driver"]), spark)
    spark.sql(f"ALTER TABLE {sink.table} SET TBLPROPERTIES ('write.wap.enabled'='true')")
    later = stream.spec(stream.plan(20, 30), sink=sink, small_plan_bytes=WAYS["driver"])
    with setting(spark, "spark.wap.id", "audit"):
        assert run_window(later, spark).written == 1200
    assert spark.table(sink.table).count() == 1200, "of two windows"
