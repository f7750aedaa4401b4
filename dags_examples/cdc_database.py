"""Each full hour of a database's changes, applied to an Iceberg table for each of its tables, by one job."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from airflow_provider_streams import AutoCdc, Debezium, IcebergSink, PulsarSource, ReadWindowOperator, WindowReadySensor
from airflow_provider_streams.retry import stream_retry_policy
from airflow_provider_streams.timetables import window_timetable

CHANGES = PulsarSource(pattern=r"shop/dbz/dbz\.public\..*", value=Debezium(), conn_id="pulsar_default")

with DAG(
    "cdc_database",
    schedule=window_timetable("@hourly"),
    start_date=datetime(2026, 11, 1, tzinfo=UTC),
    default_args={"retries": 3, "retry_policy": stream_retry_policy(timedelta(minutes=2))},
    doc_md=__doc__,
) as dag:
    complete = WindowReadySensor(task_id="complete", source=CHANGES, deferrable=True)
    apply = ReadWindowOperator(
        task_id="apply",
        source=CHANGES,
        sink=IcebergSink("database.{table}", conn_id="iceberg_default", widen=True, apply=AutoCdc()),
    )
    complete >> apply
