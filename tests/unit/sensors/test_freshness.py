"""What the sensor of fresh tables refuses, and what its trigger carries."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from airflow_provider_streams import AutoCdc, IcebergSink, PulsarSource
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.lake.registry import sink_from_json
from airflow_provider_streams.sensors.freshness import FreshTableSensor
from airflow_provider_streams.triggers.freshness import FreshTableTrigger

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
SINK = IcebergSink("shop.orders", conn_id="iceberg_default", apply=AutoCdc(keys=["id"]))


def test_the_trigger_carries_the_table_and_an_aware_time() -> None:
    sensor = FreshTableSensor(task_id="f", sink=SINK, until=NOON, poke_interval=3)
    path, arguments = sensor.trigger({}).serialize()  # type: ignore[arg-type]
    assert path == f"{FreshTableTrigger.__module__}.{FreshTableTrigger.__qualname__}"
    again = FreshTableTrigger(**json.loads(json.dumps(arguments)))
    assert (sink_from_json(again.sink), again.until, again.poll_interval) == (SINK, NOON.isoformat(), 3)


@pytest.mark.parametrize("sink", [IcebergSink("shop.{topic}"), PulsarSource("orders"), IcebergSink])
def test_what_is_no_single_table_is_refused_when_the_dag_is_parsed(sink: object) -> None:
    with pytest.raises(InvalidRequest):
        FreshTableSensor(task_id="f", sink=sink, until=NOON)  # type: ignore[arg-type]
