"""One message's header read field by field: the plain reading of the format, for what the fast ways leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Final

from airflow_provider_streams.systems.pulsar.protobuf import BYTES, VARINT, Malformed, as_int32, as_int64, tokens

LENGTH: Final = Struct(">I")
"""Of a message's header, before it."""

PROPERTIES, KEY, SIZE, COMPACTED_OUT = 1 << 3 | BYTES, 2 << 3 | BYTES, 3 << 3 | VARINT, 4 << 3 | VARINT
EVENT_TIME, KEY_BASE64, ORDERING_KEY, SEQUENCE_ID = 5 << 3 | VARINT, 6 << 3 | VARINT, 7 << 3 | BYTES, 8 << 3 | VARINT
NULL_VALUE = 9 << 3 | VARINT
"""Tags of SingleMessageMetadata."""
NAME, VALUE = 1 << 3 | BYTES, 2 << 3 | BYTES
"""Tags of KeyValue."""

ABSENT: Final = -1
"""Start of a span that is not there."""

Span = tuple[int, int]
"""A half-open range of the bytes that were read."""


@dataclass(frozen=True, slots=True)
class Header:
    """What one header says."""

    last: Mapping[int, Span]
    """Of each known tag that is there, where its last value begins and ends; of a varint the value itself, and its end.
    """
    properties: Sequence[tuple[Span, Span]]
    """Name and value of each."""

    def number(self, tag: int) -> int:
        """A signed number; 0: it is not there."""
        return as_int64(self.last[tag][0]) if tag in self.last else 0

    def span(self, tag: int) -> Span:
        """Of a text."""
        return self.last.get(tag, (ABSENT, ABSENT))


def find_starts(data: bytes | memoryview, start: int, end: int, count: int) -> list[int]:
    """The starts of the `count` messages of the batch `data[start:end]`.

    Raises:
        Malformed: a message reaches beyond the end, its header cannot be parsed, or the count is another.
    """
    starts, at = [], start
    for _ in range(count):
        starts.append(at)
        header = at + LENGTH.size
        if header > end:
            raise Malformed(f"it ends before its {count} messages")
        body = header + LENGTH.unpack_from(data, at)[0]
        if body > end:
            raise Malformed("the header of a message reaches beyond it")
        at = body + payload_size(data, header, body)
        if at > end:
            raise Malformed("a message reaches beyond it")
    if at != end:
        raise Malformed(f"it holds {end - at} bytes more than its {count} messages")
    return starts


def payload_size(data: bytes | memoryview, at: int, end: int) -> int:
    """How many bytes the header `data[at:end]` says that its message's value has.

    Raises:
        Malformed: it is no header, or does not say it.
    """
    size = ABSENT
    for tag, value, _ in tokens(data, at, end):
        if tag == SIZE:
            size = as_int32(value)
    if size < 0:
        raise Malformed("a message states no payload size")
    return size


def read_header(data: bytes | memoryview, at: int, end: int, *, most_properties: int) -> Header:
    """The SingleMessageMetadata `data[at:end]`; of too many properties, one more than `most_properties`; 0: of none.

    Raises:
        Malformed: it is none.
    """
    last: dict[int, Span] = {}
    properties: list[tuple[Span, Span]] = []
    for tag, value, stop in tokens(data, at, end):
        if tag in _KNOWN:
            last[tag] = (value, stop)
        elif tag == PROPERTIES and len(properties) <= most_properties > 0:
            properties.append(_property(data, value, stop))
    return Header(last, properties)


def _property(data: bytes | memoryview, at: int, end: int) -> tuple[Span, Span]:
    """Name and value of a KeyValue; what is missing is empty."""
    name = value = (at, at)
    for tag, start, stop in tokens(data, at, end):
        if tag == NAME:
            name = (start, stop)
        elif tag == VALUE:
            value = (start, stop)
    return name, value


_KNOWN: Final = frozenset(
    {KEY, SIZE, COMPACTED_OUT, EVENT_TIME, KEY_BASE64, ORDERING_KEY, SEQUENCE_ID, NULL_VALUE},
)
