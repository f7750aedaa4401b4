"""What the sensor of recorded cuts refuses, and what its trigger carries."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from airflow_provider_streams import PravegaSource, PulsarSource
from airflow_provider_streams.errors import InvalidRequest, InvalidWindow
from airflow_provider_streams.sensors.cuts import CutAvailableSensor
from airflow_provider_streams.triggers.cuts import CutAvailableTrigger

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
SOURCES = [PravegaSource("shop/orders", conn_id="other"), PulsarSource("orders")]


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_the_trigger_carries_the_source_and_an_aware_time(source):
    path, arguments = (
        CutAvailableSensor(task_id="c", source=source, moment=NOON, poke_interval=3).trigger({}).serialize()
    )
    assert path == f"{CutAvailableTrigger.__module__}.{CutAvailableTrigger.__qualname__}"
    again = CutAvailableTrigger(**json.loads(json.dumps(arguments)))
    assert (again.read_source(), again.moment, again.poll_interval) == (source, NOON.isoformat(), 3)


@pytest.mark.parametrize("moment", ["noon", "2026-11-20T12:00", "0001-01-01T00:00+14:00", "9999-12-31T23:59-12:00"])
def test_what_is_no_moment_is_refused(moment):
    with pytest.raises(InvalidWindow):
        CutAvailableSensor(task_id="c", source=SOURCES[0], moment=moment).trigger({})


def test_the_first_and_the_last_moments_are_waited_for():
    for moment in ("0001-01-01T00:00Z", "9999-12-31T23:59:59Z"):
        assert CutAvailableSensor(task_id="c", source=SOURCES[0], moment=moment).trigger({})


def test_what_is_no_source_is_refused_when_the_dag_is_parsed():
    with pytest.raises(InvalidRequest):
        CutAvailableSensor(task_id="c", source="orders", moment=NOON)
