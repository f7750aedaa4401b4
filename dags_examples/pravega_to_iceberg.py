"""Each quarter of an hour of a stream, between recorded cuts, in an Iceberg table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from airflow_provider_streams import (
    IcebergSink,
    Json,
    PravegaSource,
    ReadWindowOperator,
    RecordCutsOperator,
    RecordedCuts,
    WindowReadySensor,
)
from airflow_provider_streams.retry import stream_retry_policy
from airflow_provider_streams.timetables import window_timetable

READINGS = PravegaSource("factory/readings", value=Json("sensor string, celsius double"), conn_id="pravega_default")
CUTS = RecordedCuts(max_skew=timedelta(minutes=2))

with DAG(
    "pravega_to_iceberg_cuts",
    schedule="* * * * *",
    start_date=datetime(2026, 11, 1, tzinfo=UTC),
    catchup=False,
    doc_md="Pravega's events carry no time: a cut each minute says what was there by then.",
) as recorder:
    RecordCutsOperator(task_id="record", sources=READINGS)

with DAG(
    "pravega_to_iceberg",
    schedule=window_timetable("*/15 * * * *"),
    start_date=datetime(2026, 11, 1, tzinfo=UTC),
    default_args={"retries": 3, "retry_policy": stream_retry_policy(timedelta(minutes=2))},
    doc_md=__doc__,
) as dag:
    complete = WindowReadySensor(task_id="complete", source=READINGS, basis=CUTS, deferrable=True)
    read = ReadWindowOperator(
        task_id="read",
        source=READINGS,
        basis=CUTS,
        sink=IcebergSink("factory.readings", conn_id="iceberg_default"),
    )
    complete >> read
