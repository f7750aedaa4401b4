"""Tables are kept in order by tasks: while other tasks land in them, and as the example DAG does it."""

from __future__ import annotations

import importlib.util
import json
import os
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.utils.state import DagRunState, TaskInstanceState

from airflow_provider_streams import CompactTableOperator, DeltaSink, ExpireTableOperator, IcebergSink, Window
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.lake.data_files import WindowFiles
from airflow_provider_streams.model.window.basis import PublishTime
from airflow_provider_streams.operators.read import ReadWindowOperator
from airflow_provider_streams.spark.job import staging
from airflow_provider_streams.testing.fake import EPOCH, FakeSource

pytestmark = pytest.mark.dagtest

EXAMPLE = Path(__file__).parents[2] / "dags_examples" / "table_upkeep.py"
SOURCE = FakeSource("numbers")
WINDOW = Window(EPOCH, EPOCH + timedelta(seconds=10))
ROWS = 20


@pytest.fixture(autouse=True)
def two_files_for_each_window(monkeypatch):
    class InPieces(WindowFiles):
        def __init__(self, target: Any) -> None:
            super().__init__(replace(target, row_group_bytes=1, file_bytes=1))

    monkeypatch.setattr(staging, "WindowFiles", InPieces)


@pytest.fixture
def table(tmp_path):
    return DeltaSink(str(tmp_path / "orders"))


def reading(sink: Any) -> DAG:
    with DAG("landing", schedule=None, start_date=EPOCH) as dag:
        basis = PublishTime(timedelta(0))
        ReadWindowOperator(task_id="read", source=SOURCE, window=WINDOW, basis=basis, sink=sink)
    return dag


def keeping(sink: Any, **options: Any) -> DAG:
    with DAG("upkeep", schedule=None, start_date=EPOCH) as dag:
        compact = CompactTableOperator(task_id="compact", sink=sink, **options)
        compact >> ExpireTableOperator(task_id="expire", sink=sink, **options)
    return dag


def told(run: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    assert run.state == DagRunState.SUCCESS
    compacted, expired = (run.get_task_instance(name).xcom_pull(task_ids=name) for name in ("compact", "expire"))
    return compacted, expired


def rows_in(sink: DeltaSink) -> tuple[int, int]:
    from deltalake import DeltaTable

    table = DeltaTable(sink.path)
    return len(table.file_uris()), table.to_pyarrow_table().num_rows


def test_a_table_is_kept_in_order_between_two_landings(dag_test, fake, spark_stand_in, table):
    fake(events=3600)
    assert dag_test(reading(table)).state == DagRunState.SUCCESS
    assert rows_in(table) == (2, ROWS)
    would, _ = told(dag_test(keeping(table, dry_run=True)))
    assert (would["windows"], would["files_before"], would["files_after"]) == (1, 2, 0)
    assert rows_in(table) == (2, ROWS)
    compacted, expired = told(dag_test(keeping(table)))
    assert (compacted["windows"], compacted["files_before"], compacted["files_after"]) == (1, 2, 1)
    assert {name: expired[name] for name in ("files", "bytes", "snapshots")} == {"files": 0, "bytes": 0, "snapshots": 0}
    assert rows_in(table) == (1, ROWS)
    assert dag_test(reading(table)).state == DagRunState.SUCCESS
    assert rows_in(table) == (2, ROWS)
    with open_journal() as journal:
        known = journal.coverage(SOURCE.key, "landing.read", WINDOW.start, WINDOW.end)
    assert [one.state for one in known.windows] == ["covered"]


def test_what_was_replaced_long_ago_goes(dag_test, fake, spark_stand_in, table):
    fake(events=3600)
    dag_test(reading(table))
    told(dag_test(keeping(table)))
    then = time.time() - timedelta(days=8).total_seconds()
    for file in Path(table.path).rglob("*"):
        os.utime(file, (then, then))
    _, expired = told(dag_test(keeping(table)))
    assert (expired["files"], rows_in(table)) == (2, (1, ROWS))


def test_a_table_that_somebody_changed_fails_without_a_retry(dag_test, fake, spark_stand_in, table):
    from deltalake import DeltaTable

    fake(events=3600)
    dag_test(reading(table))
    DeltaTable(table.path).delete("value like 'numbers-0:5%'")
    run = dag_test(keeping(table, retries=3, retry_delay=timedelta(0)))
    assert run.state == DagRunState.FAILED
    failed = run.get_task_instance("compact")
    assert (failed.state, failed.try_number) == (TaskInstanceState.FAILED, 1)
    assert rows_in(table) == (2, ROWS - 1)


@pytest.mark.lake
def test_the_example_keeps_a_table_on_a_store(dag_test, fake, spark_stand_in, seaweed_server, monkeypatch):
    from pyiceberg.catalog import load_catalog

    catalog = {"conn_type": "iceberg", "extra": seaweed_server.catalog_properties}
    monkeypatch.setenv("AIRFLOW_CONN_ICEBERG_DEFAULT", json.dumps(catalog))
    fake(events=3600)
    spec = importlib.util.spec_from_file_location("table_upkeep", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sink = IcebergSink("kept.orders", conn_id="iceberg_default")
    for task in module.dag.tasks:
        task.sink = sink
    assert dag_test(reading(sink)).state == DagRunState.SUCCESS
    compacted, expired = told(dag_test(module.dag))
    assert (compacted["files_before"], compacted["files_after"], expired["snapshots"]) == (2, 1, 0)
    table = load_catalog("another", **seaweed_server.catalog_properties).load_table(sink.table)
    assert (len(list(table.scan().plan_files())), table.scan().to_arrow().num_rows) == (1, ROWS)
