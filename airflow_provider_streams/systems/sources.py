"""Sources by the name of their system, and as plain JSON values."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import InvalidRequest

if TYPE_CHECKING:
    from airflow_provider_streams.model.source import Source

SOURCES: dict[str, str] = {
    "pulsar": "airflow_provider_streams.systems.pulsar.source:PulsarSource",
    "pravega": "airflow_provider_streams.systems.pravega.source:PravegaSource",
    "fake": "airflow_provider_streams.testing.fake:FakeSource",
}
"""System to the class of its sources."""


def source_of(system: str, names: Sequence[str], conn_id: str) -> Source:
    """A source by its system's name and its own.

    Raises:
        InvalidRequest: no such system, or not a name it can have.
    """
    kind = _source_class(system)
    source: Source = kind(names if system == "pulsar" else "/".join(names), conn_id=conn_id)
    return source


def source_to_json(source: Source) -> dict[str, Any]:
    """A source as plain JSON values: its system and its fields; sources hold no secret."""
    values = {one.name: getattr(source, one.name) for one in fields(source)}  # type: ignore[arg-type]  # dataclasses all
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    return {"system": source.system, **plain}


def source_from_json(data: Mapping[str, Any]) -> Source:
    """The reverse of `source_to_json`.

    Raises:
        InvalidRequest: no such system.
    """
    arguments = dict(data)
    source: Source = _source_class(arguments.pop("system"))(**arguments)
    return source


def _source_class(system: str) -> Any:
    try:
        module, _, attribute = SOURCES[system].partition(":")
    except KeyError:
        raise InvalidRequest(f"no stream system {system!r}; known: {', '.join(sorted(SOURCES))}") from None
    return getattr(importlib.import_module(module), attribute)
