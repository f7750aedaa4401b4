"""Numbers read at any byte of a buffer, many places at once."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

PADDING: Final = bytes(512)
"""Follows a buffer, so that a load near its end stays inside."""


class Loads:
    """Views of `data` whose element i starts at byte i: `bytes`, `words` (8, little-endian), `lengths` (4, big-endian).

    Element i of `pairs` is the bytes 2i and 2i + 1. `data` must end with `PADDING`; the views keep it alive.
    """

    def __init__(self, data: bytes | memoryview) -> None:
        self.data = data
        self.bytes: Bytes = np.frombuffer(data, np.uint8)
        self.pairs: npt.NDArray[np.uint16] = np.frombuffer(data, np.uint16, len(data) // 2)
        places = len(data) - 7
        self.words: Words = np.ndarray((places,), "<u8", data, strides=(1,))
        self.lengths: npt.NDArray[np.uint32] = np.ndarray((places,), ">u4", data, strides=(1,))

    def varints(self, at: Ints) -> tuple[Ints, Ints]:
        """Values (64 bits) and widths of the varints at these places; a width above ten bytes means there is none."""
        values, widths = varints(self.words[at])
        wide = np.flatnonzero(widths == TOO_WIDE)
        if len(wide):
            more, wider = varints(self.words[at[wide] + 7])
            values[wide] |= more << 49
            widths[wide] = wider + 7
        return values, widths


def _short_varints() -> Ints:
    low, high = np.arange(1 << 16) & 0xFF, np.arange(1 << 16) >> 8
    values = np.where(low <= _LAST, low, (low & _LAST) | (high << 7))
    values[(low > _LAST) & (high > _LAST)] = 1 << 40
    return values.astype(np.int64)


def low_byte(words: Words) -> Words:
    """The first byte of each word: the tag, if a field starts there."""
    low: Words = words & _BYTE
    return low


def varints(words: Words) -> tuple[Ints, Ints]:
    """Values and widths in bytes of the varints that start each word.

    Only seven bytes (49 bits) count: a longer varint has their value, and the width `TOO_WIDE`.
    """
    stop = ~words & _STOP_BITS
    stop &= ~stop + _1  # the lowest one: the top bit of the byte that ends the varint; 0: none of the seven does
    widths = (np.bitwise_count(stop - _1) + np.uint8(1)) >> np.uint8(3)
    bits = ((stop << _1) - _1) & words & _SEVEN_BITS
    # the groups of 7 bits move together by twos: 7 -> 14 -> 28 -> 56
    bits = (bits & _LOW_7) | ((bits & _HIGH_7) >> _1)
    bits = (bits & _LOW_14) | ((bits & _HIGH_14) >> _2)
    bits = (bits & _LOW_28) | ((bits & _HIGH_28) >> _4)
    return bits.view(np.int64), widths.astype(np.int64)


TOO_WIDE: Final = 8
"""More than the seven bytes that count."""

_BYTE: Final = np.uint64(0xFF)
_1, _2, _4 = np.uint64(1), np.uint64(2), np.uint64(4)
_STOP_BITS: Final = np.uint64(0x00_80_80_80_80_80_80_80)
_SEVEN_BITS: Final = np.uint64(0x00_7F_7F_7F_7F_7F_7F_7F)
_LOW_7, _HIGH_7 = np.uint64(0x007F_007F_007F_007F), np.uint64(0x7F00_7F00_7F00_7F00)
_LOW_14, _HIGH_14 = np.uint64(0x00003FFF_00003FFF), np.uint64(0xFFFF0000_FFFF0000)
_LOW_28, _HIGH_28 = np.uint64(0x0FFFFFFF), np.uint64(0xFFFFFFFF_00000000)
_LAST: Final = 0x7F
"""Of bytes that end a varint."""

SHORT_VARINTS: Final = _short_varints()
"""The varint at the start of any two bytes (little-endian); for a longer one, a number beyond every buffer."""
