"""Windows that are awaited in the triggerer from the begin, then planned."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG

from airflow_provider_streams.model.window.basis import PublishTime
from airflow_provider_streams.operators.read import ReadWindowOperator
from airflow_provider_streams.sensors.window import WindowReadySensor
from airflow_provider_streams.testing.fake import FakeSource
from airflow_provider_streams.timetables import window_timetable

try:
    from airflow.sdk import CronDataIntervalTimetable
except ImportError:  # Airflow 3.1
    from airflow.timetables.interval import CronDataIntervalTimetable


def awaiting(dag_id: str, schedule: Any, **arguments: Any) -> DAG:
    """Wait for the run's window, then plan it."""
    common = {
        "source": FakeSource("numbers", conn_id="fake_from_trigger"),
        "basis": PublishTime(timedelta(0)),
        **arguments,
    }
    start = datetime(2026, 11, 20, tzinfo=UTC)
    with DAG(dag_id, schedule=schedule, start_date=start, catchup=False, default_args={"retries": 2}) as dag:
        ready = WindowReadySensor(task_id="ready", start_from_trigger=True, poke_interval=0.5, timeout=900, **common)
        ready >> ReadWindowOperator(task_id="plan", dry_run=True, **common)
    return dag


# its windows reach from partition to partition: nothing says how long they are
partitions = awaiting("from_trigger_partitions", window_timetable("@hourly"))
intervals = awaiting("from_trigger_intervals", CronDataIntervalTimetable("@hourly", timezone="UTC"))
explicit = awaiting("from_trigger_explicit", None, window="{{ dag_run.conf['window'] }}")
