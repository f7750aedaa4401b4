"""A watcher that records cuts on a clock, and a DAG that plans a window between them."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, Asset, AssetWatcher

from airflow_provider_streams.operators.read import ReadWindowOperator
from airflow_provider_streams.sensors.window import WindowReadySensor
from airflow_provider_streams.testing.fake import FakeSource
from airflow_provider_streams.triggers.cuts import RecordCutsTrigger

NUMBERS = FakeSource("numbers", conn_id="fake_recorded")
COMMON: dict[str, Any] = {"source": NUMBERS, "window": "{{ dag_run.conf['window'] }}", "basis": "append"}

CUTS = Asset(
    "recorded_cuts",
    watchers=[AssetWatcher(name="clock", trigger=RecordCutsTrigger([NUMBERS], 0.5, recorder="clock"))],
)

with DAG("recorded_cuts", schedule=[CUTS]) as dag:
    ready = WindowReadySensor(task_id="ready", start_from_trigger=True, poke_interval=0.5, timeout=300, **COMMON)
    ready >> ReadWindowOperator(task_id="plan", dry_run=True, **COMMON)
