"""Each full hour of every topic of a namespace, each in an Iceberg table of its own, by one Spark job."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from airflow_provider_streams import IcebergSink, PulsarSource, ReadWindowOperator, WindowReadySensor
from airflow_provider_streams.retry import stream_retry_policy
from airflow_provider_streams.timetables import window_timetable

TOPICS = PulsarSource(pattern="shop/orders/.*", value="auto", conn_id="pulsar_default")

with DAG(
    "pulsar_to_tables",
    schedule=window_timetable("@hourly"),
    start_date=datetime(2026, 11, 1, tzinfo=UTC),
    default_args={"retries": 3, "retry_policy": stream_retry_policy(timedelta(minutes=2))},
    doc_md=__doc__,
) as dag:
    complete = WindowReadySensor(task_id="complete", source=TOPICS, deferrable=True)
    read = ReadWindowOperator(
        task_id="read",
        source=TOPICS,
        sink=IcebergSink("orders.{topic}", conn_id="iceberg_default", partition_by="day", widen=True),
    )
    complete >> read
