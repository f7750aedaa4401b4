from __future__ import annotations

import json

import pytest

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.systems.conditions import condition_from_json, condition_to_json
from airflow_provider_streams.systems.pravega.operations.conditions import (
    CONDITIONS,
    BacklogReached,
    SegmentsSealed,
    StreamSealed,
    WatermarkReached,
)
from airflow_provider_streams.systems.schemas import SchemaAvailable
from airflow_provider_streams.triggers.condition import ConditionTrigger

SOURCE = {"system": "pravega", "stream": "shop/orders", "conn_id": "c", "event_time_unit": "ms"}
ALL = [
    SegmentsSealed(("0.#epoch.0", "shop/orders/1.#epoch.1")),
    StreamSealed(),
    BacklogReached({"shop/orders/0.#epoch.0": "12"}, 100, "at_most"),
    BacklogReached(None, 0),
    WatermarkReached(1_795_000_000_000),
    SchemaAvailable(2, ("id", "customer.city")),
]


@pytest.mark.parametrize("condition", ALL, ids=lambda one: one.kind)
def test_a_condition_survives_a_triggers_serialization(condition):
    data = json.loads(json.dumps(condition_to_json(condition)))
    assert condition_from_json("pravega", data) == condition
    trigger = ConditionTrigger(SOURCE, data, 5)
    path, arguments = trigger.serialize()
    assert path == f"{ConditionTrigger.__module__}.{ConditionTrigger.__qualname__}"
    assert ConditionTrigger(**json.loads(json.dumps(arguments))).serialize() == (path, arguments)


def test_every_condition_is_in_the_table():
    assert {type(one) for one in ALL} == set(CONDITIONS.values())


@pytest.mark.parametrize(("size", "direction"), [(-1, "at_least"), (1, "above"), (float("nan"), "at_least")])
def test_a_limit_that_is_nonsense_is_refused(size, direction):
    with pytest.raises(InvalidRequest):
        BacklogReached(None, size, direction)
