"""MessageMetadata, the header of one entry: bytes to a value. Text stays raw UTF-8 bytes, as columns need it.

This parser is written by hand. A producer may pad tags and lengths to ten bytes, and a broker stores them, but
generated code refuses more than five.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from airflow_provider_streams.errors import CorruptFrame
from airflow_provider_streams.systems.pulsar.client.protobuf import (
    BYTES,
    MOST_WIDE,
    VARINT,
    Malformed,
    as_int32,
    as_int64,
    read_varint,
    tokens,
    write_varint,
)
from airflow_provider_streams.systems.pulsar.reading.decode.unaligned import PADDING, Loads


class EntryMetadata(NamedTuple):
    """What one entry says about all its messages; None, empty or 0: not set."""

    publish_ms: int
    """Perhaps negative, or more than a timestamp can hold."""
    producer: bytes = b""
    sequence_id: int | None = None
    num_messages: int | None = None
    """Messages of the batch before any compaction; None: one message that is not a batch."""
    compression: int = 0
    """0 none, 1 LZ4, 2 ZLIB, 3 ZSTD, 4 SNAPPY."""
    uncompressed_size: int = 0
    """Bytes of the payload when decompressed (of all chunks together)."""
    event_ms: int | None = None
    """None also for 0, which clients send when no event time is set; perhaps more than a timestamp can hold."""
    key: bytes | None = None
    key_b64: bool = False
    """The key is base64 text of binary bytes."""
    ordering_key: bytes | None = None
    properties: bytes = b""
    """As in a message of a batch: fields of a SingleMessageMetadata."""
    schema_version: bytes | None = None
    null_value: bool = False
    """The message is a tombstone."""
    marker_type: int | None = None
    """Not None: the broker wrote it for itself, without a message."""
    uuid: bytes | None = None
    """Not None: a chunk of a large message, `chunk_id` of `num_chunks`, `total_size` bytes together."""
    chunk_id: int = 0
    num_chunks: int = 0
    total_size: int = 0
    encrypted: bool = False
    replicated_from: bytes | None = None
    compacted_batch_indexes: array[int] | None = None
    """Not None: compaction kept only these messages of the batch."""


def parse_metadata(view: bytes | bytearray | memoryview) -> EntryMetadata:
    """The known fields of one MessageMetadata. The result keeps no reference to `view`.

    Raises:
        CorruptFrame: the bytes are not a protobuf message, or the publish time is missing.
    """
    data = bytes(view)
    common = _parse_common(data)
    if common is not None:
        return common
    try:
        return _parse(data)
    except Malformed as error:
        raise CorruptFrame(f"its metadata ({len(data)} bytes) cannot be parsed: {error}") from error


def _parse(data: bytes) -> EntryMetadata:
    values: dict[str, Any] = {}
    properties, indexes = bytearray(), bytearray()
    for tag, value, stop in tokens(data, 0, len(data)):
        if tag == _PROPERTIES:
            properties += b"\x0a" + write_varint(stop - value) + data[value:stop]
        elif tag in _INDEXES:
            indexes += write_varint(value) if tag & 7 == VARINT else _packed(data[value:stop])
        elif tag in _FIELDS:
            name, convert = _FIELDS[tag]
            values[name] = convert(data[value:stop] if tag & 7 == BYTES else value)
    if "publish_ms" not in values:
        raise Malformed("it has no publish time")
    return EntryMetadata(**values, properties=bytes(properties), compacted_batch_indexes=_numbers(bytes(indexes)))


def _packed(data: bytes) -> bytes:
    if data and data[-1] > _LAST:
        raise Malformed("a list of numbers ends inside one")
    return data


def _numbers(varints: bytes) -> array[int] | None:
    """The numbers of adjacent varints, 32 bits each; None: there is none."""
    if not varints:
        return None
    ends = np.flatnonzero(np.frombuffer(varints, np.uint8) <= _LAST)
    starts = np.concatenate([[0], ends[:-1] + 1])
    values, widths = Loads(varints + PADDING).varints(starts)
    if (widths > MOST_WIDE).any():
        raise Malformed("a varint is longer than ten bytes")
    return array("i", values.astype(np.int32).tobytes())


def _parse_common(data: bytes) -> EntryMetadata | None:
    """The same, twice as fast, for most entries; None: a field is not among the common ones."""
    found: dict[int, int] = {}
    texts: dict[int, bytes] = {}
    at, end = 0, len(data)
    try:
        while at < end:
            tag, number = data[at], data[at + 1]
            at += 2
            if number > _LAST:
                if tag == _PUBLISH_TIME:
                    number, at = _six_byte_varint(data[at - 1 : at + 5]), at + 5
                else:
                    number, at = read_varint(data, at - 1)
            if tag in _COMMON_NUMBERS and number <= _COMMON_NUMBERS[tag]:
                found[tag] = number
            elif tag in _COMMON_TEXTS:
                texts[tag] = data[at : at + number]
                at += number
            else:
                return None
        if at != end:
            return None
        return EntryMetadata(
            found[_PUBLISH_TIME],
            texts.get(0x0A, b""),
            found.get(0x10),
            found.get(0x58),
            found.get(0x40, 0),
            found.get(0x48, 0),
            found.get(0x60) or None,
            texts.get(0x32),
        )
    except (IndexError, KeyError, Malformed):
        return None


@lru_cache(maxsize=4096)
def _six_byte_varint(data: bytes) -> int:
    """A time from 2004 to 2109 has six bytes, and many entries share a millisecond."""
    number, end = read_varint(data, 0)
    if end != len(data):
        raise Malformed("a time of another width")
    return number


_LAST: Final = 0x7F
_PUBLISH_TIME: Final = 0x18
_PROPERTIES: Final = 0x22
_INDEXES: Final = (31 << 3 | VARINT, 31 << 3 | BYTES)
_INT31, _INT63 = (1 << 31) - 1, (1 << 63) - 1
_COMMON_NUMBERS: Final = {
    0x10: _INT63,
    _PUBLISH_TIME: _INT63,
    0x40: _INT31,
    0x48: _INT31,
    0x58: _INT31,
    0x60: _INT63,
}
"""Tags, and the greatest value that means the same in every width and sign."""
_COMMON_TEXTS: Final = frozenset({0x0A, 0x32})


_FIELDS: Mapping[int, tuple[str, Callable[[Any], object]]] = {
    1 << 3 | BYTES: ("producer", bytes),
    2 << 3 | VARINT: ("sequence_id", as_int64),
    3 << 3 | VARINT: ("publish_ms", as_int64),
    5 << 3 | BYTES: ("replicated_from", bytes),
    6 << 3 | BYTES: ("key", bytes),
    8 << 3 | VARINT: ("compression", as_int32),
    9 << 3 | VARINT: ("uncompressed_size", lambda number: number & 0xFFFF_FFFF),
    11 << 3 | VARINT: ("num_messages", as_int32),
    12 << 3 | VARINT: ("event_ms", lambda number: as_int64(number) or None),
    13 << 3 | BYTES: ("encrypted", lambda _: True),
    16 << 3 | BYTES: ("schema_version", bytes),
    17 << 3 | VARINT: ("key_b64", bool),
    18 << 3 | BYTES: ("ordering_key", bytes),
    20 << 3 | VARINT: ("marker_type", as_int32),
    25 << 3 | VARINT: ("null_value", bool),
    26 << 3 | BYTES: ("uuid", bytes),
    27 << 3 | VARINT: ("num_chunks", as_int32),
    28 << 3 | VARINT: ("total_size", as_int32),
    29 << 3 | VARINT: ("chunk_id", as_int32),
}
"""The tag of a field; its name, and what makes its value of a varint's number or of a text's bytes."""
