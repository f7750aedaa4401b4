"""A window that the user names when triggering the DAG: it is shown first, and read after a look at the log."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from airflow.sdk import DAG, Param

from airflow_provider_streams import ParquetSink, PulsarSource, ReadWindowOperator

EVENTS = PulsarSource("shop/orders/events", conn_id="pulsar_default")

with DAG(
    "pulsar_explicit_window",
    schedule=None,
    start_date=datetime(2026, 11, 1, tzinfo=UTC),
    params={"window": Param("2026-11-20T10:00Z/2026-11-20T11:00Z", type="string", description="start/end, ISO 8601")},
    doc_md=__doc__,
) as dag:
    # the same reader: what the dry run shows is pinned, and is what the read reads
    show = ReadWindowOperator(
        task_id="show", source=EVENTS, window="{{ params.window }}", reader="orders-by-hand", dry_run=True
    )
    read = ReadWindowOperator(
        task_id="read",
        source=EVENTS,
        window="{{ params.window }}",
        reader="orders-by-hand",
        columns=["value", "key", "publish_time", "partition", "ledger", "entry", "batch_index"],
        sink=ParquetSink(os.environ.get("LAKE", "/lake") + "/orders-by-hand"),
    )
    show >> read
