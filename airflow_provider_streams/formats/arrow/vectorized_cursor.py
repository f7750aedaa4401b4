"""Reads many payloads side by side: each is a lane with a cursor, and each step moves all cursors at once."""

from __future__ import annotations

from typing import Final, NamedTuple, Self

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array, Bytes, Flags, Halves, Ints, Words
from airflow_provider_streams.formats.decode_failures import GOOD, Codes, blame

MARGIN: Final = 16
"""Bytes before the data, for loads that end at its first byte."""


class VectorizedCursor:
    """Cursors over one run of bytes.

    A lane that failed is parked: its cursor stands at its end, and its values mean nothing. One step may move a cursor
    over its end; `settle` finds such lanes.
    """

    __slots__ = ("at", "codes", "data", "end", "words")

    def __init__(self, data: Bytes, words: Words, at: Ints, end: Ints, codes: Codes) -> None:
        self.data, self.words, self.at, self.end, self.codes = data, words, at, end, codes

    @classmethod
    def over(cls, payloads: Array, room: int) -> Self:
        """A lane for each binary payload, without nulls. Cursors may run `room` bytes over the last one's end."""
        offsets = arrays.offsets_of(payloads)
        first, last = int(offsets[0]), int(offsets[-1])
        data = np.zeros(MARGIN + last - first + room + MARGIN, np.uint8)
        held = payloads.buffers()[2]
        if held is not None and last > first:
            data[MARGIN : MARGIN + last - first] = arrays.memory(held, np.uint8)[first:last]
        offsets += MARGIN - first
        words: Words = np.ndarray((len(data) - 7,), "<u8", data.data, strides=(1,))
        return cls(data, words, offsets[:-1].copy(), offsets[1:], np.zeros(len(payloads), np.int16))

    def __len__(self) -> int:
        return len(self.at)

    def pick(self, places: Ints) -> VectorizedCursor:
        """Some of the lanes, apart; `put` brings their cursors back."""
        return VectorizedCursor(self.data, self.words, self.at[places], self.end[places], self.codes[places])

    def put(self, places: Ints, lanes: VectorizedCursor) -> None:
        """Continue after the values that picked lanes read."""
        self.at[places] = lanes.at
        self.codes[places] = lanes.codes

    def fail(self, wrong: Flags, code: int) -> None:
        """Park these lanes."""
        blame(self.codes, wrong, code)
        self.at[wrong] = self.end[wrong]

    def settle(self, short: int, trailing: int, *, padded: bool = False) -> None:
        """Check after the last value that each lane stands at its end.

        Args:
            short: the cause of lanes that ran over their end.
            trailing: the cause of lanes with bytes left.
            padded: whether bytes that are left may be NUL.
        """
        left = (self.end - self.at) * (self.codes == GOOD)
        if not left.any():
            return
        blame(self.codes, left < 0, short)
        over = np.flatnonzero(left > 0)
        if padded:
            over = over[[bool(self.data[self.at[lane] : self.end[lane]].any()) for lane in over]]
        self.codes[over] = trailing

    def varint(self, broken: int) -> Ints:
        """The next varint of each lane, as 64 bits. Lanes with a varint of more than ten bytes fail."""
        bits = self._varint_bits(broken)
        return bits.astype(np.int64) if bits.itemsize < _WORD else bits.view(np.int64)

    def zigzag(self, broken: int) -> Ints:
        """The next number of each lane, as Avro and protobuf's `sint` write it."""
        return unzigzag(self._varint_bits(broken))

    def _varint_bits(self, broken: int) -> Words | Halves | Bytes:
        """The next varint of each lane, in as few bytes as hold the longest: narrow numbers take half the time."""
        first = self.data.take(self.at)
        if len(first) and first.max() < _LONGER:
            self.at += 1
            return first
        words = self.words[self.at]
        if short := narrow_varints(words):
            self.at += short.widths
            return short.bits
        values, widths = short_varints(words)
        self.at += widths
        if widths.size and widths.max() == _TOO_WIDE:
            self._wide(np.flatnonzero(widths == _TOO_WIDE), values, broken)
        return values.view(np.uint64)

    def _wide(self, places: Ints, values: Ints, broken: int) -> None:
        """Add the last bits of varints of nine and ten bytes."""
        at = self.at[places]
        ninth, tenth = self.data[at - 1].astype(np.uint64), self.data[at].astype(np.uint64)
        longer = ninth >= _LONGER
        high = ((ninth & _SEVEN) << _56) | np.where(longer, tenth << _63, _0)
        values[places] |= high.view(np.int64)
        self.at[places] = at + longer
        wrong = np.zeros(len(self), np.bool_)
        wrong[places] = longer & (tenth > 1)
        if wrong.any():
            self.fail(wrong, broken)

    def load(self, size: int) -> Words:
        """The next `size` bytes (up to 8) of each lane, little-endian. The word also has the bytes after them."""
        words = self.words[self.at]
        self.at += size
        return words

    def span(self, lengths: Ints, broken: int) -> tuple[Ints, Ints]:
        """Start and end of the next `lengths` bytes of each lane. Lanes with fewer bytes fail."""
        starts = self.at
        stops = starts + lengths
        fine = (lengths.view(np.uint64) <= self.end.view(np.uint64)) & (stops <= self.end)
        self.at = stops
        if not fine.all():
            self.fail(~fine, broken)
            starts = np.where(fine, starts, self.end)
        return starts, self.at.copy()


class ColumnSlots:
    """The places of some lanes' values in a column: `index[lane]` of `count` values. Others are null."""

    __slots__ = ("count", "index", "valid", "whole")

    def __init__(self, count: int, index: Ints, valid: Flags | None, *, whole: bool = False) -> None:
        self.count, self.index, self.valid, self.whole = count, index, valid, whole

    @classmethod
    def all(cls, count: int) -> Self:
        """Every value has its lane, at the same place."""
        return cls(count, np.arange(count), None, whole=True)

    def nulls_but(self, valid: Flags) -> ColumnSlots:
        """The same places of a whole column, with values that are not valid as nulls."""
        return ColumnSlots(self.count, self.index, valid, whole=True)

    def some(self, lanes: Ints) -> ColumnSlots:
        """The places of some of the lanes."""
        index = self.index[lanes]
        valid = np.zeros(self.count, np.bool_)
        valid[index] = True
        return ColumnSlots(self.count, index, valid)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Values of lanes at their places, zero between them."""
        if self.whole:
            return values
        column = np.zeros(self.count, values.dtype)
        column[self.index] = values
        return column

    def numbers(self, kind: pa.DataType, values: np.ndarray) -> Array:
        """The column of these numbers of lanes."""
        return arrays.numbers(kind, self.spread(values), self.valid)

    def spans(self, data: Bytes, starts: Ints, ends: Ints) -> Array:
        """The column of these spans of lanes, as binary."""
        if self.whole:
            return arrays.masked(arrays.spans(data, starts, ends), self.valid)
        at = np.full(self.count, -1, np.int64)
        at[self.index] = np.arange(len(self.index))
        return arrays.spans(data, starts, ends, at)


class NarrowVarints(NamedTuple):
    """Varints of at most four bytes."""

    bits: Halves
    widths: Ints


def narrow_varints(words: Words) -> NarrowVarints | None:
    """The varints at the start of each word; None: one of them has more than four bytes."""
    if not len(words) or not ~words[0] & _STOP_BITS_4:
        return None
    halves: Halves = words.astype(np.uint32)
    stop = ~halves & _STOP_BITS_4
    if not stop.min():
        return None
    stop &= _0_4 - stop  # the lowest: the top bit of the byte that ends the varint
    stop -= _1_4
    widths = ((np.bitwise_count(stop) + np.uint8(1)) >> np.uint8(3)).astype(np.int64)
    bits = stop & halves & _SEVEN_BITS_4
    bits -= (bits & _HIGH_7_4) >> _1_4  # the groups of 7 bits move together by twos: half of a group is its new place
    return NarrowVarints((bits & _LOW_14_4) | ((bits & _HIGH_14_4) >> _2_4), widths)


def short_varints(words: Words) -> tuple[Ints, Ints]:
    """Values and widths of the varints at the start of each word; over eight bytes, 56 bits and `_TOO_WIDE`."""
    stop = ~words & _STOP_BITS
    stop &= _0 - stop  # the lowest: the top bit of the byte that ends the varint; 0: none does
    endless = not stop.all()
    stop -= _1
    widths = ((np.bitwise_count(stop) + np.uint8(1)) >> np.uint8(3)).astype(np.int64)
    if endless:
        widths[stop == _ALL] = _TOO_WIDE
    bits = stop & words & _SEVEN_BITS
    # the groups of 7 bits move together by twos: 7 -> 14 -> 28 -> 56
    bits -= (bits & _HIGH_7) >> _1
    bits = (bits & _LOW_14) | ((bits & _HIGH_14) >> _2)
    bits = (bits & _LOW_28) | ((bits & _HIGH_28) >> _4)
    return bits.view(np.int64), widths


def unzigzag(raw: Words | Halves | Bytes) -> Ints:
    """0, -1, 1, -2, .. of 0, 1, 2, 3, .."""
    one = raw.dtype.type(1)
    signs = raw.dtype.type(0) - (raw & one)
    signs ^= raw >> one
    return signs.view(f"i{raw.itemsize}").astype(np.int64, copy=False)


_WORD: Final = 8
_TOO_WIDE: Final = 9
_LONGER: Final = 0x80
_0, _1, _2, _4 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(4)
_56, _63, _SEVEN = np.uint64(56), np.uint64(63), np.uint64(0x7F)
_STOP_BITS: Final = np.uint64(0x80_80_80_80_80_80_80_80)
_SEVEN_BITS: Final = np.uint64(0x7F_7F_7F_7F_7F_7F_7F_7F)
_ALL: Final = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_HIGH_7: Final = np.uint64(0x7F00_7F00_7F00_7F00)
_LOW_14, _HIGH_14 = np.uint64(0x00003FFF_00003FFF), np.uint64(0x3FFF0000_3FFF0000)
_LOW_28, _HIGH_28 = np.uint64(0x0FFFFFFF), np.uint64(0x0FFFFFFF_00000000)
_0_4, _1_4, _2_4 = np.uint32(0), np.uint32(1), np.uint32(2)
_STOP_BITS_4: Final = np.uint32(0x80_80_80_80)
_SEVEN_BITS_4: Final = np.uint32(0x7F_7F_7F_7F)
_HIGH_7_4: Final = np.uint32(0x7F00_7F00)
_LOW_14_4, _HIGH_14_4 = np.uint32(0x00003FFF), np.uint32(0x3FFF0000)
