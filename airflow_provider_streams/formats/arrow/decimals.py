"""Exact numbers of up to 38 digits: big-endian two's complement to Arrow's 16 little-endian bytes."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrow.arrays import Array, Flags, Ints, Words, bitmap, buffer, memory
from airflow_provider_streams.formats.arrow.vectorized_cursor import VectorizedCursor

WIDTH: Final = 16


def halves(lanes: VectorizedCursor, starts: Ints, ends: Ints) -> tuple[Words, Words]:
    """The last 16 bytes of each span as low and high 64 bits. Shorter spans are filled with their sign."""
    lengths = ends - starts
    sign = np.where((lengths > 0) & (lanes.data.take(starts) >= _NEGATIVE), _ONES, _NONE)
    low = _word(lanes, ends, lengths, sign)
    high = _word(lanes, ends - 8, lengths - 8, sign)
    return low, high


def too_long(lanes: VectorizedCursor, starts: Ints, ends: Ints) -> Flags:
    """Which spans hold more than 16 significant bytes: leading bytes that repeat the sign are not."""
    wrong = ends - starts > WIDTH
    for lane in np.flatnonzero(wrong):
        extra = lanes.data[starts[lane] : ends[lane] - WIDTH]
        fill = 0xFF if lanes.data[ends[lane] - WIDTH] >= _NEGATIVE else 0
        wrong[lane] = bool((extra != fill).any())
    return wrong


def over_precision(low: Words, high: Words, precision: int) -> Flags:
    """Which numbers have more digits."""
    limit = 10**precision
    negative = high >= _SIGN
    # the size of a negative number: its bits turned, and one more
    size_low = np.where(negative, ~low + _1, low)
    size_high = np.where(negative, ~high + (size_low == _NONE), high)
    limit_low, limit_high = np.uint64(limit & _MASK), np.uint64(limit >> 64)
    found: Flags = (size_high > limit_high) | ((size_high == limit_high) & (size_low >= limit_low))
    return found


def beyond(values: Array, precision: int) -> Flags:
    """Which values of a column have more digits than its precision. It means nothing for nulls."""
    held = memory(values.buffers()[1], np.uint64).reshape(-1, 2)[values.offset : values.offset + len(values)]
    return over_precision(held[:, 0], held[:, 1], precision)


def decimals(kind: pa.DataType, low: Words, high: Words, valid: Flags | None) -> Array:
    """The column of these numbers."""
    both = np.empty((len(low), 2), np.uint64)
    both[:, 0], both[:, 1] = low, high
    return pa.Array.from_buffers(kind, len(low), [bitmap(valid), buffer(both)])


def _word(lanes: VectorizedCursor, ends: Ints, lengths: Ints, sign: Words) -> Words:
    """The 8 bytes before `ends`, of which only the last `lengths` belong to the number."""
    words: Words = lanes.words[np.maximum(ends - 8, 0)].byteswap()
    kept = np.clip(lengths, 0, 8)
    # a shift by 64 bits is no shift: a number of no byte takes its sign alone
    above: Words = (_ONES << (_8 * np.minimum(kept, 7).astype(np.uint64))) * (kept < _WORD)
    mixed: Words = (words & ~above) | (sign & above)
    found: Words = np.where(kept == 0, sign, mixed)
    return found


_NEGATIVE: Final = 0x80
_WORD: Final = 8
_MASK: Final = (1 << 64) - 1
_NONE, _1, _8 = np.uint64(0), np.uint64(1), np.uint64(8)
_ONES, _SIGN = np.uint64(_MASK), np.uint64(1 << 63)
