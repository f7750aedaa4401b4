"""Payloads that are one value each: bytes, text, and Pulsar's primitives (big-endian, of one width)."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrays import Array, Bytes, Flags, Ints, booleans, numbers, span_ends, spans
from airflow_provider_streams.formats.arrow_types import SIMPLE
from airflow_provider_streams.formats.causes import Causes, Codes, blame
from airflow_provider_streams.formats.reader import Column
from airflow_provider_streams.formats.row_types import SINGLE
from airflow_provider_streams.formats.text import as_text, not_utf8
from airflow_provider_streams.formats.times import DAY_MICROS, DAY_NANOS, Scale
from airflow_provider_streams.model.row_type import Simple, Unit


class BytesReader:
    """The payloads themselves."""

    type = Simple("binary")

    def read(self, payloads: Array) -> Column:
        """Never refuses any."""
        return Column(payloads, np.zeros(len(payloads), np.int16))


class TextReader:
    """UTF-8."""

    type = Simple("string")

    def __init__(self, causes: Causes) -> None:
        self._invalid = causes.code("it is not UTF-8")

    def read(self, payloads: Array) -> Column:
        """Checked in native code; only where that finds something, value by value."""
        codes = np.zeros(len(payloads), np.int16)
        try:
            return Column(as_text(payloads), codes)
        except pa.ArrowInvalid:
            wrong = not_utf8(payloads)
            blame(codes, wrong, self._invalid)
            data, starts, ends = span_ends(payloads)
            return Column(spans(data, starts, np.where(wrong, starts, ends)).cast(pa.string()), codes)


class FixedReader:
    """A primitive: numbers, or times that numbers count."""

    def __init__(self, format_: str, causes: Causes) -> None:
        self.type = Simple(SINGLE[format_])
        self._format, self._width = format_, _WIDTHS[format_]
        self._kind = SIMPLE[self.type.word]
        self._length = causes.code(f"it is not the {self._width} bytes of {format_}")
        self._invalid = causes.code(f"it {_RULES.get(format_, _OUTSIDE)}")

    def read(self, payloads: Array) -> Column:
        """All side by side; of another length than theirs is a bad one."""
        raw, codes = self._rows(payloads)
        if self._format == "boolean":
            blame(codes, raw[:, 0] > 1, self._invalid)
            return Column(booleans(raw[:, 0] == 1), codes)
        if self._format in _NUMBERS:
            return Column(numbers(self._kind, _number(raw, _NUMBERS[self._format])), codes)
        values, outside = self._times(raw)
        blame(codes, outside, self._invalid)
        values[outside] = 0
        return Column(numbers(self._kind, values.astype(np.dtype(f"i{self._kind.bit_width // 8}"), copy=False)), codes)

    def _rows(self, payloads: Array) -> tuple[Bytes, Codes]:
        """The bytes of each, zeros for those of another length."""
        codes = np.zeros(len(payloads), np.int16)
        data, starts, ends = span_ends(payloads)
        wrong = (ends - starts) != self._width
        if not wrong.any():
            first = int(starts[0]) if len(starts) else 0
            return data[first : first + len(starts) * self._width].reshape(-1, self._width), codes
        blame(codes, wrong, self._length)
        raw = np.zeros((len(payloads), self._width), np.uint8)
        fine = np.flatnonzero(~wrong)
        raw[fine] = data[starts[fine, None] + np.arange(self._width)]
        return raw, codes

    def _times(self, raw: Bytes) -> tuple[Ints, Flags]:
        first = _number(raw[:, :8], ">i8")
        match self._format:
            case "instant":
                return _instants(first, _number(raw[:, 8:], ">i4").astype(np.int64))
            case "local_date_time":
                return _wall_clock(first, _number(raw[:, 8:], ">i8"))
        scale = Scale.of(self.type.word, _UNITS[self._format])
        outside = scale.outside(first)
        first[outside] = 0
        return scale.column(first), outside


def _number(raw: Bytes, kind: str) -> np.ndarray:
    wide = np.dtype(kind)
    found = np.ascontiguousarray(raw).view(wide).reshape(-1)
    return found.astype(wide.newbyteorder("="))


def _instants(seconds: Ints, nanos: Ints) -> tuple[Ints, Flags]:
    """Microseconds; what is finer is cut off."""
    outside = Scale.of("timestamp", "s").outside(seconds) | (nanos < 0) | (nanos >= _SECOND_NANOS)
    return np.where(outside, 0, seconds) * _SECOND_MICROS + nanos // 1000, outside


def _wall_clock(days: Ints, nanos: Ints) -> tuple[Ints, Flags]:
    """Microseconds; what is finer is cut off."""
    outside = Scale.of("date", "d").outside(days) | (nanos < 0) | (nanos >= DAY_NANOS)
    return np.where(outside, 0, days) * DAY_MICROS + nanos // 1000, outside


_SECOND_NANOS: Final = 1_000_000_000
_SECOND_MICROS: Final = 1_000_000
_NUMBERS: Final = {"int8": ">i1", "int16": ">i2", "int32": ">i4", "int64": ">i8", "float": ">f4", "double": ">f8"}
_UNITS: Final[dict[str, Unit]] = {
    "date": "ms", "time": "ms", "timestamp": "ms", "local_date": "d", "local_time": "ns",
}  # fmt: skip
_WIDTHS: Final = {
    "boolean": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "float": 4, "double": 8,
    "date": 8, "time": 8, "timestamp": 8, "instant": 12, "local_date": 8, "local_time": 8, "local_date_time": 16,
}  # fmt: skip
_OUTSIDE: Final = "is no time of the years 1 to 9999, or of a day"
_RULES: Final = {"boolean": "is no boolean"}
