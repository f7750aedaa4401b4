"""Values as messages write them to the plan's columns, by their meaning. Nothing is rounded, cut or guessed."""

from __future__ import annotations

import decimal
import re
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array
from airflow_provider_streams.formats.arrow.arrow_types import SIMPLE, arrow_type, entry_type
from airflow_provider_streams.formats.arrow.times import Scale
from airflow_provider_streams.formats.change_data.row_types.column_meanings import Meaning
from airflow_provider_streams.formats.change_data.values import base64_columns, text_columns
from airflow_provider_streams.formats.change_data.values.faults import Faults
from airflow_provider_streams.formats.change_data.values.fitting import cast_exactly, fit
from airflow_provider_streams.formats.change_data.values.iso_times import moments
from airflow_provider_streams.formats.change_data.values.text_values import of_text
from airflow_provider_streams.model.schema.change_rows import DecimalText
from airflow_provider_streams.model.schema.types import Decimal, Simple, Type, columns

OUTSIDE: Final = "holds a time that the column cannot hold: of no year from 1 to 9999, or of no time of one day"
FINER: Final = (
    "holds a time that is finer than microseconds. Set time.precision.mode=adaptive_time_microseconds in the "
    "connector, or declare the column as long, to land the number itself"
)
NO_UNIT: Final = (
    "holds a number, and nothing tells its unit. Declare it as timestamp_ntz(us) or timestamp_ntz(ms), or write "
    "schemas into the messages with value.converter.schemas.enable=true"
)
TOO_LARGE: Final = "holds a number that does not fit into the column"
NO_BASE64: Final = "holds a text that is not base64"
BASE64_OR_DIGITS: Final = (
    "holds a text that is either the number or base64 of it. Set decimal.handling.mode=string and write schemas into "
    "the messages with value.converter.schemas.enable=true, or set decimal.handling.mode=double"
)


def convert(meaning: Meaning, values: Array, want: Type, faults: Faults, text: DecimalText = "") -> Array:
    """The plan's column of values. Rows with faults are null, or mean nothing.

    Args:
        meaning: how the values are written.
        values: of the Arrow type of `meaning.wire`, or as a typed format has them.
        want: the type of the plan's column.
        faults: collects the rows that have no such value.
        text: how texts hold decimals where no schema tells it.
    """
    if values.null_count == len(values):
        return arrays.nulls(arrow_type(want), len(values))
    if want == Simple("long") and meaning.how == "count":
        return cast_exactly(values, pa.int64(), faults, TOO_LARGE)
    if meaning.how in ("list", "map", "struct") and type(want) is type(meaning.type):
        return _nested(meaning, values, want, faults, text)
    return fit(_simple(meaning, values, faults, text), meaning.type, want, faults)


def _simple(meaning: Meaning, values: Array, faults: Faults, text: DecimalText) -> Array:  # noqa: C901, PLR0911  # one for each meaning
    match meaning.how:
        case "bytes":
            return _bytes(values, faults)
        case "decimal":
            return _decimals(meaning, values, faults)
        case "digits":
            return _digits(meaning.type, values, faults, text)
        case "scaled":
            return _scaled(values, faults)
        case "count":
            return _counts(meaning, values, faults)
        case "iso":
            return moments(meaning.type, values, faults)
        case "text":
            return of_text(meaning.type, values, faults)
        case "geometry":
            return _bytes(pc.struct_field(values, "wkb"), faults)
        case "odd":
            faults.add(arrays.valid_flags(values), NO_UNIT)
            return arrays.nulls(arrow_type(meaning.type), len(values))
        case "list" | "map" | "struct":
            return _nested(meaning, values, meaning.type, faults, text)
    return values


def _nested(meaning: Meaning, values: Array, want: Type, faults: Faults, text: DecimalText) -> Array:
    kind = arrow_type(want)
    if meaning.how == "struct":
        return _struct(meaning, values, want, faults, text)
    inner = Faults()
    if meaning.how == "list":
        items = cast("pa.ListArray[Any]", values).values
        made = convert(meaning.parts[0], items, want.element, inner, text)  # type: ignore[union-attr]  # an array
        faults.add_inside(values, inner, "[]")
        return arrays.lists_like(values, kind, made)
    maps = cast("pa.MapArray[Any, Any]", values)
    made = convert(meaning.parts[0], maps.items, want.value, inner, text)  # type: ignore[union-attr]  # a map
    faults.add_inside(values, inner, "{}")
    entries: Array = pa.StructArray.from_arrays([maps.keys, made], fields=list(entry_type(kind)))
    return arrays.lists_like(values, kind, entries)


def _struct(meaning: Meaning, values: Array, want: Type, faults: Faults, text: DecimalText) -> Array:
    own = {one.name: place for place, one in enumerate(columns(meaning.type))}
    made = []
    for one in columns(want):
        if one.name not in own:
            made.append(arrays.nulls(arrow_type(one.type), len(values)))
            continue
        inner = Faults()
        place = own[one.name]
        made.append(convert(meaning.parts[place], pc.struct_field(values, place), one.type, inner, text))
        for rows, reason in inner.found:
            faults.add(rows, f".{one.name}: {reason}")
    return arrays.structs_like(values, arrow_type(want), made)


def _bytes(values: Array, faults: Faults) -> Array:
    if pa.types.is_binary(values.type):
        return values
    spans = base64_columns.decoded(values)
    faults.add(spans.wrong, NO_BASE64)
    return base64_columns.as_binary(spans)


def _decimals(meaning: Meaning, values: Array, faults: Faults) -> Array:
    if pa.types.is_decimal(values.type):  # a typed format has read it
        return cast_exactly(values, arrow_type(meaning.type), faults, TOO_LARGE)
    spans = base64_columns.decoded(values)
    faults.add(spans.wrong, NO_BASE64)
    if isinstance(meaning.type, Decimal) and meaning.scale == meaning.type.scale:
        made, wrong = base64_columns.as_decimals(spans, meaning.type.precision, meaning.type.scale)
        faults.add(wrong & ~spans.wrong, TOO_LARGE)
        return made
    scales = np.full(len(values), meaning.scale)
    texts = _number_texts(base64_columns.as_binary(spans), scales)
    return cast_exactly(texts, arrow_type(meaning.type), faults, TOO_LARGE)


def _scaled(values: Array, faults: Faults) -> Array:
    """Text of numbers of which each has its scale."""
    spans = base64_columns.decoded(pc.struct_field(values, "value"))
    scale = pc.struct_field(values, "scale")
    scales = arrays.number_values(scale).astype(np.int64)
    there = arrays.valid_flags(values)
    lacking = there & ~(arrays.valid_flags(scale) & spans.valid & (np.abs(scales) <= _MOST_SCALE))
    faults.add(spans.wrong | lacking | (there & (spans.ends == spans.starts)), "holds no scale and number")
    held = base64_columns.as_binary(spans._replace(valid=spans.valid & there & ~lacking))
    return _number_texts(held, np.where(lacking, 0, scales))


def _number_texts(unscaled: Array, scales: np.ndarray[Any, np.dtype[np.int64]]) -> Array:
    """Numbers as plain digits, without an exponent: of each, all digits."""
    found: list[bytes | None] = []
    for raw, scale in zip(unscaled.to_pylist(), scales.tolist(), strict=True):
        if not raw:
            found.append(None)
            continue
        number = decimal.Decimal(int.from_bytes(cast("bytes", raw), "big", signed=True))
        found.append(f"{number.scaleb(-scale, _EXACT):f}".encode())
    made: Array = arrays.listed(found).cast(pa.string())
    return made


def _digits(type_: Type, values: Array, faults: Faults, text: DecimalText) -> Array:
    """Texts of numbers, or base64 of them where the plan says so, or where it can be nothing else."""
    kind = cast("Decimal", type_)
    is_number = text_columns.matches(values, _NUMBER)
    may_be_base64 = text_columns.matches(values, _BASE64)
    there = arrays.valid_flags(values)
    if text == "":
        faults.add(is_number & may_be_base64, BASE64_OR_DIGITS)
    as_base64 = may_be_base64 & (~is_number if text == "" else np.full(len(values), text == "base64"))
    as_digits = is_number & ~as_base64
    faults.add(there & ~as_digits & ~as_base64, "holds a text that is no number (decimal.handling.mode)")
    made: Array = cast_exactly(text_columns.only(values, as_digits), arrow_type(type_), faults, TOO_LARGE)
    if as_base64.any():
        spans = base64_columns.decoded(text_columns.only(values, as_base64))
        unscaled, wrong = base64_columns.as_decimals(spans, kind.precision, kind.scale)
        faults.add(wrong | spans.wrong, TOO_LARGE)
        made = text_columns.first_of(made, unscaled)
    return made


def _counts(meaning: Meaning, values: Array, faults: Faults) -> Array:
    word = cast("Simple", meaning.type).word
    if pa.types.is_temporal(values.type):  # a typed format has read it
        return values.cast(SIMPLE[word])
    scale = Scale.of(word, meaning.unit)
    valid = arrays.valid_flags(values)
    numbers = np.where(valid, arrays.number_values(values.cast(pa.int64())), 0)
    outside = scale.outside(numbers)
    faults.add(outside, OUTSIDE)
    numbers = np.where(outside, 0, numbers)
    made = scale.column(numbers)
    # tables keep times of a day to the microsecond as well
    down = _NANOS if word == "time" and meaning.unit == "ns" else scale.down
    faults.add(numbers % down != 0, FINER)
    return arrays.time_numbers(SIMPLE[word], made, valid & ~outside)


_NANOS: Final = 1000
_MOST_SCALE: Final = 20_000
_NUMBER: Final = r"^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,4})?$"
_BASE64: Final = r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)$"
_EXACT: Final = decimal.Context(prec=100_000, Emax=999_999, Emin=-999_999, traps=[decimal.Inexact, decimal.Overflow])
SHORT_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4}){0,5}(?:[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)")
"""Base64 of at most 17 bytes that is nothing else: it ends with a sign of padding."""
