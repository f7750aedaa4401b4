"""The DAG of one of the story's readers, as Airflow knows it; nothing runs it here."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG

from airflow_provider_streams import ParquetSink, PulsarSource
from airflow_provider_streams.operators.read import ReadWindowOperator
from airflow_provider_streams.timetables import window_timetable

SCHEDULE = window_timetable("0 * * * *")

with DAG("shop_payments", schedule=SCHEDULE, start_date=datetime(2020, 1, 1, tzinfo=UTC), catchup=False) as dag:
    ReadWindowOperator(
        task_id="read",
        source=PulsarSource("shop/payments/settled"),
        sink=ParquetSink("/lake/shop/payments/settled"),
    )
