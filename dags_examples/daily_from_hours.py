"""A daily report that starts when all 24 hours of its day are covered, in whatever order they come."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Asset, task

from airflow_provider_streams import ParquetSink, PulsarSource, ReadWindowOperator, WindowReadySensor
from airflow_provider_streams.airflow_features import Feature, has
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.timetables import window_timetable

EVENTS = PulsarSource("shop/orders/events", conn_id="pulsar_default")
TABLE = ParquetSink(os.environ.get("LAKE", "/lake") + "/orders")
HOURS = Asset(uri=TABLE.asset_uri)

with DAG(
    "covered_hours",
    schedule=window_timetable("@hourly"),
    start_date=datetime(2026, 11, 1, tzinfo=UTC),
    doc_md=__doc__,
) as hourly:
    complete = WindowReadySensor(task_id="complete", source=EVENTS, deferrable=True)
    # its table is an asset: an event with the run's partition key says that the hour is covered
    complete >> ReadWindowOperator(task_id="read", source=EVENTS, sink=TABLE)

if has(Feature.PARTITION_EVENTS):
    from airflow.sdk import DayWindow, PartitionedAssetTimetable, RollupMapper, StartOfDayMapper

    # the hours' keys look like 2026-11-20T10:00:00, a day's like 2026-11-20
    whole_days: Any = PartitionedAssetTimetable(
        assets=HOURS, default_partition_mapper=RollupMapper(upstream_mapper=StartOfDayMapper(), window=DayWindow())
    )
else:
    # each covered hour starts a run, which reports the day only if the journal has all of it
    whole_days = [HOURS]

with DAG("daily_from_hours", schedule=whole_days, start_date=datetime(2026, 11, 1, tzinfo=UTC), doc_md=__doc__) as dag:

    @task
    def report(dag_run: Any = None, triggering_asset_events: Any = None) -> list[str]:
        if key := getattr(dag_run, "partition_key", None):
            days = [key]
        else:
            days = covered_days(triggering_asset_events[HOURS])
        for day in days:
            print(f"all of {day} is covered")
        return days

    report()


def covered_days(events: Any) -> list[str]:
    """The days of these events' windows of which their reader has covered every hour."""
    facts = [fact for event in events for fact in event.extra["windows"]]
    covered = set()
    with open_journal() as journal:
        for reader, day in {(fact["reader"], fact["window"]["start"][:10]) for fact in facts}:
            start = datetime.fromisoformat(day).replace(tzinfo=UTC)
            if journal.coverage(EVENTS.key, reader, start, start + timedelta(days=1)).is_complete:
                covered.add(day)
    return sorted(covered)
