"""Each night: few files for each window of a table, and no old snapshots that nothing needs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from airflow_provider_streams import CompactTableOperator, ExpireTableOperator, IcebergSink
from airflow_provider_streams.retry import stream_retry_policy

ORDERS = IcebergSink("shop.orders", conn_id="iceberg_default")

with DAG(
    "table_upkeep",
    schedule="30 3 * * *",
    start_date=datetime(2026, 11, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 3, "retry_policy": stream_retry_policy(timedelta(minutes=2))},
    doc_md=__doc__,
) as dag:
    compact = CompactTableOperator(task_id="compact", sink=ORDERS)
    expire = ExpireTableOperator(task_id="expire", sink=ORDERS, keep=timedelta(days=7))
    compact >> expire
