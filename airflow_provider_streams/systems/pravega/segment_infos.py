"""Where segments start and end, as a question: asked of every store that serves some of them, until all have said."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_provider_streams.errors import ConnectionLost, NotAuthorized, ProtocolError, SystemUnavailable
from airflow_provider_streams.systems.backoff import Backoff, Pause
from airflow_provider_streams.systems.pravega import calls, wire
from airflow_provider_streams.systems.pravega.calls import Call
from airflow_provider_streams.systems.pravega.connection import Address
from airflow_provider_streams.systems.pravega.credentials import Tokens
from airflow_provider_streams.systems.pravega.names import Segment
from airflow_provider_streams.systems.pravega.talk import Talk, token_for
from airflow_provider_streams.systems.rules import Rule

_BACKOFF = Backoff(attempts=4, first_seconds=0.2, chance=0.0)


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """Where a segment starts and ends, in bytes; both ends are event boundaries."""

    start_offset: int
    write_offset: int
    is_sealed: bool
    last_modified_ms: int
    created_ms: int | None = None
    """When it was made, milliseconds since 1970; None: its store does not tell."""


@dataclass(frozen=True, slots=True)
class SegmentQuery:
    """Asks for the infos of a stream's segments; those that do not exist are left out of the answer."""

    stream: str
    segment_ids: tuple[int, ...]


_request_ids = itertools.count(1)
"""Never twice in a process: an answer that comes late can belong to no other request."""


class Answers:
    """The answers to a `SegmentQuery` so far, and when to ask again for the rest."""

    def __init__(self, query: SegmentQuery) -> None:
        self.left = query.segment_ids
        self._query = query
        self._asked: dict[int, int] = {}
        """Segments by the ids of the requests about them that have no answer yet."""
        self._ends: dict[int, wire.StreamSegmentInfo] = {}
        self._made: dict[int, int | None] = {}
        self._gone: set[int] = set()
        self._tries = 0
        self._refused: wire.AuthTokenCheckFailed | None = None

    @property
    def found(self) -> dict[int, SegmentInfo]:
        """The infos of those that exist."""
        return {key: _info(end, self._made.get(key)) for key, end in self._ends.items() if key not in self._gone}

    def _is_told(self, key: int) -> bool:
        return key in self._gone or (key in self._ends and key in self._made)

    def requests(self, keys: Sequence[int], token: str) -> list[wire.Message]:
        """What to send to one store: as many answers come."""
        return list(self._requests(keys, token))

    def _requests(self, keys: Sequence[int], token: str) -> Iterator[wire.Message]:
        for key in keys:
            name = Segment(self._query.stream, key).name
            first, second = next(_request_ids), next(_request_ids)
            self._asked |= {first: key, second: key}
            yield wire.GetStreamSegmentInfo(first, name, token)
            yield wire.GetSegmentAttribute(second, name, wire.CREATION_TIME, token)

    def take(self, message: wire.Message) -> None:
        """Sort one answer.

        Raises:
            ProtocolError: it is none, or to nothing that was asked.
        """
        if isinstance(message, wire.AuthTokenCheckFailed):
            self._refused = message
            return
        key = self._asked.pop(getattr(message, "request_id", -1), None)
        if key is None:
            raise ProtocolError(f"{self._query.stream}: a segment store answers what was not asked: {message!r:.120}")
        match message:
            case wire.StreamSegmentInfo(exists=True):
                self._ends[key] = self._checked(key, message)
            case wire.SegmentAttribute(_, value):
                self._made[key] = None if value == wire.NO_ATTRIBUTE else value
            case wire.StreamSegmentInfo() | wire.NoSuchSegment():
                self._gone.add(key)
            case wire.WrongHost():
                pass
            case _:
                raise ProtocolError(
                    f"{self._query.stream}: a segment store answers with {type(message).__name__} when asked for an end"
                )

    def _checked(self, key: int, end: wire.StreamSegmentInfo) -> wire.StreamSegmentInfo:
        name = Segment(self._query.stream, key).name
        if end.segment != name or not 0 <= end.start_offset <= end.write_offset:
            raise ProtocolError(
                f"{name}: a segment store says that {end.segment[:300]} holds [{end.start_offset}, {end.write_offset})"
            )
        return end

    def pause(self, tokens: Tokens) -> float:
        """Ends a try: how many seconds to wait before the next one, if one is needed.

        Raises:
            NotAuthorized: a fresh token was refused.
            SystemUnavailable: too many tries.
        """
        self.left = tuple(key for key in self._query.segment_ids if not self._is_told(key))
        self._asked.clear()
        self._tries += 1
        refused, self._refused = self._refused, None
        if refused is not None:
            tokens.forget(self._query.stream)
            if self._tries > 1 and refused.code != wire.TOKEN_EXPIRED:
                raise NotAuthorized("Pravega's segment store", f"read {self._query.stream}")
        if self.left and self._tries >= _BACKOFF.attempts:
            raise SystemUnavailable(self._query.stream, f"{len(self.left)} segments were not found on any store")
        return _BACKOFF.seconds(self._tries - 1) if self.left and refused is None else 0.0


def _info(end: wire.StreamSegmentInfo, made: int | None) -> SegmentInfo:
    return SegmentInfo(end.start_offset, end.write_offset, end.is_sealed, end.last_modified_ms, made)


def by_store(addresses: Mapping[int, Address]) -> dict[Address, list[int]]:
    """Which segments each store serves."""
    stores: dict[Address, list[int]] = {}
    for key, address in addresses.items():
        stores.setdefault(address, []).append(key)
    return stores


def find(query: SegmentQuery, tokens: Tokens) -> Rule[Call[Any] | Talk | Pause, dict[int, SegmentInfo]]:
    """The rule that answers a query."""
    answers = Answers(query)
    while answers.left:
        token = yield from token_for(query.stream, tokens)
        addresses = {}
        for key in answers.left:
            addresses[key] = yield calls.store_of(query.stream, key)
        for address, keys in by_store(addresses).items():
            with contextlib.suppress(ConnectionLost):
                yield Talk(address, answers.requests(keys, token), answers.take)
        yield Pause(answers.pause(tokens))
    return answers.found
