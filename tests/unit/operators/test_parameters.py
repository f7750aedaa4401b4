"""What an editor completes: every class spells out its own parameters and those of its base classes."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import pytest
from airflow.sdk import BaseOperator

from airflow_provider_streams import operators, sensors
from airflow_provider_streams.operators.read import ReadWindowOperator

PACKAGE = "airflow_provider_streams"


def classes() -> Iterator[type]:
    for folder in (operators, sensors):
        for module in pkgutil.iter_modules(folder.__path__, f"{folder.__name__}."):
            for found in vars(importlib.import_module(module.name)).values():
                if isinstance(found, type) and issubclass(found, BaseOperator) and found.__module__ == module.name:
                    yield found


CLASSES = sorted(classes(), key=lambda one: one.__qualname__)
FIXED = {"PulsarCaughtUpSensor": {"bytes", "direction"}}
"""What a class says of its base class itself."""


def own(cls: type) -> set[str]:
    parameters = inspect.signature(cls.__init__).parameters.values()
    return {one.name for one in parameters if one.kind is one.KEYWORD_ONLY}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda one: one.__qualname__)
def test_no_parameter_of_ours_hides_in_kwargs(cls):
    inherited = {name for base in cls.__mro__ if base.__module__.startswith(PACKAGE) for name in own(base)}
    assert inherited - FIXED.get(cls.__qualname__, set()) <= own(cls)


def test_what_names_a_stream_or_a_table_is_templated():
    named = {"source", "sources", "sink", "topic", "stream", "reader"}
    for cls in CLASSES:
        fields = set(cls.template_fields)
        # operators on one topic or stream take a source for its name alone
        taken = own(cls) & named - ({"source"} if {"topic", "stream"} & fields and "source" not in fields else set())
        assert taken <= fields, cls


def test_the_read_names_source_sink_and_reader():
    assert {"source", "sink", "reader", "window", "basis", "on_loss"} <= own(ReadWindowOperator)
