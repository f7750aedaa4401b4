"""What a user clears: sensors while they are deferred, and a read after its success."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG

from airflow_provider_streams import ParquetSink, PublishTime
from airflow_provider_streams.operators.read import ReadWindowOperator
from airflow_provider_streams.sensors.window import WindowReadySensor
from airflow_provider_streams.testing.fake import FakeSource

COMMON: dict[str, Any] = {
    "source": FakeSource("numbers", conn_id="fake_cleared"),
    "window": "{{ dag_run.conf['window'] }}",
    "basis": PublishTime(timedelta(0)),
}

with DAG("cleared_sensors", schedule=None) as sensors:
    waiting = {"deferrable": True, "poke_interval": 0.5, "timeout": 180, **COMMON}
    [
        WindowReadySensor(task_id="deferred", **waiting),
        WindowReadySensor(task_id="from_trigger", start_from_trigger=True, **waiting),
    ] >> ReadWindowOperator(task_id="plan", dry_run=True, **COMMON)

with DAG("cleared_read", schedule=None) as read:
    ReadWindowOperator(
        task_id="read",
        reader="cleared",
        sink=ParquetSink(os.environ["STREAMS_TEST_LAKE"] + "-cleared"),
        target_split_bytes=160,
        **COMMON,
    )
