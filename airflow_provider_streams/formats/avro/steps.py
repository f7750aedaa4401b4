"""Readers of values of one schema, for all lanes at once: what holds no other value.

Strict where Avro libraries are loose, since no encoder writes it otherwise: a boolean is the byte 0 or 1, an int has 32
bits, a varint at most ten bytes, text is UTF-8, an index names a symbol or branch, a decimal has its digits.
"""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrays import Array, Bytes, Ints, booleans, nulls, texts
from airflow_provider_streams.formats.decimals import decimals, halves, over_precision, too_long
from airflow_provider_streams.formats.lanes import Lanes, Places
from airflow_provider_streams.formats.text import as_text, not_utf8
from airflow_provider_streams.formats.times import Scale

VARINT_ROOM: Final = 10


class Step(Protocol):
    """Reads the next value of each lane."""

    @property
    def kind(self) -> pa.DataType:
        """Of the column it gives."""

    @property
    def room(self) -> int:
        """Bytes that a cursor may come to stand behind its lane's end."""

    @property
    def least(self) -> int:
        """Bytes of the shortest value."""

    @property
    def takes_zero(self) -> bool:
        """Whether a byte of zero is a value."""

    def read(self, lanes: Lanes, places: Places) -> Array:
        """The column, and the cursors behind the values; lanes without such a value fail."""


class Nulls:
    """Values of no bytes."""

    kind = pa.string()
    room = 0
    least = 0
    takes_zero = False

    def read(self, lanes: Lanes, places: Places) -> Array:  # noqa: ARG002  # it reads no byte
        """Nulls."""
        return nulls(self.kind, places.count)


class Booleans:
    """One byte, 0 or 1."""

    kind = pa.bool_()
    room = 1
    least = 1
    takes_zero = True

    def __init__(self, wrong: int) -> None:
        self._wrong = wrong

    def read(self, lanes: Lanes, places: Places) -> Array:
        """True and false."""
        values = lanes.data.take(lanes.at)
        lanes.at += 1
        if len(values) and values.max() > 1:
            lanes.fail(values > 1, self._wrong)
        return booleans(places.spread(values == 1), places.valid)


class Integers:
    """An int or a long; of 32 bits it must be one."""

    room = VARINT_ROOM
    least = 1
    takes_zero = True

    def __init__(self, kind: pa.DataType, bits: int, broken: int) -> None:
        self.kind, self._bits, self._broken = kind, bits, broken

    def read(self, lanes: Lanes, places: Places) -> Array:
        """Numbers."""
        values = read_integers(lanes, self._bits, self._broken)
        return places.numbers(self.kind, values.astype(_WIDTHS[self.kind.bit_width], copy=False))


class Times:
    """An int or a long that counts days, or parts of a second."""

    room = VARINT_ROOM
    least = 1
    takes_zero = True

    def __init__(self, kind: pa.DataType, bits: int, scale: Scale, broken: int, outside: int) -> None:
        self.kind, self._bits, self._scale, self._broken, self._outside = kind, bits, scale, broken, outside

    def read(self, lanes: Lanes, places: Places) -> Array:
        """Dates, times of day or moments."""
        values = read_integers(lanes, self._bits, self._broken)
        outside = self._scale.outside(values)
        if outside.any():
            lanes.fail(outside, self._outside)
            values[outside] = 0
        values = self._scale.column(values)
        return places.numbers(self.kind, values.astype(_WIDTHS[self.kind.bit_width], copy=False))


class Floats:
    """Four or eight bytes; NaNs and signs of zero stay as they are."""

    takes_zero = False

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self.room = self.least = kind.bit_width // 8

    def read(self, lanes: Lanes, places: Places) -> Array:
        """Numbers."""
        words = lanes.load(self.least)
        bits = words if self.least == 8 else words.astype(np.uint32)  # noqa: PLR2004  # bytes of a double
        return places.numbers(self.kind, bits)


class Blobs:
    """Bytes with their length before them."""

    kind = pa.binary()
    room = VARINT_ROOM
    least = 1
    takes_zero = True

    def __init__(self, broken: int) -> None:
        self._broken = broken

    def spans(self, lanes: Lanes) -> tuple[Ints, Ints]:
        """Where the bytes of each lane are."""
        return lanes.span(lanes.zigzag(self._broken), self._broken)

    def read(self, lanes: Lanes, places: Places) -> Array:
        """Bytes."""
        return places.spans(lanes.data, *self.spans(lanes))


class FixedBlobs(Blobs):
    """So many bytes."""

    room = 0
    takes_zero = False

    def __init__(self, size: int, broken: int) -> None:
        super().__init__(broken)
        self.least = self._size = size

    def spans(self, lanes: Lanes) -> tuple[Ints, Ints]:
        """Where the bytes of each lane are."""
        return lanes.span(np.full(len(lanes), self._size, np.int64), self._broken)


class Texts:
    """UTF-8 with its length before it."""

    kind = pa.string()
    room = VARINT_ROOM
    least = 1

    def __init__(self, blobs: Blobs, invalid: int) -> None:
        self._blobs, self._invalid = blobs, invalid
        self.takes_zero = blobs.takes_zero

    def read(self, lanes: Lanes, places: Places) -> Array:
        """Text; a lane whose bytes are not UTF-8 fails."""
        starts, ends = self._blobs.spans(lanes)
        return read_texts(lanes, places, starts, ends, self._invalid)


class Uuids:
    """Sixteen bytes that name something: text in groups of 8, 4, 4, 4 and 12 hexadecimal digits."""

    kind = pa.string()
    room = 0
    least = 16
    takes_zero = False

    def __init__(self, broken: int) -> None:
        self._blobs = FixedBlobs(self.least, broken)

    def read(self, lanes: Lanes, places: Places) -> Array:
        """Text."""
        starts, _ = self._blobs.spans(lanes)
        raw = lanes.data[starts[:, None] + np.arange(self.least)]
        text = np.full((len(starts), 36), ord("-"), np.uint8)
        text[:, _HIGH_DIGITS] = _HEX[raw >> 4]
        text[:, _HIGH_DIGITS + 1] = _HEX[raw & 15]
        ends = np.arange(1, len(starts) + 1) * 36
        return places.spans(text.ravel(), ends - 36, ends).cast(pa.string())


class Symbols:
    """The index of one of a few names."""

    kind = pa.string()
    room = VARINT_ROOM
    least = 1
    takes_zero = True

    def __init__(self, names: tuple[str, ...], broken: int, unknown: int) -> None:
        self._names = texts(names)
        self._broken, self._unknown = broken, unknown

    def read(self, lanes: Lanes, places: Places) -> Array:
        """The names."""
        index = read_index(lanes, len(self._names), self._broken, self._unknown)
        return self._names.take(places.numbers(pa.int64(), index))


class Decimals:
    """An unscaled number, as bytes or fixed."""

    takes_zero = False

    def __init__(self, kind: pa.Decimal128Type, blobs: Blobs, invalid: int) -> None:
        self.kind, self._blobs, self._invalid = kind, blobs, invalid
        self.room, self.least = blobs.room, blobs.least
        self._precision = kind.precision

    def read(self, lanes: Lanes, places: Places) -> Array:
        """Exact numbers; one of more digits than its type has fails, and one of no byte."""
        starts, ends = self._blobs.spans(lanes)
        low, high = halves(lanes, starts, ends)
        wrong = over_precision(low, high, self._precision) | too_long(lanes, starts, ends) | (starts == ends)
        if wrong.any():
            lanes.fail(wrong, self._invalid)
            low[wrong] = high[wrong] = 0
        return decimals(self.kind, places.spread(low), places.spread(high), places.valid)


def read_integers(lanes: Lanes, bits: int, broken: int) -> Ints:
    """The next numbers; of 32 bits: a lane that holds another fails."""
    values = lanes.zigzag(broken)
    if bits == _INT_BITS and len(values) and (values.max() > _INT_MOST or values.min() < -_INT_MOST - 1):
        outside = (values > _INT_MOST) | (values < -_INT_MOST - 1)
        lanes.fail(outside, broken)
        values[outside] = 0
    return values


def read_index(lanes: Lanes, count: int, broken: int, unknown: int) -> Ints:
    """The next numbers below `count`; a lane that holds another fails, and gets 0."""
    values = lanes.zigzag(broken)
    if len(values) and (values.min() < 0 or values.max() >= count):
        wrong = (values < 0) | (values >= count)
        lanes.fail(wrong, unknown)
        values[wrong] = 0
    return values


def read_texts(lanes: Lanes, places: Places, starts: Ints, ends: Ints, invalid: int) -> Array:
    """The column of these spans as text; lanes whose bytes are not UTF-8 fail, and get none."""
    raw = places.spans(lanes.data, starts, ends)
    try:
        return as_text(raw)
    except pa.ArrowInvalid:
        wrong = not_utf8(raw)[places.index]
        lanes.fail(wrong, invalid)
        return places.spans(lanes.data, np.where(wrong, ends, starts), ends).cast(pa.string())


_WIDTHS: Final = {32: np.int32, 64: np.int64}
_INT_BITS: Final = 32
_INT_MOST: Final = (1 << 31) - 1
_HEX: Final[Bytes] = np.frombuffer(b"0123456789abcdef", np.uint8)
_HIGH_DIGITS: Final[Ints] = np.array([0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34])
