"""A daily report that starts when all 24 hours of its day are covered, in whatever order they come."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import (
    DAG,
    Asset,
    CronPartitionTimetable,
    DayWindow,
    PartitionedAssetTimetable,
    RollupMapper,
    StartOfDayMapper,
    task,
)

from airflow_provider_streams import ParquetSink, PulsarSource, ReadWindowOperator, WindowReadySensor

EVENTS = PulsarSource("shop/orders/events", conn_id="pulsar_default")
TABLE = ParquetSink(os.environ.get("LAKE", "/lake") + "/orders")

with DAG(
    "covered_hours",
    schedule=CronPartitionTimetable("@hourly", timezone="UTC", run_offset=-1),
    start_date=datetime(2026, 11, 1, tzinfo=UTC),
    doc_md=__doc__,
) as hourly:
    # each run reads from its partition to the next one, as the timetable says
    complete = WindowReadySensor(task_id="complete", source=EVENTS, deferrable=True)
    # its table is an asset: an event with the run's partition key says that the hour is covered
    complete >> ReadWindowOperator(task_id="read", source=EVENTS, sink=TABLE)

with DAG(
    "daily_from_hours",
    schedule=PartitionedAssetTimetable(
        assets=Asset(uri=TABLE.asset_uri),
        # the hours' keys look like 2026-11-20T10:00:00, a day's like 2026-11-20
        default_partition_mapper=RollupMapper(upstream_mapper=StartOfDayMapper(), window=DayWindow()),
    ),
    start_date=datetime(2026, 11, 1, tzinfo=UTC),
    doc_md=__doc__,
) as dag:

    @task
    def report(dag_run: Any = None) -> str:
        print(f"all of {dag_run.partition_key} is covered")
        return dag_run.partition_key

    report()
