"""Arrow arrays made of buffers: `pa.array` would import pandas at its first call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Array: TypeAlias = "pa.Array[Any]"
Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Halves = npt.NDArray[np.uint32]
Flags = npt.NDArray[np.bool_]


def buffer(values: npt.NDArray[Any]) -> pa.Buffer:
    """The memory of a contiguous array, not copied."""
    return pa.py_buffer(values)  # type: ignore[arg-type,unused-ignore]  # stubs that know numpy's arrays as no buffers


def memory(held: pa.Buffer | None, kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """The numbers in a buffer, not copied; None has none."""
    return np.zeros(0, kind) if held is None else np.frombuffer(held, kind)  # type: ignore[call-overload]


def bitmap(valid: Flags | None) -> pa.Buffer | None:
    """Arrow's validity bits; None: all are valid."""
    if valid is None or valid.all():
        return None
    return buffer(np.packbits(valid, bitorder="little"))


def numbers(kind: pa.DataType, values: npt.NDArray[Any], valid: Flags | None = None) -> Array:
    """An array of fixed-width values. `values` must have the width of `kind`, and is not copied."""
    return pa.Array.from_buffers(kind, len(values), [bitmap(valid), buffer(np.ascontiguousarray(values))])


def time_numbers(kind: pa.DataType, counts: Ints, valid: Flags | None = None) -> Array:
    """An array of dates, times of day or moments, of 32 or 64 bits."""
    return numbers(kind, counts.astype(f"i{kind.bit_width // 8}", copy=False), valid)


def masked(values: Array, valid: Flags | None) -> Array:
    """Binary values without nulls and offset, of which those that are not valid become null."""
    if valid is None:
        return values
    return pa.Array.from_buffers(values.type, len(values), [bitmap(valid), *values.buffers()[1:]])


def booleans(values: Flags, valid: Flags | None = None) -> Array:
    """An array of true and false."""
    return pa.Array.from_buffers(
        pa.bool_(), len(values), [bitmap(valid), buffer(np.packbits(values, bitorder="little"))]
    )


def structs(kind: pa.StructType, fields: Sequence[Array], count: int, valid: Flags | None = None) -> Array:
    """Structs of these fields, each of `count` values."""
    return pa.Array.from_buffers(kind, count, [bitmap(valid)], children=list(fields))


def lists(kind: pa.DataType, counts: Ints, items: Array, valid: Flags | None = None) -> Array:
    """Lists, or maps of structs: each row has the next `counts[row]` items."""
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return pa.Array.from_buffers(kind, len(counts), [bitmap(valid), buffer(offsets)], children=[items])


def spans(data: Bytes, starts: Ints, ends: Ints, places: Ints | None = None) -> Array:
    """The bytes `data[start:end]` of each span, as binary; with `places`, of the span at each place (-1: null).

    Spans must ascend. The spans and the gaps between them are, without a copy, one binary array of twice the length;
    taking every second element copies just the spans, in native code.
    """
    count = len(starts)
    offsets = np.zeros(max(2 * count, 2), np.int32)
    offsets[0 : 2 * count : 2] = starts
    offsets[1 : 2 * count : 2] = ends
    both = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, buffer(offsets), buffer(data)])
    if places is None:
        return both.take(numbers(pa.int32(), np.arange(0, 2 * count, 2, dtype=np.int32)))
    wanted = np.maximum(places, 0) * 2
    return both.take(numbers(pa.int64(), wanted, places >= 0))


def span_ends(values: Array) -> tuple[Bytes, Ints, Ints]:
    """The memory of a binary array, not copied, and the start and end of each value in it."""
    if not len(values):
        return np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64)
    offsets = offsets_of(values)
    return memory(values.buffers()[2], np.uint8), offsets[:-1], offsets[1:]


def held_bytes(values: Array) -> bytes:
    """The bytes of a binary array from its first value to its last, including bytes between them."""
    data, starts, ends = span_ends(values)
    return data[starts[0] : ends[-1]].tobytes() if len(starts) else b""


def listed(values: Sequence[bytes | None]) -> Array:
    """A binary array of Python's values."""
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum([len(value or b"") for value in values], out=offsets[1:])
    valid = np.array([value is not None for value in values], np.bool_)
    data = b"".join(value or b"" for value in values)
    return pa.Array.from_buffers(pa.binary(), len(values), [bitmap(valid), buffer(offsets), pa.py_buffer(data)])


def python_bytes(values: Array) -> list[bytes]:
    """The values of a binary array without nulls, as Python has them."""
    found: list[bytes] = values.to_pylist()  # type: ignore[assignment]
    return found


def as_text(values: Array) -> Array:
    """A binary array as strings, without a look at each value if all bytes are ASCII.

    Raises:
        pa.ArrowInvalid: a value is not UTF-8.
    """
    data, starts, ends = span_ends(values)
    if len(starts) and ends[-1] > starts[0] and data[starts[0] : ends[-1]].max() > _LAST_ASCII:
        return values.cast(pa.string())
    return pa.Array.from_buffers(pa.string(), len(values), values.buffers(), offset=values.offset)


def not_utf8(values: Array) -> Flags:
    """Which values of a binary array are not UTF-8; nulls are. Surrogates and overlong forms are not, as in Java."""
    try:
        as_text(values)
    except pa.ArrowInvalid:
        return np.array([value is not None and not _is_utf8(value) for value in values.to_pylist()], np.bool_)
    return np.zeros(len(values), np.bool_)


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def texts(values: Sequence[str]) -> Array:
    """A string array of Python's values."""
    found: Array = listed([value.encode() for value in values]).cast(pa.string())
    return found


def nulls(kind: pa.DataType, count: int) -> Array:
    """`count` nulls."""
    absent: Array = pa.nulls(count, kind)  # type: ignore[call-overload]  # overloaded for each kind apart
    return absent


def spread(values: Array, places: Ints, count: int) -> Array:
    """The values at their places among `count`, null elsewhere."""
    where = np.zeros(count, np.int64)
    where[places] = np.arange(len(places))
    valid = np.zeros(count, np.bool_)
    valid[places] = True
    return values.take(numbers(pa.int64(), where, valid))


def valid_flags(array: Array) -> Flags:
    """Which values are not null."""
    if not array.null_count:
        return np.ones(len(array), np.bool_)
    bits = np.unpackbits(memory(array.buffers()[0], np.uint8), count=array.offset + len(array), bitorder="little")
    return bits[array.offset :].view(np.bool_)


def number_values(array: Array) -> npt.NDArray[Any]:
    """The numbers of an array of integers, floats or times, not copied. Numbers of nulls mean nothing."""
    width = array.type.bit_width
    kind = f"{'f' if pa.types.is_floating(array.type) else 'i'}{width // 8}"
    held = array.buffers()[1]
    if held is None:
        return np.zeros(len(array), kind)
    return memory(held, kind)[array.offset : array.offset + len(array)]


def offsets_of(array: Array) -> Ints:
    """Where each list or map starts in its items, and where the last one ends."""
    held = array.buffers()[1]
    if held is None:
        return np.zeros(len(array) + 1, np.int64)
    found: Ints = memory(held, np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    return found


def at_rows(values: Array, rows: Ints) -> Array:
    """The values of some rows, in ascending order."""
    if len(rows) == len(values):
        return values
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return values.slice(int(rows[0]), len(rows))
    return values.take(numbers(pa.int64(), rows))


def lists_like(values: Array, kind: pa.DataType, items: Array) -> Array:
    """The same lists or maps, of other items."""
    buffers = values.buffers()[:2]
    return pa.Array.from_buffers(kind, len(values), buffers, offset=values.offset, children=[items])


def structs_like(values: Array, kind: pa.DataType, fields: Sequence[Array]) -> Array:
    """Structs of other fields, null where `values` are."""
    mask = values.is_null() if values.null_count else None
    made: Array = pa.StructArray.from_arrays(list(fields), fields=list(cast("pa.StructType", kind)), mask=mask)
    return made


_LAST_ASCII: Final = 127
