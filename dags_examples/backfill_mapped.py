"""Fill what is missing with one mapped task per window.

Each has its own log, retries and place in Airflow's window schedule.

For many small windows `BackfillWindowsOperator` alone is far quicker, for it reads them in one Spark job.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Asset, Param, task

from airflow_provider_streams import BackfillWindowsOperator, ParquetSink, PulsarSource, ReadWindowOperator

EVENTS = PulsarSource("shop/orders/events", conn_id="pulsar_default")
# the reader whose windows are filled: the task that reads each hour when it is complete
READER = "pulsar_hourly.read"
TABLE = ParquetSink(os.environ.get("LAKE", "/lake") + "/orders")

with DAG(
    "backfill_mapped",
    schedule=None,
    start_date=datetime(2026, 11, 1, tzinfo=UTC),
    params={
        "start": Param("2026-11-20T00:00Z", type="string", description="ISO 8601"),
        "end": Param("2026-11-21T00:00Z", type="string", description="ISO 8601"),
    },
    doc_md=__doc__,
) as dag:
    preview = BackfillWindowsOperator(
        task_id="preview",
        source=EVENTS,
        start="{{ params.start }}",
        end="{{ params.end }}",
        window_length=timedelta(hours=1),
        reader=READER,
        dry_run=True,
    )

    @task
    def windows(previewed: dict[str, Any]) -> list[str]:
        return previewed["windows"]

    ReadWindowOperator.partial(
        task_id="read",
        source=EVENTS,
        reader=READER,
        sink=TABLE,
        # Airflow knows the assets of a mapped task from `partial` alone
        outlets=[Asset(uri=TABLE.asset_uri)],
        max_active_tis_per_dag=4,
    ).expand(window=windows(preview.output))
