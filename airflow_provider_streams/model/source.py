"""A source: a topic list or pattern, or a stream, on one connection."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Literal, Protocol, runtime_checkable
from urllib.parse import quote

from airflow_provider_streams.errors import InvalidName, InvalidRequest


@runtime_checkable
class Source(Protocol):
    """What every system's source offers."""

    system: ClassVar[str]
    """Which row of `systems.base.SYSTEMS` reads it."""

    @property
    def conn_id(self) -> str:
        """The Airflow connection."""

    @property
    def key(self) -> str:
        """Its identity in the journal: the same events on the same connection have the same key."""

    @property
    def asset_uri(self) -> str:
        """Its Airflow asset."""


def check_source(source: object) -> Source:
    """What a user gave as a source.

    Raises:
        InvalidRequest: it is none.
    """
    if not isinstance(source, Source):
        raise InvalidRequest(f"source must be one like PulsarSource('topic'), got {type(source).__name__}")
    return source


@dataclass(frozen=True, slots=True)
class PulsarSource:
    """Topics of one Pulsar cluster.

    Args:
        topics: a topic or several: `orders` (public/default), `shop/orders/events`,
            `persistent://shop/orders/events`, or one partition, `..-partition-3`.
        pattern: instead of topics, a regular expression that full topic names must match as a whole, for
            example `persistent://shop/orders/.*`; resolved when a window is planned, and recorded in the plan.
            Tenant and namespace must be plain text.
        conn_id: the Airflow connection.

    Raises:
        InvalidName: a topic that is not persistent, or not a topic's name.
        InvalidRequest: neither topics nor a pattern, or both.
    """

    system: ClassVar[str] = "pulsar"

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    conn_id: str = "pulsar_default"

    def __init__(
        self, topics: str | Iterable[str] = (), *, pattern: str | None = None, conn_id: str = "pulsar_default"
    ) -> None:
        names = (topics,) if isinstance(topics, str) else tuple(topics)
        if bool(names) == bool(pattern):
            raise InvalidRequest("PulsarSource takes topics or a pattern, one of them")
        object.__setattr__(self, "topics", tuple(dict.fromkeys(full_topic_name(name) for name in names)))
        object.__setattr__(self, "pattern", full_topic_pattern(pattern) if pattern else None)
        object.__setattr__(self, "conn_id", conn_id)

    def __str__(self) -> str:
        return self.pattern or ", ".join(self.topics)

    @property
    def key(self) -> str:
        """`pulsar:<connection>:<sorted full names>`, or `pulsar:<connection>:pattern:<pattern>`."""
        return f"pulsar:{self.conn_id}:{f'pattern:{self.pattern}' if self.pattern else ','.join(sorted(self.topics))}"

    @property
    def asset_uri(self) -> str:
        """`pulsar://<connection>/<tenant>/<namespace>/<topic>` of the first topic, or of the pattern."""
        name = self.pattern or self.topics[0]
        return f"pulsar://{self.conn_id}/{in_uri(name.removeprefix('persistent://'))}"


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


def in_uri(path: str) -> str:
    """A name as the path of an asset's URI, where `?`, `#` and `%` would mean something else."""
    return quote(path, safe="/:@!$&'()*+,;=-._~")


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


_DOMAIN = re.compile(r"^(?P<domain>[a-z-]+)://")
_PART = re.compile(r"^[-=:.\w]+$")
_REFUSED = {
    "non-persistent": "its messages are not stored, so a window of it cannot be read",
    "topic": "it is a Pulsar 5 scalable topic, whose segments this version does not read",
}


def full_topic_name(name: str) -> str:
    """`persistent://tenant/namespace/topic` for a full name or one of Pulsar's shorthands.

    Raises:
        InvalidName: another domain, or not 1 or 3 parts.
    """
    domain = _DOMAIN.match(name)
    if domain and domain["domain"] != "persistent":
        raise InvalidName(name, _REFUSED.get(domain["domain"], "only persistent:// topics can be read"))
    parts = name.removeprefix("persistent://").split("/")
    if len(parts) == 1 and not domain:
        parts = ["public", "default", *parts]
    if len(parts) != 3 or not all(map(_PART.match, parts[:2])) or not parts[2].strip():  # noqa: PLR2004
        raise InvalidName(name, "write it as 'topic', 'tenant/namespace/topic' or 'persistent://..'")
    return f"persistent://{'/'.join(parts)}"


def full_topic_pattern(pattern: str) -> str:
    """The pattern with its domain, tenant and namespace.

    Raises:
        InvalidName: not a regular expression, another domain, or a tenant or namespace that is not plain text.
    """
    domain = _DOMAIN.match(pattern)
    if domain and domain["domain"] != "persistent":
        raise InvalidName(pattern, _REFUSED.get(domain["domain"], "only persistent:// topics can be read"))
    parts = pattern.removeprefix("persistent://").split("/", 2)
    if len(parts) == 1 and not domain:
        parts = ["public", "default", *parts]
    if len(parts) != 3 or not all(map(_PART.match, parts[:2])):  # noqa: PLR2004
        raise InvalidName(pattern, "tenant and namespace of a pattern must be plain text")
    full = f"persistent://{'/'.join(parts)}"
    try:
        re.compile(full)
    except re.error as error:
        raise InvalidName(pattern, f"not a regular expression: {error}") from error
    return full
