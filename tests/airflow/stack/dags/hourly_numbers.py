"""Partitioned, deferred, read with Spark: what the example DAGs do, on the fake system."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG, CronPartitionTimetable

from airflow_provider_streams import ParquetSink
from airflow_provider_streams.operators.read import ReadWindowOperator
from airflow_provider_streams.sensors.window import WindowReadySensor
from airflow_provider_streams.testing.fake import FakeSource

NUMBERS = FakeSource("numbers")
HOUR = timedelta(hours=1)

with DAG(
    "hourly_numbers",
    schedule=CronPartitionTimetable("@hourly", timezone="UTC", run_offset=-1),
    start_date=datetime(2026, 11, 20, tzinfo=UTC),
    catchup=False,
) as dag:
    ready = WindowReadySensor(
        task_id="ready", source=NUMBERS, window_length=HOUR, deferrable=True, poke_interval=0.5, timeout=300
    )
    read = ReadWindowOperator(
        task_id="read", source=NUMBERS, window_length=HOUR, sink=ParquetSink(os.environ["STREAMS_TEST_LAKE"])
    )
    ready >> read
