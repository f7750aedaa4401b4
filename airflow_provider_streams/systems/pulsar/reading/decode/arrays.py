"""Arrow arrays of message fields, without `pa.array`, which imports pandas at its first call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrow.arrays import Array, bitmap, buffer, listed, numbers, spans
from airflow_provider_streams.systems.pulsar.reading.decode.unaligned import Flags, Ints

LONGEST_INLINE: Final = 12
"""A view contains values of up to so many bytes."""


def binary(kind: pa.DataType, data: bytes | memoryview, starts: Ints, ends: Ints, valid: Flags | None = None) -> Array:
    """The bytes `data[start:end]` of each row, as `kind` (binary, or string with invalid bytes replaced).

    Spans must ascend; rows that are not `valid` are null (None: all are valid).
    """
    if valid is not None and not valid.any():
        return absent(kind, len(valid))
    places = None
    if valid is not None and not valid.all():
        starts, ends, places = starts[valid], ends[valid], np.where(valid, np.cumsum(valid) - 1, -1)
    taken = spans(np.frombuffer(data, np.uint8), starts, ends, places)
    return taken if kind == pa.binary() else text(taken)


def views(data: bytes | memoryview, starts: Ints, ends: Ints, valid: Flags | None = None) -> Array:
    """The bytes `data[start:end]` of each row as `binary_view` in place, which keeps `data` alive; `valid` as above.

    It copies them if `data` is twice as large, or if some are so short that a view is no shorter.
    """
    sizes = ends - starts if valid is None else np.where(valid, ends - starts, 0)
    total = int(sizes.sum())
    if total * 2 <= len(data) or int(np.min(sizes, where=sizes > 0, initial=LONGEST_INLINE + 1)) <= LONGEST_INLINE:
        return binary(pa.binary(), data, starts, ends, valid).cast(pa.binary_view())
    held = sizes > 0
    kept = starts if held.all() else np.where(held, starts, 0)
    parts = np.zeros((len(sizes), 4), np.int32)  # size, first bytes, number of the buffer, place in it
    parts[:, 0], parts[:, 3] = sizes, kept
    parts[:, 1] = np.ndarray((len(data) - 3,), np.int32, data, strides=(1,))[kept]
    if kept is not starts:
        parts[~held] = 0  # as the format wants empty ones
    return pa.Array.from_buffers(pa.binary_view(), len(parts), [bitmap(valid), buffer(parts), pa.py_buffer(data)])


def text(array: Array) -> Array:
    """A string array of a binary one, with U+FFFD for invalid UTF-8."""
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:
        values = [value if value is None else value.decode(errors="replace").encode() for value in array.to_pylist()]
        return listed(values).cast(pa.string())


def taken(kind: pa.DataType, values: Sequence[bytes | None], places: Ints) -> Array:
    """The value at each of these places."""
    array = listed(values)
    return (array if kind == pa.binary() else text(array)).take(numbers(pa.int64(), places))


def repeated(kind: pa.DataType, value: bytes | None, count: int) -> Array:
    """One value so many times."""
    if value is None or not count:
        return absent(kind, count)
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(len(value))
    array = pa.Array.from_buffers(pa.binary(), count, [None, buffer(offsets), pa.py_buffer(value * count)])
    return array if kind == pa.binary() else text(array)


def maps(counts: Ints, names: Array, values: Array) -> Array:
    """Maps of text to text: each row takes the next `counts[row]` pairs."""
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    entries: Array = pa.MapArray.from_arrays(numbers(pa.int32(), offsets), names, values)  # type: ignore[call-overload]
    return entries


def absent(kind: pa.DataType, count: int) -> Array:
    """`count` nulls."""
    nulls: Array = pa.nulls(count, kind)  # type: ignore[call-overload]  # overloaded for each kind apart
    return nulls
