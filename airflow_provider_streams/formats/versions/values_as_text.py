"""Values as text, for versions that no columns hold (see `types_as_text`).

Numbers, booleans and times are text as Arrow writes them, strings are themselves, bytes are base64, and what has parts
is JSON.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_streams.formats.arrow.arrays import Array, lists_like, structs_like
from airflow_provider_streams.formats.arrow.arrow_types import arrow_type
from airflow_provider_streams.formats.schema.types_as_text import TEXT, json_text
from airflow_provider_streams.formats.versions.column_casts import branches, maps_like
from airflow_provider_streams.model.schema.types import ArrayOf, Decimal, MapOf, Simple, StructOf, Type


def to_text(values: Array, have: Type, want: Type) -> Array:
    """Values of a type as the type that `written_out` gave for it."""
    if have == want:
        return values
    if want == TEXT:
        return _text(values, have)
    kind = arrow_type(want)
    match have, want:
        case StructOf(fields), StructOf(wanted):
            parts = enumerate(zip(fields, wanted, strict=True))
            inner = [to_text(pc.struct_field(values, at), one.type, now.type) for at, (one, now) in parts]
            return structs_like(values, kind, inner)
        case ArrayOf(one), ArrayOf(now):
            return lists_like(values, kind, to_text(values.values, one, now))  # type: ignore[attr-defined]  # a list
        case MapOf(_, one), MapOf(_, now):
            return maps_like(values, kind, to_text(cast("pa.MapArray[Any, Any]", values).items, one, now))
    raise AssertionError(f"{have} is not written out as {want}")


def _text(values: Array, have: Type) -> Array:
    match have:
        case Simple("string"):
            return values
        case Simple("binary"):
            return _each(values, _base64)
        case Simple() | Decimal():
            return cast("Array", values.cast(pa.string()))
        case StructOf(union=True):
            made: Array = pc.coalesce(*(_text(column, one.type) for one, column in branches(values, have)))
            return made
    return _each(values, lambda value: json_text(_plain(value, have)))


def _each(values: Array, text: Callable[[Any], str]) -> Array:
    made: Array = pa.array([None if one is None else text(one) for one in values.to_pylist()], pa.string())
    return made


def _plain(value: Any, type_: Type) -> Any:
    """A value as JSON has it."""
    if value is None:
        return None
    match type_:
        case ArrayOf(element):
            return [_plain(one, element) for one in value]
        case MapOf(_, item):
            return {str(name): _plain(one, item) for name, one in value}
        case StructOf(fields, union=True):
            return next((_plain(value[one.name], one.type) for one in fields if value[one.name] is not None), None)
        case StructOf(fields):
            return {one.name: _plain(value[one.name], one.type) for one in fields}
    return _base64(value) if isinstance(value, bytes) else value


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()
