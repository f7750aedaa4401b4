"""The decoded field that is an event's time, and whether it can be one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.plan.plan import Plan, PlanRequest
from airflow_provider_streams.model.plan.row_filter import FieldFilter, TimeUnit
from airflow_provider_streams.model.schema.decoding import Decoding
from airflow_provider_streams.model.schema.types import Simple, StructOf, Type, columns

_MOMENTS: Final = ("timestamp", "timestamp_ntz", "date")
_NUMBERS: Final = ("int", "long")


def check_request(request: PlanRequest, value: object) -> None:
    """Check that rows can have the requested field.

    Raises:
        InvalidRequest: nothing is decoded.
    """
    field = request.event.event_time
    if field is not None and value is None:
        raise InvalidRequest(
            f"{request.source}: event_time={field!r} is a field of decoded values, and nothing is decoded: say what "
            "the values are, like value='auto' or value=Json('created_at timestamp, ..')"
        )


def checked(plan: Plan) -> Plan:
    """The plan, if the field that filters its rows is a time.

    Raises:
        InvalidRequest: it is missing, or no time. The message names the fields that are.
    """
    if isinstance(plan.filter, FieldFilter) and plan.decoding is not None:
        path, unit = plan.filter.column, plan.filter.unit
        problem = _problem(type_of(plan.decoding.value, path), unit)
        if problem:
            known = ", ".join(_times(plan.decoding.value)) or "none"
            source = ", ".join(plan.source.names)
            raise InvalidRequest(f"{source}: event_time={path!r}: {problem}. Fields that can be: {known}")
    return plan


def type_of(row: Type, path: str) -> Type | None:
    """The type of a field, by its name or its path through structs; None: there is no such field."""
    found: Type | None = StructOf(columns(row))
    for step in steps_of(row, path):
        fields = found.fields if isinstance(found, StructOf) else ()
        found = next((one.type for one in fields if one.name == step), None)
    return found


def steps_of(row: Type, path: str) -> tuple[str, ...]:
    """The names on the way to a field. A column whose name has dots comes before a way through structs."""
    return (path,) if any(one.name == path for one in columns(row)) else tuple(path.split("."))


def column_of(decoding: Decoding | None, path: str) -> str:
    """The column to read for a field."""
    return path if decoding is None else steps_of(decoding.value, path)[0]


def _problem(found: Type | None, unit: TimeUnit | None) -> str:
    if found is None:
        return "there is no such field"
    word = found.word if isinstance(found, Simple) else ""
    if word in _NUMBERS and unit is None:
        return f"it is a number ({word}): say in which unit it counts from 1970, EventTime(event_time=.., unit='ms')"
    if word in _MOMENTS and unit is not None:
        return f"it is a time ({word}) already: leave unit out"
    return "" if word in (*_MOMENTS, *_NUMBERS) else f"{found} is no time"


def _times(row: Type) -> Iterator[str]:
    for one in columns(row):
        word = one.type.word if isinstance(one.type, Simple) else ""
        if word in _MOMENTS:
            yield one.name
        elif word in _NUMBERS:
            yield f"{one.name} (with unit)"
