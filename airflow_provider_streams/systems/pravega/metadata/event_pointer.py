"""Event pointers: the form in which the Java client names one stored event."""

from __future__ import annotations

from typing import NamedTuple, Self

from airflow_provider_streams.systems.pravega.client.varint import Reader, compact_int, compact_long, record, text

_PREFIX = bytes.fromhex("00000100")


class EventPointer(NamedTuple):
    """Where one event is stored; `length` includes its 8-byte header."""

    segment: str
    """The segment's qualified name."""
    offset: int
    length: int

    def to_bytes(self) -> bytes:
        """What `EventPointer.fromBytes` of the Java client takes."""
        content = text(self.segment) + compact_long(self.offset) + compact_int(self.length)
        return record(_PREFIX, content)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The reverse of `to_bytes`; `ProtocolError` for other bytes."""
        content = Reader(data).record(_PREFIX)
        return cls(content.text(), content.compact_long(), content.compact_int())
