"""Columns of base64 texts, decoded at once: each text is whole groups of four letters, so all of them together are."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array, Bytes, Flags, Ints
from airflow_provider_streams.formats.arrow.decimals import decimals, halves, over_precision, too_long
from airflow_provider_streams.formats.arrow.vectorized_cursor import MARGIN, VectorizedCursor


class ByteSpans(NamedTuple):
    """The bytes of each row, in one memory with `MARGIN` bytes before and after them."""

    data: Bytes
    starts: Ints
    ends: Ints
    valid: Flags
    wrong: Flags
    """Rows that are not base64, which have no bytes."""


def decoded(texts: Array) -> ByteSpans:
    """The bytes of base64 texts, with padding; of binary values, these themselves."""
    valid = arrays.valid_flags(texts)
    memory, starts, ends = arrays.span_ends(texts)
    lengths = np.where(valid, ends - starts, 0)
    if pa.types.is_binary(texts.type):
        return _placed(memory, starts, lengths, valid)
    wrong = lengths % _GROUP != 0
    taken = np.where(wrong, 0, lengths)
    # the texts that are whole groups, one after the other
    letters = _gathered(memory, starts, taken)
    stops = np.cumsum(taken)
    values = _VALUES[letters]
    pads = letters == _PAD
    last, before = np.zeros(len(taken), np.bool_), np.zeros(len(taken), np.bool_)
    there = taken > 0
    last[there], before[there] = pads[stops[there] - 1], pads[stops[there] - 2]
    padding = last.astype(np.int64) + (last & before)
    odd = values == _ODD
    odd[stops[there & last] - 1] = False
    odd[stops[there & last & before] - 2] = False
    wrong |= _rows_with(odd, stops)
    groups = np.where(values == _ODD, 0, values).reshape(-1, _GROUP).astype(np.uint32)
    words = groups[:, 0] << 18 | groups[:, 1] << 12 | groups[:, 2] << 6 | groups[:, 3]
    data = np.zeros(2 * MARGIN + 3 * len(groups), np.uint8)
    body = data[MARGIN : MARGIN + 3 * len(groups)].reshape(-1, 3)
    for place, shift in enumerate((16, 8, 0)):
        body[:, place] = words >> shift & 0xFF
    first = MARGIN + (stops - taken) // _GROUP * 3
    size = np.where(wrong, 0, taken // _GROUP * 3 - padding)
    return ByteSpans(data, first, first + size, valid, wrong & valid)


def as_binary(spans: ByteSpans) -> Array:
    """The column of the bytes. Rows that are wrong are null."""
    good = spans.valid & ~spans.wrong
    if not len(good):
        return arrays.nulls(pa.binary(), 0)
    places = np.where(good, np.arange(len(good)), -1)
    return arrays.spans(spans.data, spans.starts, spans.ends, places)


def as_decimals(spans: ByteSpans, precision: int, scale: int) -> tuple[Array, Flags]:
    """The column of big-endian unscaled numbers, and which rows are none, or have more digits."""
    words = np.ndarray((len(spans.data) - 7,), "<u8", spans.data.data, strides=(1,))
    lanes = VectorizedCursor(spans.data, words, spans.starts, spans.ends, np.zeros(len(spans.starts), np.int16))
    low, high = halves(lanes, spans.starts, spans.ends)
    wrong = (spans.ends == spans.starts) | too_long(lanes, spans.starts, spans.ends)
    wrong |= over_precision(low, high, precision)
    wrong &= spans.valid
    return decimals(pa.decimal128(precision, scale), low, high, spans.valid & ~wrong), wrong


def _placed(memory: Bytes, starts: Ints, lengths: Ints, valid: Flags) -> ByteSpans:
    data = np.zeros(2 * MARGIN + int(lengths.sum()), np.uint8)
    data[MARGIN : len(data) - MARGIN] = _gathered(memory, starts, lengths)
    ends = MARGIN + np.cumsum(lengths)
    return ByteSpans(data, ends - lengths, ends, valid, np.zeros(len(valid), np.bool_))


def _gathered(memory: Bytes, starts: Ints, lengths: Ints) -> Bytes:
    """The bytes of spans, one after the other."""
    total = int(lengths.sum())
    if not total:
        return np.zeros(0, np.uint8)
    first = int(np.argmax(lengths > 0))
    stops = np.cumsum(lengths)
    shift = np.where(lengths > 0, starts - (stops - lengths), 0)
    if (shift[lengths > 0] == shift[first]).all():
        begin = int(starts[first])
        return memory[begin : begin + total]
    return memory[np.repeat(shift, lengths) + np.arange(total)]


def _rows_with(marks: Flags, stops: Ints) -> Flags:
    """Which rows have a mark among their letters."""
    found = np.zeros(len(stops), np.bool_)
    if marks.any():
        found[np.searchsorted(stops, np.flatnonzero(marks), "right")] = True
    return found


_GROUP: Final = 4
_PAD: Final = ord("=")
_ODD: Final = 255
_VALUES: Final = np.full(256, _ODD, np.uint8)
_VALUES[list(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")] = np.arange(64)
