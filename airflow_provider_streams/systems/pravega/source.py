"""A stream of one Pravega cluster, and the names that it can have."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Literal

from airflow_provider_streams.errors import InvalidName, InvalidRequest

EventTimeUnit = Literal["s", "ms", "us"]
"""Since 1970."""


@dataclass(frozen=True, slots=True)
class PravegaSource:
    """One stream of a Pravega cluster.

    Args:
        stream: `scope/stream`.
        conn_id: the Airflow connection.
        event_time_unit: basis `event`: the unit of the times that its writers note, since 1970: `s`, `ms` or `us`.

    Raises:
        InvalidName: not a scope and a stream, or a character that Pravega's names cannot have.
        InvalidRequest: an unknown unit.
    """

    system: ClassVar[str] = "pravega"

    stream: str
    conn_id: str = "pravega_default"
    event_time_unit: EventTimeUnit = "ms"

    def __post_init__(self) -> None:
        object.__setattr__(self, "stream", scoped_stream_name(self.stream))
        if self.event_time_unit not in _UNITS:
            raise InvalidRequest(f"event_time_unit is one of {', '.join(_UNITS)}, got {self.event_time_unit!r}")

    def __str__(self) -> str:
        return self.stream

    @property
    def unit(self) -> timedelta:
        """The unit of the times that its writers note."""
        return _UNITS[self.event_time_unit]

    @property
    def key(self) -> str:
        """`pravega:<connection>:<scope>/<stream>`."""
        return f"pravega:{self.conn_id}:{self.stream}"

    @property
    def asset_uri(self) -> str:
        """`pravega://<connection>/<scope>/<stream>`."""
        return f"pravega://{self.conn_id}/{self.stream}"


_UNITS = {"s": timedelta(seconds=1), "ms": timedelta(milliseconds=1), "us": timedelta(microseconds=1)}
_SCOPE = re.compile(r"_?[A-Za-z0-9.-]{1,255}")
_STREAM = re.compile(r"_?[A-Za-z0-9.-]{1,250}")


def scoped_stream_name(name: str) -> str:
    """The name itself, `scope/stream`, if Pravega can have such a stream.

    Raises:
        InvalidName: otherwise.
    """
    scope, slash, stream = name.partition("/")
    if not slash:
        raise InvalidName(name, "write it as 'scope/stream'")
    if not _SCOPE.fullmatch(scope) or not _STREAM.fullmatch(stream):
        raise InvalidName(name, "scope and stream consist of letters, digits, '.' and '-'")
    return name
