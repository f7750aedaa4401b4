"""Each full hour of a topic, as columns, in a Delta table on an object store: replaced as a whole by one commit."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from airflow_provider_streams import DeltaSink, PulsarSource, ReadWindowOperator, WindowReadySensor
from airflow_provider_streams.retry import stream_retry_policy
from airflow_provider_streams.timetables import window_timetable

ORDERS = PulsarSource("shop/orders/events", value="auto", conn_id="pulsar_default")

with DAG(
    "pulsar_to_delta",
    schedule=window_timetable("@hourly"),
    start_date=datetime(2026, 11, 1, tzinfo=UTC),
    default_args={"retries": 3, "retry_policy": stream_retry_policy(timedelta(minutes=2))},
    doc_md=__doc__,
) as dag:
    complete = WindowReadySensor(task_id="complete", source=ORDERS, deferrable=True)
    read = ReadWindowOperator(
        task_id="read",
        source=ORDERS,
        sink=DeltaSink(os.environ.get("LAKE", "s3://lake") + "/orders", conn_id="aws_default", widen=True),
    )
    complete >> read
