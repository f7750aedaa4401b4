"""Windows that are only planned and pinned: what Airflow's own backfill makes of partitions and of data intervals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG, CronDataIntervalTimetable, CronPartitionTimetable

from airflow_provider_streams.model.basis import PublishTime
from airflow_provider_streams.operators.read import ReadWindowOperator
from airflow_provider_streams.testing.fake import FakeSource

START = datetime(2026, 11, 20, tzinfo=UTC)


def planning(dag_id: str, schedule: object, **arguments: object) -> DAG:
    """An hourly DAG of one task that reads nothing."""
    with DAG(dag_id, schedule=schedule, start_date=START, catchup=False) as dag:
        basis = PublishTime(timedelta(0))
        ReadWindowOperator(task_id="plan", source=FakeSource("numbers"), basis=basis, dry_run=True, **arguments)
    return dag


partitions = planning(
    "hourly_partitions",
    CronPartitionTimetable("@hourly", timezone="UTC", run_offset=-1),
    window_length=timedelta(hours=1),
)
intervals = planning("hourly_intervals", CronDataIntervalTimetable("@hourly", timezone="UTC"))
