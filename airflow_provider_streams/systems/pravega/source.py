"""Streams of one Pravega cluster, and the names that they can have."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar, Literal
from urllib.parse import quote

from airflow_provider_streams.errors import InvalidName, InvalidRequest, InvalidSchema
from airflow_provider_streams.model.asset_uri_length import short_uri
from airflow_provider_streams.model.parse_time_value import ParseTimeValue, takes_field_names
from airflow_provider_streams.model.schema.payload import Auto, Payload, PayloadLike, payload_from
from airflow_provider_streams.model.sinks.templates import is_template
from airflow_provider_streams.model.stream.key_selection import Selection, key_texts
from airflow_provider_streams.model.stream.source import Source, in_uri
from airflow_provider_streams.model.text_arguments import (
    check_conn_id,
    check_names,
    check_optional_names,
    several_names,
)
from airflow_provider_streams.model.window.basis import Basis, EventTime

EventTimeUnit = Literal["s", "ms", "us"]
"""Since 1970."""


@dataclass(frozen=True, slots=True)
class PravegaSource(ParseTimeValue):
    """A stream of a Pravega cluster, or several.

    One of `stream`, `scope` and `pattern` says which. Planning a window resolves scope, pattern and tags, and records
    the streams in the plan.

    Args:
        stream: `scope/stream`, or several of them; each must exist.
        scope: instead, all streams of a scope.
        pattern: instead, a regular expression that `scope/stream` must match as a whole, for example
            `shop/orders-.*`. The scope must be plain text.
        tags: with a scope or a pattern: only streams that have all of these tags.
        routing_keys: only segments that may hold events of these routing keys are read, by the hash of Java's clients;
            each as a whole, so events of other keys in them land as well.
        conn_id: the Airflow connection.
        event_time_unit: basis `event`: the unit of the times that its writers note, since 1970: `s`, `ms` or `us`.
        value: what the events are: `Registry(..)` (by the schemas of a registry), `Json(..)`, `Avro(..)`,
            `Protobuf(..)`, `Utf8()` or `Bytes()`; None: they are not decoded.

    Raises:
        InvalidName: not a scope and a stream, or a character that Pravega's names cannot have.
        InvalidRequest: not exactly one of `stream`, `scope` and `pattern`, or an unknown unit.
        InvalidSchema: events that cannot be decoded so.
    """

    system: ClassVar[str] = "pravega"

    streams: tuple[str, ...] = field(default=(), metadata={"argument": "stream"})
    """The named ones; empty: scope or pattern say which."""
    scope: str | None = None
    pattern: str | None = None
    tags: tuple[str, ...] = ()
    routing_keys: tuple[str, ...] = ()
    """Empty: all."""
    conn_id: str = "pravega_default"
    event_time_unit: EventTimeUnit = "ms"
    value: Payload | None = None

    @takes_field_names
    def __init__(
        self,
        stream: str | Iterable[str] = (),
        conn_id: str = "pravega_default",
        event_time_unit: EventTimeUnit = "ms",
        value: PayloadLike | None = None,
        *,
        scope: str | None = None,
        pattern: str | None = None,
        tags: str | Iterable[str] = (),
        routing_keys: str | Iterable[str] = (),
    ) -> None:
        owner = type(self).__name__
        streams, wanted = several_names(owner, "stream", stream), several_names(owner, "tags", tags)
        check_names(owner, event_time_unit=event_time_unit)
        check_optional_names(owner, scope=scope, pattern=pattern)
        check_conn_id(owner, conn_id)
        if (bool(streams), bool(scope), bool(pattern)).count(True) != 1:
            raise InvalidRequest("PravegaSource takes a stream or several, a scope, or a pattern: one of them")
        if wanted and streams:
            raise InvalidRequest("tags choose among the streams of a scope or a pattern: give one of these with them")
        if event_time_unit not in _UNITS:
            raise InvalidRequest(f"event_time_unit is one of {', '.join(_UNITS)}, got {event_time_unit!r}")
        set_field = object.__setattr__
        set_field(self, "streams", tuple(dict.fromkeys(scoped_stream_name(name) for name in streams)))
        set_field(self, "scope", _scope_name(scope) if scope else None)
        set_field(self, "pattern", _stream_pattern(pattern) if pattern else None)
        set_field(self, "tags", tuple(sorted(set(wanted))))
        set_field(self, "routing_keys", key_texts(owner, "routing_keys", routing_keys))
        set_field(self, "conn_id", conn_id)
        set_field(self, "event_time_unit", event_time_unit)
        set_field(self, "value", _payload(value))

    def __str__(self) -> str:
        tagged = f" tagged {', '.join(self.tags)}" if self.tags else ""
        chosen = f" ({self.selection})" if self.selection else ""
        return f"{', '.join(self.streams) or self.pattern or f'{self.scope}/*'}{tagged}{chosen}"

    @property
    def selection(self) -> Selection | None:
        """Which routing keys are chosen; None: all."""
        return Selection(routing_keys=self.routing_keys) if self.routing_keys else None

    @property
    def is_one(self) -> bool:
        """Whether it is one stream, and will always be."""
        return len(self.streams) == 1

    @property
    def stream(self) -> str:
        """The one stream, `scope/stream`; `InvalidRequest` if there may be several."""
        if not self.is_one:
            raise InvalidRequest(f"{self} may be several streams: name the one that is meant, 'scope/stream'")
        return self.streams[0]

    @property
    def chosen_scope(self) -> str:
        """The scope from which scope, pattern and tags choose streams; empty: all are named."""
        return self.scope or (self.pattern or "").partition("/")[0]

    def may_have(self, stream: str) -> bool:
        """Whether a stream of this name can be one of them; its tags are not checked."""
        if self.pattern:
            return re.fullmatch(self.pattern, stream) is not None
        return stream in self.streams or stream.partition("/")[0] == self.scope

    def only(self, stream: str) -> PravegaSource:
        """One of its streams, read in the same way."""
        return PravegaSource(stream, self.conn_id, self.event_time_unit, self.value, routing_keys=self.routing_keys)

    @property
    def unit(self) -> timedelta:
        """The unit of the times that its writers note."""
        return _UNITS[self.event_time_unit]

    @property
    def key(self) -> str:
        """`pravega:<connection>:[routing_keys:<keys>:]` and the streams, or `[tags:<tags>:](scope|pattern):<it>`."""
        chosen = f"{self.selection.text}:" if self.selection else ""
        if self.streams:
            return f"pravega:{self.conn_id}:{chosen}{','.join(sorted(self.streams))}"
        tags = f"tags:{','.join(quote(tag, safe='') for tag in self.tags)}:" if self.tags else ""
        which = f"pattern:{self.pattern}" if self.pattern else f"scope:{self.scope}"
        return f"pravega:{self.conn_id}:{chosen}{tags}{which}"

    @property
    def asset_uri(self) -> str:
        """`pravega://<connection>/<scope>/<stream>`; of several streams all, or the scope, or the pattern."""
        name = ",".join(sorted(self.streams)) or self.pattern or self.scope or ""
        tags = f";tags={','.join(quote(tag, safe='') for tag in self.tags)}" if self.tags else ""
        return short_uri(f"pravega://{self.conn_id}/{in_uri(name)}{tags}")


def pravega_source(source: Source) -> PravegaSource:
    """A source as one of Pravega; `InvalidRequest` for another system's."""
    if not isinstance(source, PravegaSource):
        raise InvalidRequest(f"{source} is no Pravega stream")
    return source


def check_event_basis(basis: Basis, source: object = "a Pravega source") -> None:
    """Refuse a window by event time with neither a field nor `rows="superset"`, with `InvalidRequest`."""
    if isinstance(basis, EventTime) and basis.event_time is None and basis.rows == "exact":
        raise InvalidRequest(
            f"{source}: Pravega keeps no time with an event, so a window by event time needs the field that is its "
            "time: EventTime(event_time='created_at'), and a source with value=.. . EventTime(rows='superset') reads "
            "all between the watermarks around the window, for a transform to filter: adjacent windows then share rows"
        )


def _payload(given: PayloadLike | None) -> Payload | None:
    payload = payload_from(given)
    if isinstance(payload, Auto):
        raise InvalidSchema("'auto'", "Pravega keeps no schemas", "Write value=Registry(conn_id=..).")
    return payload


_UNITS = {"s": timedelta(seconds=1), "ms": timedelta(milliseconds=1), "us": timedelta(microseconds=1)}
_SCOPE = re.compile(r"_?[A-Za-z0-9.-]{1,255}")
_STREAM = re.compile(r"_?[A-Za-z0-9.-]{1,250}")


def scoped_stream_name(name: str) -> str:
    """The name, if it is a template or Pravega can have such a `scope/stream`; else `InvalidName`."""
    if is_template(name):
        return name
    scope, slash, stream = name.partition("/")
    if not slash:
        raise InvalidName(name, "write it as 'scope/stream'")
    if not _SCOPE.fullmatch(scope) or not _STREAM.fullmatch(stream):
        raise InvalidName(name, "scope and stream consist of letters, digits, '.' and '-'")
    return name


def _scope_name(name: str) -> str:
    if not is_template(name) and not _SCOPE.fullmatch(name):
        raise InvalidName(name, "a scope consists of letters, digits, '.' and '-'")
    return name


def _stream_pattern(pattern: str) -> str:
    if is_template(pattern):
        return pattern
    scope, slash, rest = pattern.partition("/")
    if not slash or not rest or not _SCOPE.fullmatch(scope):
        raise InvalidName(pattern, "write it as 'scope/regular expression'; the scope must be plain text")
    try:
        re.compile(pattern)
    except re.error as error:
        raise InvalidName(pattern, f"not a regular expression: {error}") from error
    return pattern
