"""The protobuf wire format, as far as Pulsar's metadata uses it: varints and length-delimited fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

VARINT, BYTES = 0, 2
_LAST = 0x7F
"""The greatest byte that ends a varint."""
_FIXED_LENGTH = {1: 8, 5: 4}
_LONGEST_SHIFT = 63
_UINT64 = (1 << 64) - 1

Convert = Callable[[int | bytes], object]
Table = Mapping[int, tuple[str, Convert]]
"""Field number to the name and the converter of its value."""

LATEST_MS: Final = (1 << 63) // 1000 - 1
"""The last millisecond that a timestamp column, which counts microseconds, can hold."""


class Malformed(ValueError):
    """Bytes that are not what their place promises; callers add where they stand."""


def collect(data: bytes, at: int, end: int, table: Table) -> dict[str, Any]:
    """The fields of the message `data[at:end]` that `table` knows, by name.

    The last one of a name wins, but a converter that returns a tuple is for a repeated field: its tuples are joined.

    Raises:
        Malformed: it is no protobuf message, or a field has the wrong type.
    """
    values: dict[str, Any] = {}
    for number, value in fields(data, at, end):
        if number in table:
            name, convert = table[number]
            converted = convert(value)
            if isinstance(converted, tuple) and name in values:
                converted = values[name] + converted
            values[name] = converted
    return values


def fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int | bytes]]:
    """Field number and value (int of a varint, bytes of a length-delimited one) of `data[at:end]`, in order.

    Fixed-width fields are skipped: Pulsar's metadata has none. Numbers are unsigned, below 2**64.

    Raises:
        Malformed: at the first field that is none, or does not end at `end`.
    """
    try:
        while at < end:
            tag = data[at]
            at += 1
            if tag > _LAST:
                tag, at = read_varint(data, at - 1)
            wire = tag & 7
            if wire in _FIXED_LENGTH:
                at += _FIXED_LENGTH[wire]
                continue
            number = data[at]
            at += 1
            if number > _LAST:
                number, at = read_varint(data, at - 1)
            if wire == BYTES:
                at += number
            if at > end or tag <= 7 or wire not in (VARINT, BYTES):  # noqa: PLR2004 - field 0 does not exist
                raise Malformed(f"no field can start or end at byte {at}")
            yield tag >> 3, number if wire == VARINT else data[at - number : at]
    except IndexError:
        raise Malformed("the data end inside a field") from None
    if at != end:
        raise Malformed(f"a field reaches beyond byte {end}")


def read_varint(data: bytes, at: int) -> tuple[int, int]:
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


def as_bytes(value: int | bytes) -> bytes:
    """Bytes, or text as raw UTF-8."""
    if isinstance(value, int):
        raise Malformed("a number stands where bytes belong")
    return value


def as_uint(value: int | bytes) -> int:
    """An unsigned number."""
    if not isinstance(value, int):
        raise Malformed("bytes stand where a number belongs")
    return value


def as_int64(value: int | bytes) -> int:
    """A signed number."""
    number = as_uint(value)
    return number - (1 << 64) if number >> 63 else number


def as_flag(value: int | bytes) -> bool:
    """A bool."""
    return as_uint(value) != 0


def as_time(value: int | bytes) -> int | None:
    """Milliseconds since 1970; None for 0, which Pulsar's clients send for an unset time, and beyond `LATEST_MS`."""
    millis = as_uint(value)
    return millis if 0 < millis <= LATEST_MS else None


def as_certain_time(value: int | bytes) -> int:
    """Milliseconds since 1970 that a timestamp can hold."""
    millis = as_uint(value)
    if millis > LATEST_MS:
        raise Malformed(f"{millis} ms is beyond every calendar")
    return millis


def as_presence(value: int | bytes) -> bool:
    """True: only that the field is there matters."""
    as_bytes(value)
    return True


def as_pairs(value: int | bytes) -> tuple[tuple[bytes, bytes], ...]:
    """One KeyValue of a repeated field."""
    data = as_bytes(value)
    pair = collect(data, 0, len(data), _KEY_VALUE)
    return ((pair.get("key", b""), pair.get("value", b"")),)


def as_uints(value: int | bytes) -> tuple[int, ...]:
    """One number of a repeated field, or several of a packed one."""
    if isinstance(value, int):
        return (value,)
    found, at = [], 0
    try:
        while at < len(value):
            number, at = read_varint(value, at)
            found.append(number)
    except IndexError:
        raise Malformed("a packed list ends inside a number") from None
    return tuple(found)


_KEY_VALUE: Table = {1: ("key", as_bytes), 2: ("value", as_bytes)}
