"""Each full hour of a topic, as columns, in an Iceberg table: replaced by one commit, whatever is retried."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from airflow_provider_streams import IcebergSink, PulsarSource, ReadWindowOperator, WindowReadySensor
from airflow_provider_streams.retry import stream_retry_policy
from airflow_provider_streams.timetables import window_timetable

ORDERS = PulsarSource("shop/orders/events", value="auto", conn_id="pulsar_default")

with DAG(
    "pulsar_to_iceberg",
    schedule=window_timetable("@hourly"),
    start_date=datetime(2026, 11, 1, tzinfo=UTC),
    default_args={"retries": 3, "retry_policy": stream_retry_policy(timedelta(minutes=2))},
    doc_md=__doc__,
) as dag:
    complete = WindowReadySensor(task_id="complete", source=ORDERS, deferrable=True)
    read = ReadWindowOperator(
        task_id="read",
        source=ORDERS,
        sink=IcebergSink("shop.orders", conn_id="iceberg_default", partition_by="day", widen=True),
    )
    complete >> read
