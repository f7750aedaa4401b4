"""Sources as plain JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.systems.registry import declaration_of

if TYPE_CHECKING:
    from airflow_provider_streams.model.source import Source


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
    source: Source = declaration_of(arguments.pop("system")).source_class(**arguments)
    return source
