"""Each full hour of a topic as columns, by the topic's own schema; events that are not what it says are kept aside."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from airflow_provider_streams import ParquetSink, PulsarSource, ReadWindowOperator, WindowReadySensor
from airflow_provider_streams.retry import stream_retry_policy
from airflow_provider_streams.timetables import window_timetable

ORDERS = PulsarSource("shop/orders/events", value="auto", conn_id="pulsar_default")

with DAG(
    "pulsar_typed",
    schedule=window_timetable("@hourly"),
    start_date=datetime(2026, 11, 1, tzinfo=UTC),
    default_args={"retries": 3, "retry_policy": stream_retry_policy(timedelta(minutes=2))},
    doc_md=__doc__,
) as dag:
    complete = WindowReadySensor(task_id="complete", source=ORDERS, deferrable=True)
    read = ReadWindowOperator(
        task_id="read",
        source=ORDERS,
        sink=ParquetSink(os.environ.get("LAKE", "/lake") + "/orders_typed"),
        on_decode_error="quarantine",
        max_decode_error_rate=0.01,
    )
    complete >> read
