"""Event pointers: the form in which the Java client names one stored event."""

from __future__ import annotations

import re
from typing import NamedTuple, Self

from airflow_provider_streams.errors import ProtocolError
from airflow_provider_streams.systems.pravega.compact import Reader, compact_int, compact_long, record, text

_TEXT = re.compile(r"(.+):([0-9]{1,19})-([0-9]{1,10})")
_PREFIX = bytes.fromhex("00000100")


class EventPointer(NamedTuple):
    """Where one event is stored; `length` includes its 8-byte header."""

    segment: str
    """The segment's qualified name."""
    offset: int
    length: int

    def __str__(self) -> str:
        return f"{self.segment}:{self.offset}-{self.length}"

    def to_bytes(self) -> bytes:
        """What `EventPointer.fromBytes` of the Java client takes."""
        content = text(self.segment) + compact_long(self.offset) + compact_int(self.length)
        return record(_PREFIX, content)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The reverse of `to_bytes`.

        Raises:
            ProtocolError: other bytes.
        """
        content = Reader(data).record(_PREFIX)
        return cls(content.text(), content.compact_long(), content.compact_int())

    @classmethod
    def parse(cls, pointer: str) -> Self:
        """From `<segment>:<offset>-<length>`.

        Raises:
            ProtocolError: another text.
        """
        match = _TEXT.fullmatch(pointer)
        if match is None:
            raise ProtocolError(f"{pointer[:300]!r} is not an event pointer")
        return cls(match[1], int(match[2]), int(match[3]))
