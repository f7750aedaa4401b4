"""By hand, before a new reader runs: does its set-up work on the workers?"""

from __future__ import annotations

from airflow.sdk import DAG

from airflow_provider_streams import IcebergSink, PulsarSource, StreamsDoctorOperator

with DAG("doctor", schedule=None, doc_md=__doc__) as dag:
    StreamsDoctorOperator(
        task_id="check",
        source=PulsarSource("shop/orders/events", value="auto"),
        schedule="@hourly",
        sink=IcebergSink("shop.orders", conn_id="iceberg_default"),
    )
