"""What `dags_examples/backfill_approved.py` does, on the fake system."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG

from airflow_provider_streams import ParquetSink
from airflow_provider_streams.operators.backfill import BackfillWindowsOperator
from airflow_provider_streams.testing.fake import FakeSource

SPAN: dict[str, Any] = {
    "source": FakeSource("numbers"),
    "start": "2026-11-20T10:00Z",
    "end": "2026-11-20T14:00Z",
    "window_length": timedelta(hours=1),
    "slack": timedelta(0),
    "reader": "approved",
}

with DAG("approved_fill", schedule=None) as dag:
    preview = BackfillWindowsOperator(task_id="preview", dry_run=True, **SPAN)
    approve = ApprovalOperator(
        task_id="approve",
        subject="Backfill?",
        body="{{ ti.xcom_pull(task_ids='preview')['windows'] | length }} windows",
    )
    fill = BackfillWindowsOperator(
        task_id="fill", sink=ParquetSink(os.environ["STREAMS_TEST_LAKE"] + "-approved"), **SPAN
    )
    preview >> approve >> fill
