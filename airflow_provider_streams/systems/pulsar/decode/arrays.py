"""Numbers and spans to Arrow arrays, through buffers only: `pa.array` would import pandas at its first call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airflow_provider_streams.systems.pulsar.decode.columns import TIMESTAMP
from airflow_provider_streams.systems.pulsar.decode.unaligned import Flags, Ints

Array: TypeAlias = "pa.Array[Any]"


def numbers(kind: pa.DataType, values: npt.NDArray[Any], valid: Flags | None = None) -> Array:
    """An array of fixed-width numbers; `values` has the width of `kind` and is not copied."""
    return pa.Array.from_buffers(kind, len(values), [bitmap(valid), buffer(np.ascontiguousarray(values))])


def booleans(values: Flags) -> Array:
    """An array of true and false."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, buffer(np.packbits(values, bitorder="little"))])


def buffer(values: npt.NDArray[Any]) -> pa.Buffer:
    """The memory of a contiguous array, not copied."""
    return pa.py_buffer(values)  # type: ignore[arg-type]  # the stubs know numpy's arrays as no buffers


def bitmap(valid: Flags | None) -> pa.Buffer | None:
    """Arrow's validity bits; None: all are valid."""
    if valid is None or valid.all():
        return None
    return buffer(np.packbits(valid, bitorder="little"))


def binary(kind: pa.DataType, data: bytes | memoryview, starts: Ints, ends: Ints, valid: Flags | None = None) -> Array:
    """The bytes `data[start:end]` of each row, as `kind` (binary, or string, with foreign bytes replaced).

    Spans must ascend; `valid` says which rows have one (None: all), the others are null. The spans and the gaps
    between them are, without a copy, one binary array of twice the length; taking every second element copies just the
    spans, in native code.
    """
    if valid is not None and not valid.any():
        return absent(kind, len(valid))
    if valid is None or valid.all():
        places, valid = np.arange(len(starts), dtype=np.int32), None
    else:
        starts, ends = starts[valid], ends[valid]
        places = np.maximum(np.cumsum(valid, dtype=np.int32) - 1, 0)
    offsets = np.zeros(max(2 * len(starts), 2), np.int32)
    offsets[0 : 2 * len(starts) : 2] = starts
    offsets[1 : 2 * len(starts) : 2] = ends
    both = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, buffer(offsets), pa.py_buffer(data)])
    taken = both.take(numbers(pa.int32(), places * 2, valid))
    return taken if kind == pa.binary() else text(taken)


def text(array: Array) -> Array:
    """A string array of a binary one; what is not UTF-8 becomes U+FFFD."""
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:
        values = [value if value is None else value.decode(errors="replace").encode() for value in array.to_pylist()]
        return listed(values).cast(pa.string())


def listed(values: Sequence[bytes | None]) -> Array:
    """A binary array of a few values."""
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum([len(value or b"") for value in values], out=offsets[1:])
    valid = np.array([value is not None for value in values], np.bool_)
    data = b"".join(value or b"" for value in values)
    return pa.Array.from_buffers(pa.binary(), len(values), [bitmap(valid), buffer(offsets), pa.py_buffer(data)])


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


def times(millis: Ints, valid: Flags | None = None) -> Array:
    """Timestamps of milliseconds since 1970."""
    return numbers(TIMESTAMP, millis * 1000, valid)


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
