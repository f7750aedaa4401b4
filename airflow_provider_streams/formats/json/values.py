"""Parsed values to columns, all values of a column at once: what is plain needs no look at each of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, Final, TypeAlias, cast

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrays import Array, Flags, lists, number_values, span_ends, structs
from airflow_provider_streams.formats.arrow_types import arrow_type
from airflow_provider_streams.formats.json.blocks import NotRead, counted_times, openers, text_times
from airflow_provider_streams.formats.json.rows import MOST_DEPTH, MOST_DIGITS, Refused, converter
from airflow_provider_streams.model.row_type import TIMES, ArrayOf, MapOf, Simple, StructOf, Type

Build: TypeAlias = Callable[[list[Any]], Array]
"""Values as `RowReader.parsed` gives them, None for null, to their column. Raises NotRead: one of them is no value of
the type."""


def plain_rows(payloads: Array) -> Flags:
    """Which texts `RowReader.quickly` may parse: they are short, not deep, and no number of them is -0."""
    data, starts, ends = span_ends(payloads)
    if not len(starts):
        return np.zeros(0, np.bool_)
    held, first = data[starts[0] : ends[-1]], starts - starts[0]
    lengths = ends - starts
    found = lengths <= MOST_DIGITS
    if lengths.max() > 2 * MOST_DEPTH:
        found &= openers(held, first) <= MOST_DEPTH
    zeros = (held[1:-1] == _MINUS) & (held[2:] == _ZERO)
    if zeros.any():
        places = np.flatnonzero(zeros)  # of the bytes before
        places = places[_BEFORE_NUMBERS[held[places]]]
        found[np.searchsorted(first, places, "right") - 1] = False
    return found


def builder(type_: Type) -> Build:
    """The function that makes a column of the type."""
    match type_:
        case StructOf():
            return _structs(type_)
        case ArrayOf(element):
            return _lists(type_, builder(element))
        case MapOf(key, item):
            return _maps(type_, builder(key), builder(item))
        case Simple(word, unit) if word in TIMES:
            return _times(type_, unit is not None)
    return _plain(type_)


def _structs(type_: StructOf) -> Build:
    kind = cast("pa.StructType", arrow_type(type_))
    fields = [(one.name, builder(one.type), not one.nullable) for one in type_.fields]

    def build(values: list[Any]) -> Array:
        absent = _absent(values, tuple)
        rows = [{} if value is None else dict(value) for value in values] if absent else list(map(dict, values))
        if sum(map(len, rows)) < sum(map(len, values)) if not absent else _any_twice(rows, values):
            raise NotRead  # a key that comes twice, perhaps one of a column
        columns = []
        for name, inner, required in fields:
            column = inner([row.get(name) for row in rows])
            if required and column.null_count > absent:
                raise NotRead
            columns.append(column)
        return structs(kind, columns, len(values), _valid(values) if absent else None)

    return build


def _any_twice(rows: list[dict[str, Any]], values: list[Any]) -> bool:
    return any(value is not None and len(row) < len(value) for row, value in zip(rows, values, strict=True))


def _lists(type_: ArrayOf, items: Build) -> Build:
    kind = arrow_type(type_)

    def build(values: list[Any]) -> Array:
        valid = _valid(values) if _absent(values, list) else None
        inner = items(list(chain.from_iterable(value for value in values if value is not None)))
        return lists(kind, _counts(values), inner, valid)

    return build


def _maps(type_: MapOf, keys: Build, items: Build) -> Build:
    kind = cast("pa.MapType[Any, Any]", arrow_type(type_))
    entry = pa.struct([kind.key_field, kind.item_field])

    def build(values: list[Any]) -> Array:
        valid = _valid(values) if _absent(values, tuple) else None
        there = [value for value in values if value is not None]
        pairs = list(chain.from_iterable(there))
        if sum(map(len, map(dict, there))) < len(pairs):
            raise NotRead  # a key that a map has twice
        columns = [keys([key for key, _ in pairs]), items([item for _, item in pairs])]
        return lists(kind, _counts(values), structs(entry, columns, len(pairs)), valid)

    return build


def _times(type_: Simple, counted: bool) -> Build:  # noqa: FBT001  # one of its facts
    python, stored, finish = (int, pa.int64(), counted_times) if counted else (str, pa.string(), text_times)
    each = _each(type_)

    def build(values: list[Any]) -> Array:
        if not set(map(type, values)) <= {python, _NOTHING}:
            return each(values)
        return finish(type_, _array(values, stored))

    return build


def _plain(type_: Type) -> Build:
    kind, each = arrow_type(type_), _each(type_)
    python = _PLAIN.get(str(type_))
    if python is None:
        return each

    def build(values: list[Any]) -> Array:
        if not python.issuperset(map(type, values)):
            return each(values)
        column = _array(values, kind)
        if pa.types.is_floating(kind) and np.isinf(number_values(column)).any():
            raise NotRead
        return column

    return build


def _each(type_: Type) -> Build:
    """One by one."""
    kind, convert = arrow_type(type_), converter(type_)

    def build(values: list[Any]) -> Array:
        try:
            return _array([None if value is None else convert(value) for value in values], kind)
        except Refused as refused:
            raise NotRead from refused

    return build


def _array(values: list[Any], kind: pa.DataType) -> Array:
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise NotRead from error


def _absent(values: list[Any], python: type) -> int:
    """How many values are null; the others are of this type."""
    kinds = set(map(type, values))
    if not kinds <= {python, _NOTHING}:
        raise NotRead
    return values.count(None) if _NOTHING in kinds else 0


def _valid(values: list[Any]) -> Flags:
    return np.array([value is not None for value in values], np.bool_)


def _counts(values: list[Any]) -> Any:
    return np.array([0 if value is None else len(value) for value in values], np.int64)


_MINUS, _ZERO = ord("-"), ord("0")
_BEFORE_NUMBERS: Final[Flags] = np.zeros(256, np.bool_)
_BEFORE_NUMBERS[list(b":,[ \t\n\r\f\v")] = True
_NOTHING: Final = type(None)
_PLAIN: Final[dict[str, set[type]]] = {
    "boolean": {bool, _NOTHING},
    "byte": {int, _NOTHING},
    "short": {int, _NOTHING},
    "int": {int, _NOTHING},
    "long": {int, _NOTHING},
    "double": {float, int, _NOTHING},
    "string": {str, _NOTHING},
}
"""The types of Python whose values are those of a column as they are, or do not fit into it."""
