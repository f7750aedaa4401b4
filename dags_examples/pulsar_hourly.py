"""Each full hour of a topic, once it is complete, as one folder of Parquet files."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from airflow_provider_streams import ParquetSink, PulsarSource, ReadWindowOperator, WindowReadySensor
from airflow_provider_streams.retry import stream_retry_policy
from airflow_provider_streams.timetables import window_timetable

EVENTS = PulsarSource("shop/orders/events", conn_id="pulsar_default")

with DAG(
    "pulsar_hourly",
    # at 11:00, the window from 10:00 to 11:00
    schedule=window_timetable("@hourly"),
    start_date=datetime(2026, 11, 1, tzinfo=UTC),
    default_args={"retries": 3, "retry_policy": stream_retry_policy(timedelta(minutes=2))},
    doc_md=__doc__,
) as dag:
    complete = WindowReadySensor(task_id="complete", source=EVENTS, deferrable=True)
    read = ReadWindowOperator(
        task_id="read",
        source=EVENTS,
        sink=ParquetSink(os.environ.get("LAKE", "/lake") + "/orders"),
    )
    complete >> read
