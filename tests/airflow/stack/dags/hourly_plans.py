"""Windows that are only planned and pinned: what Airflow's own backfill makes of partitions and of data intervals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from airflow_provider_streams.model.window.basis import PublishTime
from airflow_provider_streams.operators.read import ReadWindowOperator
from airflow_provider_streams.testing.fake import FakeSource
from airflow_provider_streams.timetables import window_timetable

try:
    from airflow.sdk import CronDataIntervalTimetable
except ImportError:  # Airflow 3.1
    from airflow.timetables.interval import CronDataIntervalTimetable

START = datetime(2026, 11, 20, tzinfo=UTC)


def planning(dag_id: str, schedule: object, **arguments: object) -> DAG:
    """An hourly DAG of one task that reads nothing."""
    with DAG(dag_id, schedule=schedule, start_date=START, catchup=False) as dag:
        basis = PublishTime(timedelta(0))
        ReadWindowOperator(task_id="plan", source=FakeSource("numbers"), basis=basis, dry_run=True, **arguments)
    return dag


partitions = planning(
    "hourly_partitions",
    window_timetable("@hourly"),
    window_length=timedelta(hours=1),
)
intervals = planning("hourly_intervals", CronDataIntervalTimetable("@hourly", timezone="UTC"))
