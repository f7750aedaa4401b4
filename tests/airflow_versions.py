"""Tests of what only newer versions of Airflow can do, and names that moved between versions."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from airflow_provider_streams.airflow_features import Feature, has


def needs(feature: Feature) -> pytest.MarkDecorator:
    """Skip a test on versions of Airflow that lack a feature; what takes its place has tests of its own."""
    return pytest.mark.skipif(not has(feature), reason=f"Airflow has it since {feature.since}")


RUN_RULE = "partition" if has(Feature.PARTITIONED_RUNS) else "data_interval"
"""What a receipt says of how a scheduled run got its window."""


def serialized(dag: Any) -> dict[str, Any]:
    """A DAG as Airflow stores it."""
    return _serialization().to_dict(dag)


def deserialized(stored: dict[str, Any]) -> Any:
    """A DAG as the scheduler has it."""
    return _serialization().from_dict(stored)


def _serialization() -> Any:
    home = import_module("airflow.serialization.serialized_objects")
    return getattr(home, "DagSerialization", None) or home.SerializedDAG


def stored_trigger(trigger: Any) -> dict[str, Any]:
    """Class path and arguments of a DAG's watcher, as its row gets them."""
    try:
        return import_module("airflow.serialization.encoders").encode_trigger(trigger)
    except ImportError:
        return import_module("airflow.serialization.serialized_objects")._encode_trigger(trigger)


def trigger_argument(stored: Any) -> Any:
    """An argument of a trigger, as the triggerer decodes it."""
    try:
        home = import_module("airflow.serialization.decoders")
    except ImportError:
        home = import_module("airflow.serialization.serialized_objects")
    return home.smart_decode_trigger_kwargs(stored)


def sdk_timetable(name: str) -> Any:
    """A timetable's class as DAG files name it: those with data intervals are in `airflow.sdk` since 3.2."""
    sdk = import_module("airflow.sdk")
    home = "airflow.timetables.trigger" if name == "CronTriggerTimetable" else "airflow.timetables.interval"
    return getattr(sdk, name, None) or getattr(import_module(home), name)
