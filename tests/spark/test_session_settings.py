"""Whatever settings a session has from elsewhere, a window lands the same rows, and its errors keep their causes."""

from __future__ import annotations

import pyarrow.dataset as ds
import pytest

from airflow_provider_streams.errors import PreflightFailed, TransformFailed
from airflow_provider_streams.model.sinks.sink import ParquetSink
from airflow_provider_streams.spark.job.job import run
from airflow_provider_streams.spark.job.job_spec import JobSpec
from airflow_provider_streams.spark.launch import preflight
from airflow_provider_streams.spark.session_setting import setting
from tests.spark.conftest import WAYS
from tests.spark.running import run_window

HOSTILE = [
    "spark.sql.execution.arrow.maxRecordsPerBatch=0",
    "spark.sql.execution.arrow.maxRecordsPerBatch=-1",
    "spark.sql.execution.arrow.useLargeVarTypes=true",
    "spark.sql.execution.arrow.pyspark.enabled=false",
    "spark.sql.execution.arrow.localRelationThreshold=0b",
    "spark.sql.execution.arrow.compression.codec=zstd",
    "spark.sql.execution.pyspark.udf.hideTraceback.enabled=true",
    "spark.sql.execution.pythonUDF.arrow.enabled=false",
    "spark.sql.timestampType=TIMESTAMP_NTZ",
    "spark.sql.session.timeZone=Asia/Kathmandu",
    "spark.sql.caseSensitive=true",
    "spark.sql.ansi.enabled=false",
    "spark.sql.parser.quotedRegexColumnNames=true",
    "spark.sql.storeAssignmentPolicy=LEGACY",
    "spark.sql.legacy.timeParserPolicy=LEGACY",
    "spark.sql.datetime.java8API.enabled=true",
    "spark.sql.mapKeyDedupPolicy=LAST_WIN",
    "spark.sql.sources.default=json",
    "spark.sql.adaptive.enabled=false",
    "spark.sql.codegen.wholeStage=false",
]
HOWS = [(way, transform) for way in WAYS.values() for transform in (None, "transforms:with_a_column_more")]


def landed(stream, spark, folder):
    """What a window lands, in each way to read it, without and with a transform."""
    found = []
    for number, (way, transform) in enumerate(HOWS):
        spec = stream.spec(sink=ParquetSink(f"{folder}/{number}"), transform=transform, small_plan_bytes=way)
        run(JobSpec((spec,)), spark)
        table = ds.dataset(f"{folder}/{number}", format="parquet", partitioning="hive").to_table()
        found.append((table.schema, table.sort_by([("shard", "ascending"), ("number", "ascending")]).to_pylist()))
    return found


@pytest.mark.slow_except("spark.sql.execution.arrow.maxRecordsPerBatch=0")
@pytest.mark.parametrize("hostile", HOSTILE, ids=HOSTILE)
def test_a_window_lands_the_same_rows(stream, spark, tmp_path, hostile):
    usual = landed(stream, spark, tmp_path / "usual")
    with setting(spark, *hostile.split("=")):
        preflight.settle(spark, "this session")
        assert landed(stream, spark, tmp_path / "hostile") == usual


@pytest.mark.slow
def test_a_transform_that_fails_in_a_task_keeps_its_cause(stream, spark, tmp_path):
    spec = stream.spec(sink=ParquetSink(str(tmp_path / "lake")), transform="transforms:fails_in_python")
    with setting(spark, "spark.sql.execution.pyspark.udf.hideTraceback.enabled", "true"):
        preflight.settle(spark, "this session")
        with pytest.raises(TransformFailed, match="a user's function fails"):
            run_window(spec, spark)


def test_a_setting_that_cannot_be_replaced_refuses_the_job(spark):
    with (
        setting(spark, "spark.wap.id", "audit"),
        pytest.raises(PreflightFailed, match=r"this session has spark\.wap\.id='audit', with which Iceberg would"),
    ):
        preflight.settle(spark, "this session")
