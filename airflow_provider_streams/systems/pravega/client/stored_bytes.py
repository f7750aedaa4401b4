"""Reading a few stored bytes as a question: what Pravega writes next to a stream, for rules without Arrow."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from airflow_provider_streams.errors import ConnectionLost, ProtocolError, SystemUnavailable
from airflow_provider_streams.systems.connection.backoff import Pause
from airflow_provider_streams.systems.io_free_rules import Rule
from airflow_provider_streams.systems.pravega.client import wire_protocol
from airflow_provider_streams.systems.pravega.client.controller import segment_calls
from airflow_provider_streams.systems.pravega.client.controller.call import Call
from airflow_provider_streams.systems.pravega.client.credentials import Tokens
from airflow_provider_streams.systems.pravega.client.segment_requests import (
    ATTEMPTS,
    SegmentRequests,
    Tries,
    token_for,
)
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment

_HEADER = struct.Struct(">ii")
_SHORTEST = 4096
"""Answers must have more bytes than this on average."""
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
        self.tries = Tries(query.segment.stream)
        self._query = query
        self._answers = 0
        """Answers that gave bytes."""

    @property
    def left(self) -> int:
        """How many bytes are missing."""
        return self._query.end - self._query.start - len(self.data)

    def request(self, token: str) -> wire_protocol.Message:
        """What to send to the segment's store."""
        return wire_protocol.ReadSegment(
            self._query.segment.name, self._query.start + len(self.data), self.left, token, 0
        )

    def take(self, message: wire_protocol.Message) -> None:
        """One answer.

        Raises:
            ProtocolError: it makes no sense.
            SystemUnavailable: the bytes are gone; the caller may ask again where the segment starts.
        """
        match message:
            case wire_protocol.SegmentRead(segment, offset, data=data) if data:
                self._check(segment, offset)
                self.data += data[: self.left]
            case wire_protocol.SegmentRead() | wire_protocol.WrongHost():
                pass
            case wire_protocol.AuthTokenCheckFailed():
                self.tries.refused = message
            case wire_protocol.SegmentIsTruncated() | wire_protocol.NoSuchSegment():
                raise SystemUnavailable(self._query.segment.name, "it was truncated meanwhile")
            case _:
                raise ProtocolError(f"a segment store answers with {type(message).__name__} when asked for bytes")

    def _check(self, segment: str, offset: int) -> None:
        """Refuse an answer to another request, and too many answers of a few bytes."""
        name, at = self._query.segment.name, self._query.start + len(self.data)
        if (segment, offset) != (name, at):
            raise ProtocolError(f"{name}: a segment store answers with offset {offset} when asked for {at}")
        self._answers += 1
        if self._answers > ATTEMPTS + (self._query.end - self._query.start) // _SHORTEST:
            raise ProtocolError(f"{name}: a segment store gives a few bytes at a time, at offset {at}")


def read_bytes(query: BytesQuery, tokens: Tokens) -> Rule[Call[Any] | SegmentRequests | Pause, bytes]:
    """The rule that answers a query."""
    reading, segment = SmallRead(query), query.segment
    while left := reading.left:
        token = yield from token_for(segment.stream, tokens)
        address = yield segment_calls.store_of(segment.stream, segment.id)
        with contextlib.suppress(ConnectionLost):
            yield SegmentRequests(address, [reading.request(token)], reading.take)
        lacking = "its bytes cannot be read" if reading.left else ""
        yield reading.tries.end(tokens, segment.name, lacking, failed=reading.left == left)
    return bytes(reading.data)


def whole_events(where: str, offset: int, data: bytes) -> tuple[list[bytes], int]:
    """The payloads of the whole events at the front of some bytes, and how many bytes they take.

    The bytes begin with an event; `where` and `offset` are their place, for errors.

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
    """The last event of `[start, end)` of a segment; the ones before it are read, but not kept.

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
