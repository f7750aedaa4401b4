"""A watcher announces complete windows, and a run reads those of its event in one Spark job."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Asset, AssetWatcher, task

from airflow_provider_streams import ParquetSink, PublishTime
from airflow_provider_streams.operators.backfill import BackfillWindowsOperator
from airflow_provider_streams.testing.fake import FakeSource
from airflow_provider_streams.triggers.new_windows import NewWindowsTrigger

NUMBERS = FakeSource("watched", "fake_watched")
LENGTH = timedelta(days=30)
WATCHER = NewWindowsTrigger(
    NUMBERS, LENGTH, reader="watched", basis=PublishTime(timedelta(0)), poll_interval=0.5, repeat_seconds=60.0
)
COMPLETE = Asset("watched_windows", watchers=[AssetWatcher(name="complete", trigger=WATCHER)])

with DAG("kill_watcher", schedule=[COMPLETE], max_active_runs=1) as dag:

    @task
    def announced(triggering_asset_events: Any = None) -> dict[str, str]:
        """The span of all windows of this run's event."""
        payloads = [event.extra["payload"] for event in triggering_asset_events[COMPLETE]]
        windows = [window for payload in payloads for window in payload["windows"]]
        return {"start": min(one["start"] for one in windows), "end": max(one["end"] for one in windows)}

    span = announced()
    span >> BackfillWindowsOperator(
        task_id="read",
        source=NUMBERS,
        start="{{ ti.xcom_pull(task_ids='announced')['start'] }}",
        end="{{ ti.xcom_pull(task_ids='announced')['end'] }}",
        window_length=LENGTH,
        basis=PublishTime(timedelta(0)),
        reader="watched",
        sink=ParquetSink(os.environ["STREAMS_TEST_LAKE"] + "-watched"),
        retries=4,
        retry_delay=timedelta(seconds=1),
    )
