"""The protobuf wire format, as far as Pulsar's metadata uses it: varints and length-delimited fields.

As in any decoder, fields have any order, and the last one of a number counts. Unknown fields and groups are skipped,
and varints may be padded to ten bytes. A known number with another wire type is an unknown field.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

VARINT, FIXED64, BYTES, GROUP, END_GROUP, FIXED32 = range(6)
"""Wire types: the lowest three bits of a tag, whose other bits are the field's number."""

MOST_WIDE: Final = 10
"""Bytes of the widest varint."""

_LAST = 0x7F
"""The greatest byte that ends a varint."""
_FIXED = {FIXED64: 8, FIXED32: 4}
_LEAST_TAG, _TAGS_END = 1 << 3, 1 << 32
_DEEPEST_GROUP = 100
_LONGEST_SHIFT = 63
_UINT64 = (1 << 64) - 1


class Malformed(ValueError):
    """Bytes that contradict their place; callers add the place."""


def tokens(data: bytes | memoryview, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Tag, value and end of the fields of `data[at:end]`, in order; the value of a length-delimited field is its start.

    Fixed-width fields and groups are skipped, as Pulsar's metadata has none. Numbers are unsigned, below 2**64.

    Raises:
        Malformed: it is not a protobuf message.
    """
    try:
        while at < end:
            tag = data[at]
            at += 1
            if tag > _LAST:
                tag, at = read_varint(data, at - 1)
            if not _LEAST_TAG <= tag < _TAGS_END:
                raise Malformed("a field has an impossible number")
            wire = tag & 7
            if wire not in (VARINT, BYTES):
                at = _skip(data, at, end, tag)
                continue
            value = data[at]
            at += 1
            if value > _LAST:
                value, at = read_varint(data, at - 1)
            if wire == BYTES:
                at, value = at + value, at
            if at > end:
                break
            yield tag, value, at
    except IndexError:
        raise Malformed("the data end inside a field") from None
    if at != end:
        raise Malformed("a field reaches beyond its message")


def _skip(data: bytes | memoryview, at: int, end: int, tag: int) -> int:
    """The place after a fixed-width field or a group whose tag was read."""
    wire = tag & 7
    if wire in _FIXED:
        return at + _FIXED[wire]
    if wire != GROUP:
        raise Malformed(f"a field has the wire type {wire}")
    return _skip_group(data, at, end, tag >> 3)


def _skip_group(data: bytes | memoryview, at: int, end: int, number: int) -> int:
    within = [number]
    while within:
        if at >= end:
            raise Malformed("a group does not end")
        tag, at = read_varint(data, at)
        wire = tag & 7
        if not _LEAST_TAG <= tag < _TAGS_END or (wire == END_GROUP and within.pop() != tag >> 3):
            raise Malformed("a field has an impossible number")
        if wire == GROUP:
            within.append(tag >> 3)
            if len(within) > _DEEPEST_GROUP:
                raise Malformed("groups are nested too deeply")
        elif wire in _FIXED:
            at += _FIXED[wire]
        elif wire != END_GROUP:
            value, at = read_varint(data, at)
            at += value if wire == BYTES else 0
            if wire not in (VARINT, BYTES):
                raise Malformed(f"a field has the wire type {wire}")
    return at


def read_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """The unsigned varint at `at` (its low 64 bits), and the place after it.

    Raises:
        Malformed: it is longer than ten bytes.
        IndexError: the data end inside it.
    """
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte <= _LAST:
            return number & _UINT64, at
        if shift == _LONGEST_SHIFT:
            raise Malformed("a varint is longer than ten bytes")
        shift += 7


def write_varint(number: int) -> bytes:
    """The varint of an integer; a negative one as 64-bit two's complement, ten bytes long."""
    number &= _UINT64
    out = bytearray()
    while number > _LAST:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def as_int32(number: int) -> int:
    """A signed number of 32 bits; decoders take the lowest bits of a longer varint."""
    return (number & 0xFFFF_FFFF ^ 0x8000_0000) - 0x8000_0000


def as_int64(number: int) -> int:
    """A signed number; Pulsar's Java client also shows unsigned numbers so."""
    return number - (1 << 64) if number >> 63 else number
