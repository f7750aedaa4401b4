"""Payloads of one value each: bytes, text, and Pulsar's primitives (big-endian, of one width)."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array, Bytes, Flags, Ints
from airflow_provider_streams.formats.arrow.arrow_types import SIMPLE
from airflow_provider_streams.formats.arrow.times import OUTSIDE, Scale, instants
from airflow_provider_streams.formats.decode_failures import Causes, Codes, Column, blame
from airflow_provider_streams.formats.schema.row_types import SINGLE
from airflow_provider_streams.model.schema.type_table import Unit
from airflow_provider_streams.model.schema.types import Simple


class BytesReader:
    """The payloads themselves."""

    type = Simple("binary")

    def read(self, payloads: Array) -> Column:
        """Accepts any payload."""
        return Column(payloads, np.zeros(len(payloads), np.int16))


class TextReader:
    """UTF-8."""

    type = Simple("string")

    def __init__(self, causes: Causes) -> None:
        self._invalid = causes.code("it is not UTF-8")

    def read(self, payloads: Array) -> Column:
        """Native code checks them. If it finds something, each value is checked."""
        codes = np.zeros(len(payloads), np.int16)
        try:
            return Column(arrays.as_text(payloads), codes)
        except pa.ArrowInvalid:
            wrong = arrays.not_utf8(payloads)
            blame(codes, wrong, self._invalid)
            data, starts, ends = arrays.span_ends(payloads)
            return Column(arrays.spans(data, starts, np.where(wrong, starts, ends)).cast(pa.string()), codes)


class FixedReader:
    """Numbers, or times that are numbers."""

    def __init__(self, format_: str, causes: Causes) -> None:
        self.type = Simple(SINGLE[format_])
        self._format, self._width = format_, _WIDTHS[format_]
        self._kind = SIMPLE[self.type.word]
        self._length = causes.code(f"it is not the {self._width} bytes of {format_}")
        self._invalid = causes.code(f"it {'is no boolean' if format_ == 'boolean' else OUTSIDE}")

    def read(self, payloads: Array) -> Column:
        """All side by side. A payload of another length is bad."""
        raw, codes = self._rows(payloads)
        if self._format == "boolean":
            blame(codes, raw[:, 0] > 1, self._invalid)
            return Column(arrays.booleans(raw[:, 0] == 1), codes)
        if self._format in _NUMBERS:
            return Column(arrays.numbers(self._kind, _number(raw, _NUMBERS[self._format])), codes)
        values, outside = self._times(raw)
        blame(codes, outside, self._invalid)
        values[outside] = 0
        return Column(arrays.time_numbers(self._kind, values), codes)

    def _rows(self, payloads: Array) -> tuple[Bytes, Codes]:
        """The bytes of each payload, zeros for payloads of another length."""
        codes = np.zeros(len(payloads), np.int16)
        data, starts, ends = arrays.span_ends(payloads)
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
                return instants(first, _number(raw[:, 8:], ">i4").astype(np.int64))
            case "local_date_time":
                return instants(first, _number(raw[:, 8:], ">i8"), "date", "d")
        scale = Scale.of(self.type.word, _UNITS[self._format])
        outside = scale.outside(first)
        first[outside] = 0
        return scale.column(first), outside


def _number(raw: Bytes, kind: str) -> np.ndarray:
    wide = np.dtype(kind)
    found = np.ascontiguousarray(raw).view(wide).reshape(-1)
    return found.astype(wide.newbyteorder("="))


_NUMBERS: Final = {"int8": ">i1", "int16": ">i2", "int32": ">i4", "int64": ">i8", "float": ">f4", "double": ">f8"}
_UNITS: Final[dict[str, Unit]] = {
    "date": "ms", "time": "ms", "timestamp": "ms", "local_date": "d", "local_time": "ns",
}  # fmt: skip
_WIDTHS: Final = {
    "boolean": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "float": 4, "double": 8,
    "date": 8, "time": 8, "timestamp": 8, "instant": 12, "local_date": 8, "local_time": 8, "local_date_time": 16,
}  # fmt: skip
