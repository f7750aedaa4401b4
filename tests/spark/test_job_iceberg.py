"""A job that lands in an Iceberg table: read by the driver or by tasks, with a transform or without."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.model.sinks.sink import IcebergSink
from tests.integration.lake.vending_catalog import lending
from tests.spark.running import run_window
from tests.spark.test_job import environment_page

SINK = IcebergSink("shop.orders", conn_id="iceberg_test")


@pytest.fixture
def table(tmp_path):
    """What the connection says."""
    return {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"file://{tmp_path}/lake"}


def rows_of(table):
    with load_catalog("iceberg_test", **table) as catalog:
        rows = catalog.load_table(SINK.table).scan().to_arrow()
    return rows, sorted(zip(rows["shard"].to_pylist(), rows["number"].to_pylist(), strict=True))


def test_a_window_lands_and_is_replaced(spark, stream, way, table):
    for plan in (stream.plan(10, 20), stream.plan(20, 30), stream.plan(10, 20)):
        landed = run_window(stream.spec(plan, sink=SINK, small_plan_bytes=way, table=table), spark)
        assert landed.written == landed.receipt.rows == 1200
    rows, found = rows_of(table)
    assert sorted(set(rows["window_start"].to_pylist())) == [
        stream.plan(10, 20).window.start,
        stream.plan(20, 30).window.start,
    ]
    assert len(found) == 2400
    run_window(stream.spec(stream.empty_plan(), sink=SINK, small_plan_bytes=way, table=table), spark)
    assert len(rows_of(table)[1]) < 2400


def test_a_transforms_rows_land(spark, stream, table):
    spec = stream.spec(sink=SINK, table=table, transform="tests.spark.test_job_iceberg:with_another_column")
    run_window(spec, spark)
    rows, found = rows_of(table)
    assert found == stream.numbers
    assert set(rows["more"].to_pylist()) == {"x"}


def with_another_column(df):
    from pyspark.sql import functions

    return df.withColumn("more", functions.lit("x"))


def test_what_the_table_cannot_hold_fails_before_the_read(spark, stream, way, table):
    run_window(stream.spec(sink=SINK, small_plan_bytes=way, table=table), spark)
    with load_catalog("iceberg_test", **table) as catalog, catalog.load_table(SINK.table).update_schema() as change:
        change.delete_column("number")
    with pytest.raises(SinkError, match="it lacks number"):
        run_window(stream.spec(sink=SINK, small_plan_bytes=way, table=table), spark)


@pytest.mark.lake
def test_what_the_catalog_lends_reaches_the_tasks_and_is_shown_nowhere(spark, stream, seaweed_server, capfd):
    sink = IcebergSink("vended.orders", conn_id="iceberg_test", widen=True)
    with lending(seaweed_server) as catalog:
        told = {"sink": sink, "small_plan_bytes": 0, "table": catalog.properties}
        for transform in (None, "tests.spark.test_job_iceberg:with_another_column"):
            assert run_window(stream.spec(**told, transform=transform), spark).written == 1200
        rows = load_catalog("other", **seaweed_server.catalog_properties).load_table(sink.table).scan().to_arrow()
    assert set(rows["more"].to_pylist()) == {"x"}
    executions = spark._jsparkSession.sharedState().statusStore().executionsList()
    plans = "".join(executions.apply(n).physicalPlanDescription() for n in range(executions.size()))
    assert "MapInArrow" in plans
    shown = [plans, environment_page(spark), Path("/proc/self/cmdline").read_text(), "".join(capfd.readouterr())]
    secret = catalog.keys["s3.secret-access-key"]
    assert not [text for text in shown if secret in text or base64.b64encode(secret.encode()).decode() in text]
