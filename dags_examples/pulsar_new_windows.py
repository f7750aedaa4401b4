"""Reads windows as soon as they are complete, without a clock: a watcher announces them until they are covered."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Asset, AssetWatcher, task

from airflow_provider_streams import NewWindowsTrigger, ParquetSink, PulsarSource, ReadWindowOperator

EVENTS = PulsarSource("shop/orders/events", conn_id="pulsar_default")
TABLE = ParquetSink(os.environ.get("LAKE", "/lake") + "/orders")
READER = "orders"

# Its own asset: each task that reads the topic names the topic's asset, without watchers. Airflow ends an asset's
# watchers whenever it parses such a file.
COMPLETE = Asset(
    "complete_quarters_of_orders",
    watchers=[AssetWatcher(name="complete", trigger=NewWindowsTrigger(EVENTS, timedelta(minutes=15), reader=READER))],
)

with DAG(
    "pulsar_new_windows",
    schedule=[COMPLETE],
    start_date=datetime(2026, 11, 1, tzinfo=UTC),
    max_active_runs=1,
    doc_md=__doc__,
) as dag:

    @task
    def windows(triggering_asset_events: Any = None) -> list[str]:
        # the newest event says all there is to say
        (*_, newest) = triggering_asset_events[COMPLETE]
        return [f"{window['start']}/{window['end']}" for window in newest.extra["payload"]["windows"]]

    # Airflow knows the assets of a mapped task from `partial` alone
    ReadWindowOperator.partial(
        task_id="read", source=EVENTS, reader=READER, sink=TABLE, outlets=[Asset(uri=TABLE.asset_uri)]
    ).expand(window=windows())
