"""A real topic and a real stream, each read every five seconds, and filled where something is missing."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset, AssetWatcher

from airflow_provider_streams import (
    BackfillWindowsOperator,
    ParquetSink,
    PravegaSource,
    PublishTime,
    PulsarSource,
    ReadWindowOperator,
    RecordedCuts,
    WindowReadySensor,
)
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.basis import Basis
from airflow_provider_streams.timetables import window_timetable
from airflow_provider_streams.triggers.cuts import RecordCutsTrigger

LENGTH = timedelta(seconds=5)
START = datetime(2026, 11, 1, tzinfo=UTC)
RETRIED = {"retries": 4, "retry_delay": timedelta(seconds=1)}
STREAM = PravegaSource("stack/orders", conn_id="pravega_stack")


def reading(name: str, source: Source, basis: Basis, columns: list[str]) -> tuple[DAG, DAG]:
    """`every_<name>` reads each window once it is complete; `fill_<name>` fills a span of them.

    Each window is awaited in the triggerer, even where a slow machine comes to it when it is complete.
    """
    landing = {"sink": ParquetSink(f"{os.environ['STREAMS_TEST_LAKE']}-every-{name}"), "columns": columns}
    with DAG(
        f"every_{name}",
        schedule=window_timetable("* * * * * */5"),
        start_date=START,
        catchup=False,
        max_active_runs=1,
        default_args=RETRIED,
    ) as every:
        waiting = {"start_from_trigger": True, "poke_interval": 0.5, "timeout": 300}
        ready = WindowReadySensor(task_id="ready", source=source, basis=basis, **waiting)
        ready >> ReadWindowOperator(task_id="read", source=source, basis=basis, **landing)
    with DAG(f"fill_{name}", schedule=None, start_date=START, default_args=RETRIED) as fill:
        BackfillWindowsOperator(
            task_id="fill",
            source=source,
            start="{{ dag_run.conf['start'] }}",
            end="{{ dag_run.conf['end'] }}",
            window_length=LENGTH,
            basis=basis,
            reader=f"every_{name}.read",
            **landing,
        )
    return every, fill


every_pulsar, fill_pulsar = reading(
    "pulsar",
    PulsarSource("public/stack/orders", conn_id="pulsar_stack"),
    PublishTime(timedelta(seconds=1)),
    ["value", "publish_time", "partition", "ledger", "entry", "batch_index"],
)
every_pravega, fill_pravega = reading("pravega", STREAM, RecordedCuts(), ["event", "segment_id", "offset"])

CUTS = Asset(
    "stack_orders_cuts",
    watchers=[AssetWatcher(name="clock", trigger=RecordCutsTrigger([STREAM], 0.5, recorder="stack"))],
)
with DAG("record_orders", schedule=[CUTS]) as recorder:
    EmptyOperator(task_id="note")
