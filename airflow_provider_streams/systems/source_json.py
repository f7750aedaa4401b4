"""Sources as plain JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.schema.payload import Payload, payload_to_json
from airflow_provider_streams.systems.registry import declaration_of

if TYPE_CHECKING:
    from airflow_provider_streams.model.stream.source import Source


def source_to_json(source: Source) -> dict[str, Any]:
    """A source as plain JSON values: its system and its fields; sources hold no secret."""
    given = fields(source)  # type: ignore[arg-type]  # dataclasses all
    values = {one.metadata.get("argument", one.name): getattr(source, one.name) for one in given}
    return {"system": source.system, **{name: _plain(value) for name, value in values.items()}}


def _plain(value: Any) -> Any:
    if isinstance(value, Payload):
        return payload_to_json(value)
    return list(value) if isinstance(value, tuple) else value


def payloads_of(source: Source) -> dict[str, Payload | None]:
    """How a source's values and keys are decoded; None: they are not."""
    given = {one.metadata.get("argument", one.name): one.name for one in fields(source)}  # type: ignore[arg-type]  # the same
    return {what: getattr(source, given[what]) for what in ("value", "key") if what in given}


def decoded_source(source: Source, payloads: Mapping[str, Payload]) -> Source:
    """The same source, whose values and keys are decoded in this way.

    Raises:
        InvalidRequest: its events have none, or these cannot be decoded in this way.
    """
    given = {one.metadata.get("argument", one.name) for one in fields(source)}  # type: ignore[arg-type]  # dataclasses
    unknown = sorted(set(payloads) - given)
    if unknown:
        raise InvalidRequest(f"events of a {source.system} source have no {unknown[0]} that could be decoded")
    return source_from_json({**source_to_json(source), **payloads}) if payloads else source


def source_from_json(data: Mapping[str, Any]) -> Source:
    """The reverse of `source_to_json`.

    Raises:
        InvalidRequest: no such system.
    """
    arguments = dict(data)
    source: Source = declaration_of(arguments.pop("system")).source_class(**arguments)
    return source
