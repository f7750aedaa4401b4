"""What `dags_examples/pulsar_new_windows.py` does, on the fake system; and a DAG that only notes events."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset, AssetWatcher, task

from airflow_provider_streams import ParquetSink, PublishTime
from airflow_provider_streams.operators.backfill import BackfillWindowsOperator
from airflow_provider_streams.testing.fake import FakeSource
from airflow_provider_streams.triggers.new_windows import NewWindowsTrigger

NUMBERS = FakeSource("numbers", conn_id="fake_announced")
LENGTH = timedelta(days=100)  # so long that none ends by the clock while a test runs
NOW = timedelta(0)

COMPLETE = Asset(
    "announced_windows",
    watchers=[
        AssetWatcher(
            name="complete",
            trigger=NewWindowsTrigger(
                NUMBERS, LENGTH, reader="announced", basis=PublishTime(NOW), poll_interval=0.5, repeat_seconds=5.0
            ),
        )
    ],
)

with DAG("announced_windows", schedule=[COMPLETE], max_active_runs=1) as windows:

    @task
    def announced(triggering_asset_events: Any = None) -> dict[str, Any]:
        (*_, newest) = triggering_asset_events[COMPLETE]
        named = newest.extra["payload"]["windows"]
        return {"windows": named, "start": named[0]["start"], "end": named[-1]["end"]}

    told = announced()
    told >> BackfillWindowsOperator(
        task_id="read",
        source=NUMBERS,
        start="{{ ti.xcom_pull(task_ids='announced')['start'] }}",
        end="{{ ti.xcom_pull(task_ids='announced')['end'] }}",
        window_length=LENGTH,
        basis=PublishTime(NOW),
        reader="announced",
        sink=ParquetSink(os.environ["STREAMS_TEST_LAKE"] + "-announced"),
    )

with DAG("announced_notes", schedule=[COMPLETE]) as notes:
    EmptyOperator(task_id="note")
