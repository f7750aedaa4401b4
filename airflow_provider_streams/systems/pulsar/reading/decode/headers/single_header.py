"""Reads one message's header field by field, where the fast ways cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Final

from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.systems.pulsar.client.protobuf import BYTES, VARINT, Malformed, as_int32, as_int64, tokens

LENGTH: Final = Struct(">I")
"""The length of a message's header, before it."""


class Tag:
    """Tags of SingleMessageMetadata; `NAME` and `VALUE` are those of a property."""

    PROPERTIES, KEY, SIZE, COMPACTED_OUT = 1 << 3 | BYTES, 2 << 3 | BYTES, 3 << 3 | VARINT, 4 << 3 | VARINT
    EVENT_TIME, KEY_BASE64, ORDERING_KEY = 5 << 3 | VARINT, 6 << 3 | VARINT, 7 << 3 | BYTES
    SEQUENCE_ID, NULL_VALUE = 8 << 3 | VARINT, 9 << 3 | VARINT
    NAME, VALUE = 1 << 3 | BYTES, 2 << 3 | BYTES


ABSENT: Final = -1
"""The start of a missing span."""

Span = tuple[int, int]
"""A half-open range of the bytes that were read."""


@dataclass(frozen=True, slots=True)
class Header:
    """The content of one header."""

    last: Mapping[int, Span]
    """Where the last value of each known tag begins and ends; for a varint, the value itself and its end."""
    properties: Sequence[tuple[Span, Span]]
    """The name and value of each property."""

    def number(self, tag: int) -> int:
        """A signed number; 0: it is missing."""
        return as_int64(self.last[tag][0]) if tag in self.last else 0

    def span(self, tag: int) -> Span:
        """The span of a text."""
        return self.last.get(tag, (ABSENT, ABSENT))


def find_starts(data: bytes | memoryview, start: int, end: int, count: int) -> list[int]:
    """The starts of the `count` messages of the batch `data[start:end]`.

    Raises:
        Malformed: a message ends after the batch, a header cannot be parsed, or the count differs.
    """
    starts, at = [], start
    for _ in range(count):
        starts.append(at)
        header = at + LENGTH.size
        if header > end:
            raise Malformed(f"it ends before its {counted(count, 'message')}")
        body = header + LENGTH.unpack_from(data, at)[0]
        if body > end:
            raise Malformed("the header of a message reaches beyond it")
        at = body + payload_size(data, header, body)
        if at > end:
            raise Malformed("a message reaches beyond it")
    if at != end:
        raise Malformed(f"it holds {counted(end - at, 'byte')} more than its {counted(count, 'message')}")
    return starts


def payload_size(data: bytes | memoryview, at: int, end: int) -> int:
    """The size of a message's value, by its header `data[at:end]`; raises `Malformed` if that does not say it."""
    size = ABSENT
    for tag, value, _ in tokens(data, at, end):
        if tag == Tag.SIZE:
            size = as_int32(value)
    if size < 0:
        raise Malformed("a message states no payload size")
    return size


def read_header(data: bytes | memoryview, at: int, end: int, *, most_properties: int) -> Header:
    """The SingleMessageMetadata `data[at:end]`, with at most `most_properties` + 1 properties (0: none of them).

    Raises:
        Malformed: it is not a SingleMessageMetadata.
    """
    last: dict[int, Span] = {}
    properties: list[tuple[Span, Span]] = []
    for tag, value, stop in tokens(data, at, end):
        if tag in _KNOWN:
            last[tag] = (value, stop)
        elif tag == Tag.PROPERTIES and len(properties) <= most_properties > 0:
            properties.append(_property(data, value, stop))
    return Header(last, properties)


def _property(data: bytes | memoryview, at: int, end: int) -> tuple[Span, Span]:
    """Name and value of a KeyValue; a missing one is empty."""
    name = value = (at, at)
    for tag, start, stop in tokens(data, at, end):
        if tag == Tag.NAME:
            name = (start, stop)
        elif tag == Tag.VALUE:
            value = (start, stop)
    return name, value


_KNOWN: Final = frozenset(
    {
        Tag.KEY,
        Tag.SIZE,
        Tag.COMPACTED_OUT,
        Tag.EVENT_TIME,
        Tag.KEY_BASE64,
        Tag.ORDERING_KEY,
        Tag.SEQUENCE_ID,
        Tag.NULL_VALUE,
    },
)
