"""Conditions that sensors and triggers wait for, with one JSON form for all systems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, fields
from typing import Any, ClassVar, Literal, Protocol

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.systems.registry import declaration_of, load

Direction = Literal["at_least", "at_most"]


class Condition(Protocol):
    """Something to wait for: a dataclass whose fields are plain JSON values, and whose rule asks its system."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    kind: ClassVar[str]
    """Its name among its system's conditions."""


def condition_to_json(condition: Condition) -> dict[str, Any]:
    """A condition as a trigger's argument."""
    values = {one.name: getattr(condition, one.name) for one in fields(condition) if one.init}
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    return {"kind": condition.kind, **plain}


def condition_from_json(system: str, data: Mapping[str, Any]) -> Condition:
    """The reverse of `condition_to_json`, given the name of the system that is asked.

    Raises:
        InvalidRequest: no such system, or no such condition of it.
    """
    path = declaration_of(system).conditions
    kinds: Mapping[str, type[Condition]] = load(path) if path else {}
    kind = data["kind"]
    if kind not in kinds:
        raise InvalidRequest(f"no condition {kind!r} of {system}; known: {', '.join(sorted(kinds))}")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    return kinds[kind](**{name: value for name, value in values.items() if name != "kind"})


def check_limit(direction: str, limits: Mapping[str, float | None]) -> None:
    """Check the limits of a backlog.

    Raises:
        InvalidRequest: an unknown direction, no limit, or a negative one.
    """
    if direction not in ("at_least", "at_most"):
        raise InvalidRequest(f"direction must be 'at_least' or 'at_most', got {direction!r}")
    given = [limit for limit in limits.values() if limit is not None]
    if not given:
        raise InvalidRequest(f"give at least one limit: {', '.join(limits)}")
    if not all(limit >= 0 for limit in given):
        raise InvalidRequest("a backlog's limits must not be negative")
