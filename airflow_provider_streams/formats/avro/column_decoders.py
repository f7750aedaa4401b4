"""Steps that read values without inner values: the next value of every lane at once.

They are strict where Avro libraries are loose, since no encoder writes otherwise: a boolean is the byte 0 or 1, an int
has 32 bits, a varint has at most ten bytes, text is UTF-8, an index names a symbol or branch, a decimal has its digits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrow.arrays import Array, Bytes, Ints, as_text, booleans, not_utf8, nulls, texts
from airflow_provider_streams.formats.arrow.decimals import decimals, halves, over_precision, too_long
from airflow_provider_streams.formats.arrow.times import Scale
from airflow_provider_streams.formats.arrow.vectorized_cursor import ColumnSlots, VectorizedCursor
from airflow_provider_streams.formats.decode_failures import GOOD

VARINT_ROOM: Final = 10


class Step(ABC):
    """Reads the next value of each lane."""

    kind: pa.DataType
    """The type of the column."""
    room: int = VARINT_ROOM
    """How many bytes a cursor may stand after the end of its lane."""
    least: int = 1
    """The bytes of the shortest value."""
    takes_zero: bool = False
    """Whether a byte of zero is a value."""
    unresolved: int = GOOD
    """The cause of every lane, if the reader's schema does not take the values."""

    def read(self, lanes: VectorizedCursor, places: ColumnSlots) -> Array:
        """The column. Cursors move after the values, and lanes without such a value fail."""
        column = self._read(lanes, places)
        if self.unresolved:
            lanes.fail(np.ones(len(lanes), np.bool_), self.unresolved)
        return column

    @abstractmethod
    def _read(self, lanes: VectorizedCursor, places: ColumnSlots) -> Array: ...


class Nulls(Step):
    """Values of no bytes."""

    kind = pa.string()
    room = least = 0

    def _read(self, lanes: VectorizedCursor, places: ColumnSlots) -> Array:  # noqa: ARG002  # it reads no byte
        return nulls(self.kind, places.count)


class Booleans(Step):
    """One byte, 0 or 1."""

    kind = pa.bool_()
    room = 1
    takes_zero = True

    def __init__(self, wrong: int) -> None:
        self._wrong = wrong

    def _read(self, lanes: VectorizedCursor, places: ColumnSlots) -> Array:
        values = lanes.data.take(lanes.at)
        lanes.at += 1
        if len(values) and values.max() > 1:
            lanes.fail(values > 1, self._wrong)
        return booleans(places.spread(values == 1), places.valid)


class Integers(Step):
    """An int or a long; an int must have 32 bits."""

    takes_zero = True

    def __init__(self, kind: pa.DataType, bits: int, broken: int) -> None:
        self.kind, self._bits, self._broken = kind, bits, broken

    def _read(self, lanes: VectorizedCursor, places: ColumnSlots) -> Array:
        return places.numbers(self.kind, self._values(lanes).astype(_WIDTHS[self.kind.bit_width], copy=False))

    def _values(self, lanes: VectorizedCursor) -> Ints:
        values = lanes.zigzag(self._broken)
        if self._bits == _INT_BITS and len(values) and (values.max() > _INT_MOST or values.min() < -_INT_MOST - 1):
            outside = (values > _INT_MOST) | (values < -_INT_MOST - 1)
            lanes.fail(outside, self._broken)
            values[outside] = 0
        return values


class Times(Integers):
    """An int or a long that counts days or parts of a second."""

    def __init__(self, kind: pa.DataType, bits: int, scale: Scale, broken: int, outside: int) -> None:
        super().__init__(kind, bits, broken)
        self._scale, self._outside = scale, outside

    def _values(self, lanes: VectorizedCursor) -> Ints:
        values = super()._values(lanes)
        outside = self._scale.outside(values)
        if outside.any():
            lanes.fail(outside, self._outside)
            values[outside] = 0
        return self._scale.column(values)


class Floats(Step):
    """Four or eight bytes; NaNs and signs of zero stay as they are."""

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self.room = self.least = kind.bit_width // 8

    def _read(self, lanes: VectorizedCursor, places: ColumnSlots) -> Array:
        words = lanes.load(self.least)
        bits = words if self.least == 8 else words.astype(np.uint32)  # noqa: PLR2004  # bytes of a double
        return places.numbers(self.kind, bits)


class Blobs(Step):
    """Bytes after their length."""

    kind = pa.binary()
    takes_zero = True

    def __init__(self, broken: int) -> None:
        self._broken = broken

    def spans(self, lanes: VectorizedCursor) -> tuple[Ints, Ints]:
        """The starts and ends of each lane's bytes."""
        return lanes.span(lanes.zigzag(self._broken), self._broken)

    def _read(self, lanes: VectorizedCursor, places: ColumnSlots) -> Array:
        return places.spans(lanes.data, *self.spans(lanes))


class FixedBlobs(Blobs):
    """A fixed number of bytes."""

    room = 0
    takes_zero = False

    def __init__(self, size: int, broken: int) -> None:
        super().__init__(broken)
        self.least = self._size = size

    def spans(self, lanes: VectorizedCursor) -> tuple[Ints, Ints]:
        """The starts and ends of each lane's bytes."""
        return lanes.span(np.full(len(lanes), self._size, np.int64), self._broken)


class Texts(Step):
    """UTF-8 after its length."""

    kind = pa.string()

    def __init__(self, blobs: Blobs, invalid: int) -> None:
        self._blobs, self._invalid = blobs, invalid
        self.takes_zero = blobs.takes_zero

    def _read(self, lanes: VectorizedCursor, places: ColumnSlots) -> Array:
        starts, ends = self._blobs.spans(lanes)
        raw = places.spans(lanes.data, starts, ends)
        try:
            return as_text(raw)
        except pa.ArrowInvalid:
            wrong = not_utf8(raw)[places.index]
            lanes.fail(wrong, self._invalid)
            return places.spans(lanes.data, np.where(wrong, ends, starts), ends).cast(pa.string())


class Uuids(Step):
    """Sixteen bytes, which become hexadecimal digits in groups of 8, 4, 4, 4 and 12."""

    kind = pa.string()
    room = 0
    least = 16

    def __init__(self, broken: int) -> None:
        self._blobs = FixedBlobs(self.least, broken)

    def _read(self, lanes: VectorizedCursor, places: ColumnSlots) -> Array:
        starts, _ = self._blobs.spans(lanes)
        raw = lanes.data[starts[:, None] + np.arange(self.least)]
        text = np.full((len(starts), 36), ord("-"), np.uint8)
        text[:, _HIGH_DIGITS] = _HEX[raw >> 4]
        text[:, _HIGH_DIGITS + 1] = _HEX[raw & 15]
        ends = np.arange(1, len(starts) + 1) * 36
        return places.spans(text.ravel(), ends - 36, ends).cast(pa.string())


class Symbols(Step):
    """The index of one of an enum's symbols."""

    kind = pa.string()
    takes_zero = True

    def __init__(self, names: tuple[str, ...], broken: int, unknown: int) -> None:
        self._names = texts(names)
        self._broken, self._unknown = broken, unknown

    def _read(self, lanes: VectorizedCursor, places: ColumnSlots) -> Array:
        index = read_index(lanes, len(self._names), self._broken, self._unknown)
        return self._names.take(places.numbers(pa.int64(), index))


class Decimals(Step):
    """An unscaled number, as bytes or fixed: at least one byte, and no more digits than the type has."""

    def __init__(self, kind: pa.Decimal128Type, blobs: Blobs, invalid: int) -> None:
        self.kind, self._blobs, self._invalid = kind, blobs, invalid
        self.room, self.least = blobs.room, blobs.least
        self._precision = kind.precision

    def _read(self, lanes: VectorizedCursor, places: ColumnSlots) -> Array:
        starts, ends = self._blobs.spans(lanes)
        low, high = halves(lanes, starts, ends)
        wrong = over_precision(low, high, self._precision) | too_long(lanes, starts, ends) | (starts == ends)
        if wrong.any():
            lanes.fail(wrong, self._invalid)
            low[wrong] = high[wrong] = 0
        return decimals(self.kind, places.spread(low), places.spread(high), places.valid)


def read_index(lanes: VectorizedCursor, count: int, broken: int, unknown: int) -> Ints:
    """The next numbers below `count`; a lane with another number fails and gets 0."""
    values = lanes.zigzag(broken)
    if len(values) and (values.min() < 0 or values.max() >= count):
        wrong = (values < 0) | (values >= count)
        lanes.fail(wrong, unknown)
        values[wrong] = 0
    return values


_WIDTHS: Final = {32: np.int32, 64: np.int64}
_INT_BITS: Final = 32
_INT_MOST: Final = (1 << 31) - 1
_HEX: Final[Bytes] = np.frombuffer(b"0123456789abcdef", np.uint8)
_HIGH_DIGITS: Final[Ints] = np.array([0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34])
