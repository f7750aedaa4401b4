"""Parsed JSON values to columns, all values of a column at once: plain ones need no look at each of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, Final, TypeAlias, cast

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrow.arrays import Array, Flags, lists, number_values, structs
from airflow_provider_streams.formats.arrow.arrow_types import arrow_type, entry_type
from airflow_provider_streams.formats.json.block_reader import NotRead, counted_times, text_times
from airflow_provider_streams.formats.json.converters import converter
from airflow_provider_streams.formats.json.jackson import Refused
from airflow_provider_streams.model.schema.type_table import TIMES
from airflow_provider_streams.model.schema.types import ArrayOf, MapOf, Simple, StructOf, Type

Build: TypeAlias = Callable[[list[Any]], Array]
"""Values of `JsonParser`, None for null, to their column. It raises `NotRead` if a value is not of the type."""


def builder(type_: Type, *, strict: bool = False) -> Build:
    """The function that makes a column of the type; if `strict`, not of objects with other keys."""
    match type_:
        case StructOf():
            return _structs(type_, strict=strict)
        case ArrayOf(element):
            inner = builder(element, strict=strict)
            return _nested(type_, list, lambda values: inner(list(chain.from_iterable(values))))
        case MapOf(Simple("string"), item):
            return _nested(type_, tuple, _entries(type_, builder(type_.key), builder(item, strict=strict)))
        case MapOf():
            return _each(type_, strict=strict)
        case Simple(word, unit) if word in TIMES:
            return _times(type_, unit is not None)
    return _plain(type_)


def _structs(type_: StructOf, *, strict: bool) -> Build:
    kind = cast("pa.StructType", arrow_type(type_))
    fields = [(one.in_objects, builder(one.type, strict=strict), not one.nullable) for one in type_.fields]
    known = {key for keys, _, _ in fields for key in keys}

    def build(values: list[Any]) -> Array:
        absent = _absent(values, tuple)
        rows = [{} if value is None else dict(value) for value in values] if absent else list(map(dict, values))
        if sum(map(len, rows)) < sum(map(len, filter(None, values))):
            raise NotRead  # a key that occurs twice, perhaps one of a column
        if strict and not all(map(known.issuperset, rows)):
            raise NotRead
        columns = []
        for keys, inner, required in fields:
            column = inner(_of_keys(rows, keys))
            if required and column.null_count > absent:
                raise NotRead
            columns.append(column)
        return structs(kind, columns, len(values), _valid(values) if absent else None)

    return build


def _of_keys(rows: list[dict[str, Any]], keys: tuple[str, ...]) -> list[Any]:
    """The values of a field's keys, which must be the same."""
    first, *others = keys
    if not others:
        return [row.get(first) for row in rows]
    found = [[value for key in keys if (value := row.get(key)) is not None] for row in rows]
    if any(value is not values[0] for values in found for value in values[1:]):
        raise NotRead  # equal booleans are one object
    return [values[0] if values else None for values in found]


def _nested(type_: Type, python: type, items: Callable[[list[Any]], Array]) -> Build:
    """The function for lists or maps, which are parsed to a type of Python; `items` joins those that are not null."""
    kind = arrow_type(type_)

    def build(values: list[Any]) -> Array:
        valid = _valid(values) if _absent(values, python) else None
        counts = np.array([0 if value is None else len(value) for value in values], np.int64)
        return lists(kind, counts, items([value for value in values if value is not None]), valid)

    return build


def _entries(type_: MapOf, keys: Build, values: Build) -> Build:
    entry = entry_type(arrow_type(type_))

    def build(maps: list[Any]) -> Array:
        pairs = list(chain.from_iterable(maps))
        if sum(map(len, map(dict, maps))) < len(pairs):
            raise NotRead  # a map has a key twice
        columns = [keys([key for key, _ in pairs]), values([value for _, value in pairs])]
        return structs(entry, columns, len(pairs))

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
    if python is None or (isinstance(type_, Simple) and type_.form == "json"):
        return each

    def build(values: list[Any]) -> Array:
        if not python.issuperset(map(type, values)):
            return each(values)
        column = _array(values, kind)
        if pa.types.is_floating(kind) and np.isinf(number_values(column)).any():
            raise NotRead
        return column

    return build


def _each(type_: Type, *, strict: bool = False) -> Build:
    """One by one."""
    kind, convert = arrow_type(type_), converter(type_, strict=strict)

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
    """How many values are null; the others must be of this type."""
    kinds = set(map(type, values))
    if not kinds <= {python, _NOTHING}:
        raise NotRead
    return values.count(None) if _NOTHING in kinds else 0


def _valid(values: list[Any]) -> Flags:
    return np.array([value is not None for value in values], np.bool_)


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
"""Python's types whose values are values of a column without conversion, or do not fit into it."""
