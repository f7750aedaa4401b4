"""Reading a few stored bytes as a question: what Pravega writes beside a stream, for rules that need no Arrow."""

from __future__ import annotations

import struct
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import ConnectionLost, NotAuthorized, ProtocolError, SystemUnavailable
from airflow_provider_streams.systems.backoff import Backoff, Pause
from airflow_provider_streams.systems.pravega import calls, wire
from airflow_provider_streams.systems.pravega.calls import Call
from airflow_provider_streams.systems.pravega.names import Segment
from airflow_provider_streams.systems.pravega.talk import Talk, token_for
from airflow_provider_streams.systems.rules import Rule

if TYPE_CHECKING:
    from airflow_provider_streams.systems.pravega.credentials import Tokens

_HEADER = struct.Struct(">ii")
_BACKOFF = Backoff(attempts=4, first_seconds=0.2, chance=0.0)
_SHORTEST = 4096
"""Fewer bytes than this are no answer to go on with, on average."""
_CHUNK = 2 * 1024 * 1024
_LARGEST = 8 * 1024 * 1024
"""Bytes of the largest event that a server takes by the normal path."""


@dataclass(frozen=True, slots=True)
class BytesQuery:
    """Asks for the stored bytes `[start, end)` of a segment, which must have been written."""

    segment: Segment
    start: int
    end: int


class SmallRead:
    """A query's bytes so far, and what to ask for the rest."""

    def __init__(self, query: BytesQuery) -> None:
        self.data = bytearray()
        self._query = query
        self._failures = self._answers = 0
        self._refused: wire.AuthTokenCheckFailed | None = None

    @property
    def left(self) -> int:
        """How many bytes are missing."""
        return self._query.end - self._query.start - len(self.data)

    def request(self, token: str) -> wire.Message:
        """What to send to the segment's store."""
        return wire.ReadSegment(self._query.segment.name, self._query.start + len(self.data), self.left, token, 0)

    def take(self, message: wire.Message) -> None:
        """One answer.

        Raises:
            ProtocolError: it is none.
            SystemUnavailable: the bytes are gone; asking for where the segment starts now helps.
        """
        match message:
            case wire.SegmentRead(segment, offset, data=data) if data:
                self._check(segment, offset)
                self.data += data[: self.left]
            case wire.SegmentRead() | wire.WrongHost():
                self._failures += 1
            case wire.AuthTokenCheckFailed():
                self._refused = message
            case wire.SegmentIsTruncated() | wire.NoSuchSegment():
                raise SystemUnavailable(self._query.segment.name, "it was truncated meanwhile")
            case _:
                raise ProtocolError(f"a segment store answers with {type(message).__name__} when asked for bytes")

    def _check(self, segment: str, offset: int) -> None:
        """Whether an answer is to what was asked; and that this does not go on with a few bytes each for ever."""
        name, at = self._query.segment.name, self._query.start + len(self.data)
        if (segment, offset) != (name, at):
            raise ProtocolError(f"{name}: a segment store answers with offset {offset} when asked for {at}")
        self._answers += 1
        if self._answers > _BACKOFF.attempts + (self._query.end - self._query.start) // _SHORTEST:
            raise ProtocolError(f"{name}: a segment store gives a few bytes at a time, at offset {at}")

    def lost(self) -> None:
        """The connection broke."""
        self._failures += 1

    def pause(self, tokens: Tokens) -> float:
        """Ends a try: how many seconds to wait before the next one.

        Raises:
            NotAuthorized: a fresh token was refused.
            SystemUnavailable: too many tries.
        """
        refused, self._refused = self._refused, None
        if refused is not None:
            tokens.forget(self._query.segment.stream)
            if self._failures and refused.code != wire.TOKEN_EXPIRED:
                raise NotAuthorized("Pravega's segment store", f"read {self._query.segment.stream}")
            self._failures += 1
        if self.left and self._failures >= _BACKOFF.attempts:
            raise SystemUnavailable(self._query.segment.name, "its bytes cannot be read")
        return _BACKOFF.seconds(self._failures - 1) if self._failures and self.left else 0.0


def read_bytes(query: BytesQuery, tokens: Tokens) -> Rule[Call[Any] | Talk | Pause, bytes]:
    """The rule that answers a query."""
    reading, segment = SmallRead(query), query.segment
    while reading.left:
        token = yield from token_for(segment.stream, tokens)
        address = yield calls.store_of(segment.stream, segment.id)
        try:
            yield Talk(address, [reading.request(token)], reading.take)
        except ConnectionLost:
            reading.lost()
        yield Pause(reading.pause(tokens))
    return bytes(reading.data)


def whole_events(where: str, offset: int, data: bytes) -> tuple[list[bytes], int]:
    """The payloads of the whole events at the front of some bytes, and how many bytes they take.

    Args:
        where: the segment, for errors.
        offset: where in it the bytes are stored.
        data: they begin with an event.

    Raises:
        ProtocolError: other bytes, or an event that is too large for what Pravega writes by itself.
    """
    found: list[bytes] = []
    at = 0
    while len(data) - at >= _HEADER.size:
        kind, length = _HEADER.unpack_from(data, at)
        if kind or not 0 <= length <= _LARGEST:
            raise ProtocolError(f"{where}: no event of ours starts at offset {offset + at}")
        stop = at + _HEADER.size + length
        if stop > len(data):
            break
        found.append(data[at + _HEADER.size : stop])
        at = stop
    return found, at


def newest_event(segment: Segment, start: int, end: int) -> Generator[BytesQuery, bytes, bytes | None]:
    """The last event of `[start, end)` of a segment; what lies before it is read, but not kept.

    Raises:
        ProtocolError: the bytes are no events, or do not end with one.
    """
    newest: bytes | None = None
    rest = b""
    while start < end:
        stop = min(start + _CHUNK, end)
        data = rest + (yield BytesQuery(segment, start, stop))
        found, taken = whole_events(segment.name, start - len(rest), data)
        newest, rest, start = (found[-1] if found else newest), data[taken:], stop
    if rest:
        raise ProtocolError(f"{segment.name}: the bytes before offset {end} are no whole event")
    return newest
