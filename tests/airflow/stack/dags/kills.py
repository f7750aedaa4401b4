"""One hour, read while some process of Airflow is killed: a DAG, a reader and a table of its own for each."""

from __future__ import annotations

import os
from datetime import timedelta

from airflow.sdk import DAG

from airflow_provider_streams import ParquetSink, PublishTime
from airflow_provider_streams.operators.read import ReadWindowOperator
from airflow_provider_streams.sensors.window import WindowReadySensor
from airflow_provider_streams.testing.fake import FakeSource

WINDOW = "2026-11-20T10:00:00Z/2026-11-20T11:00:00Z"
RETRIED = {"retries": 4, "retry_delay": timedelta(seconds=1)}


def killed(name: str, *, waits: bool = False, reads: bool = True) -> DAG:
    """`kill_<name>`: a read, or only its plan; before it, a wait for the window."""
    source = FakeSource(name, "fake_killed")
    with DAG(f"kill_{name}", schedule=None, default_args=RETRIED) as dag:
        read = ReadWindowOperator(
            task_id="read",
            source=source,
            window=WINDOW,
            basis=PublishTime(timedelta(0)),
            sink=ParquetSink(f"{os.environ['STREAMS_TEST_LAKE']}-{name}"),
            dry_run=not reads,
        )
        if waits:
            ready = WindowReadySensor(
                task_id="ready",
                source=source,
                window=WINDOW,
                basis=PublishTime(timedelta(0)),
                deferrable=True,
                poke_interval=0.5,
                timeout=600,
            )
            ready >> read
    return dag


orphan = killed("orphan")
worker = killed("worker")
api_server = killed("api_server")
triggerer = killed("triggerer", waits=True)
dag_processor = killed("dag_processor", waits=True, reads=False)
