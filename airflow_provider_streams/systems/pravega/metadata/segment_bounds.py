"""Where segments start and end: asked of every store that serves some of them, until all have answered."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from airflow_provider_streams.errors import ConnectionLost, ProtocolError
from airflow_provider_streams.systems.connection.backoff import Pause
from airflow_provider_streams.systems.io_free_rules import Rule
from airflow_provider_streams.systems.pravega.client import wire_protocol
from airflow_provider_streams.systems.pravega.client.controller import segment_calls
from airflow_provider_streams.systems.pravega.client.controller.call import Call
from airflow_provider_streams.systems.pravega.client.credentials import Tokens
from airflow_provider_streams.systems.pravega.client.segment_requests import SegmentRequests, Tries, token_for
from airflow_provider_streams.systems.pravega.client.segment_store_connection import Address
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """Where a segment starts and ends, in bytes; both ends are event boundaries."""

    start_offset: int
    write_offset: int
    is_sealed: bool
    created_ms: int | None = None
    """When it was made, milliseconds since 1970; None: its store does not know."""


@dataclass(frozen=True, slots=True)
class SegmentQuery:
    """Asks for the infos of a stream's segments; those that do not exist are left out of the answer."""

    stream: str
    segment_ids: tuple[int, ...]


_request_ids = itertools.count(1)
"""Never twice in a process: a late answer can belong to no other request."""


class Answers:
    """The answers to a `SegmentQuery` so far."""

    def __init__(self, query: SegmentQuery) -> None:
        self.tries = Tries(query.stream)
        self._query = query
        self._asked: dict[int, int] = {}
        """Segments by the ids of the requests about them that have no answer yet."""
        self._ends: dict[int, wire_protocol.StreamSegmentInfo] = {}
        self._made: dict[int, int | None] = {}
        self._gone: set[int] = set()

    @property
    def found(self) -> dict[int, SegmentInfo]:
        """The infos of those that exist."""
        return {
            key: SegmentInfo(end.start_offset, end.write_offset, end.is_sealed, self._made.get(key))
            for key, end in self._ends.items()
            if key not in self._gone
        }

    @property
    def left(self) -> list[int]:
        """The segments that must still be asked about."""
        known = self._gone | (self._ends.keys() & self._made.keys())
        return [key for key in self._query.segment_ids if key not in known]

    def requests(self, keys: Sequence[int], token: str) -> list[wire_protocol.Message]:
        """What to send to one store: as many answers come."""
        made: list[wire_protocol.Message] = []
        for key in keys:
            name = Segment(self._query.stream, key).name
            first, second = next(_request_ids), next(_request_ids)
            self._asked |= {first: key, second: key}
            made.append(wire_protocol.GetStreamSegmentInfo(first, name, token))
            made.append(wire_protocol.GetSegmentAttribute(second, name, wire_protocol.CREATION_TIME, token))
        return made

    def take(self, message: wire_protocol.Message) -> None:
        """Sort one answer; `ProtocolError` if it makes no sense, or answers no request of ours."""
        stream = self._query.stream
        if isinstance(message, wire_protocol.AuthTokenCheckFailed):
            self.tries.refused = message
            return
        key = self._asked.pop(getattr(message, "request_id", -1), None)
        if key is None:
            raise ProtocolError(f"{stream}: a segment store answers what was not asked: {message!r:.120}")
        match message:
            case wire_protocol.StreamSegmentInfo(exists=True):
                _check(Segment(stream, key).name, message)
                self._ends[key] = message
            case wire_protocol.SegmentAttribute(_, value):
                self._made[key] = None if value == wire_protocol.NO_ATTRIBUTE else value
            case wire_protocol.StreamSegmentInfo() | wire_protocol.NoSuchSegment():
                self._gone.add(key)
            case wire_protocol.WrongHost():
                pass
            case _:
                kind = type(message).__name__
                raise ProtocolError(f"{stream}: a segment store answers with {kind} when asked for an end")

    def end_try(self, tokens: Tokens) -> Pause:
        """See `Tries.end`."""
        self._asked.clear()
        lacking = f"segments that were not found on any store: {len(self.left)}" if self.left else ""
        return self.tries.end(tokens, self._query.stream, lacking, failed=True)


def _check(name: str, end: wire_protocol.StreamSegmentInfo) -> None:
    if end.segment != name or not 0 <= end.start_offset <= end.write_offset:
        raise ProtocolError(
            f"{name}: a segment store says that {end.segment[:300]} holds [{end.start_offset}, {end.write_offset})"
        )


def find(query: SegmentQuery, tokens: Tokens) -> Rule[Call[Any] | SegmentRequests | Pause, dict[int, SegmentInfo]]:
    """The rule that answers a query."""
    answers = Answers(query)
    while left := answers.left:
        token = yield from token_for(query.stream, tokens)
        stores: dict[Address, list[int]] = {}
        for key in left:
            stores.setdefault((yield segment_calls.store_of(query.stream, key)), []).append(key)
        for address, keys in stores.items():
            with contextlib.suppress(ConnectionLost):
                yield SegmentRequests(address, answers.requests(keys, token), answers.take)
        yield answers.end_try(tokens)
    return answers.found
