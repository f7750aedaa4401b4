"""Reading a few stored bytes as a question: what Pravega writes beside a stream, for rules that need no Arrow."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import NotAuthorized, ProtocolError, SystemUnavailable
from airflow_provider_streams.systems.pravega import wire
from airflow_provider_streams.systems.pravega.names import Segment

if TYPE_CHECKING:
    from airflow_provider_streams.systems.pravega.credentials import Tokens

_HEADER = struct.Struct(">ii")
_TRIES = 4


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
        self._failures = 0
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
            case wire.SegmentRead(data=data) if data:
                self.data += data[: self.left]
            case wire.SegmentRead() | wire.WrongHost():
                self._failures += 1
            case wire.AuthTokenCheckFailed():
                self._refused = message
            case wire.SegmentIsTruncated() | wire.NoSuchSegment():
                raise SystemUnavailable(self._query.segment.name, "it was truncated meanwhile")
            case _:
                raise ProtocolError(f"a segment store answers with {type(message).__name__} when asked for bytes")

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
        if self.left and self._failures >= _TRIES:
            raise SystemUnavailable(self._query.segment.name, "its bytes cannot be read")
        return 0.1 * 2**self._failures if self._failures and self.left else 0.0


def events(data: bytes) -> Iterator[bytes]:
    """The payloads of consecutive events.

    Raises:
        ProtocolError: other bytes.
    """
    at = 0
    while at < len(data):
        if len(data) - at < _HEADER.size:
            raise ProtocolError("an event's header is cut short")
        kind, length = _HEADER.unpack_from(data, at)
        at += _HEADER.size
        if kind or length < 0 or at + length > len(data):
            raise ProtocolError(f"no event starts at byte {at - _HEADER.size}")
        yield data[at : at + length]
        at += length
