"""What `dags_examples/backfill_approved.py` does, on the fake system; and a day that waits for its hours."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG, Asset, DayWindow, PartitionedAssetTimetable, RollupMapper, StartOfDayMapper, task

from airflow_provider_streams import ParquetSink, PublishTime
from airflow_provider_streams.operators.backfill import BackfillWindowsOperator
from airflow_provider_streams.testing.fake import FakeSource

SPAN: dict[str, Any] = {
    "source": FakeSource("numbers"),
    "start": "2026-11-20T00:00Z",
    "end": "2026-11-21T00:00Z",
    "window_length": timedelta(hours=1),
    "basis": PublishTime(timedelta(0)),
    "reader": "approved",
}

TABLE = ParquetSink(os.environ["STREAMS_TEST_LAKE"] + "-approved")

with DAG("approved_fill", schedule=None) as dag:
    preview = BackfillWindowsOperator(task_id="preview", dry_run=True, **SPAN)
    approve = ApprovalOperator(
        task_id="approve",
        subject="Backfill?",
        body="{{ ti.xcom_pull(task_ids='preview')['windows'] | length }} windows",
    )
    fill = BackfillWindowsOperator(task_id="fill", sink=TABLE, **SPAN)
    preview >> approve >> fill

HOURS = RollupMapper(upstream_mapper=StartOfDayMapper(), window=DayWindow())
SCHEDULE = PartitionedAssetTimetable(assets=Asset(uri=TABLE.asset_uri), default_partition_mapper=HOURS)

with DAG("approved_day", schedule=SCHEDULE) as day:

    @task
    def report(dag_run: Any = None) -> str:
        return str(dag_run.partition_key)

    report()
