"""Versions of a schema that no columns hold, made one by text. Types only, for planning without Arrow."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

from airflow_provider_streams.formats.schema.merge_schemas import (
    as_union,
    by_newest,
    counterpart,
    is_union,
    lacking,
    taker,
)
from airflow_provider_streams.model.schema.types import MISSING, ArrayOf, Field, MapOf, Simple, StructOf, Type

TEXT: Final = Simple("string")


def united(newest: Type, older: Type) -> Type:
    """The newest's columns, wide enough for the older's values, and text if nothing else holds both."""
    both, found = by_newest(newest, older)
    if not found and not _loses(newest, older):
        return both
    match newest, older:
        case StructOf(union=False), StructOf(union=False):
            fields = tuple(_field(one, counterpart(one, older.fields)) for one in newest.fields)
            return replace(newest, fields=fields)
        case ArrayOf(one), ArrayOf(other):
            return ArrayOf(united(one, other))
        case MapOf(key, one), MapOf(other_key, other) if key == other_key:
            return MapOf(key, united(one, other))
    return TEXT


def written_out(have: Type, want: Type) -> Type:
    """A version's type, with text where only text is wanted."""
    if want == TEXT and have != TEXT:
        return TEXT
    match have, want:
        case StructOf(union=False), StructOf(union=False):
            wanted = {one.name: one.type for one in want.fields}
            fields = (replace(one, type=written_out(one.type, wanted.get(one.name, one.type))) for one in have.fields)
            return replace(have, fields=tuple(fields))
        case ArrayOf(one), ArrayOf(other):
            return ArrayOf(written_out(one, other))
        case MapOf(key, one), MapOf(_, other):
            return MapOf(key, written_out(one, other))
    return have


def _loses(newest: Type, older: Type) -> bool:
    """Whether a union has a branch that the other's does not take."""
    match newest, older:
        case StructOf(union=False), StructOf(union=False):
            pairs = ((one, counterpart(one, older.fields)) for one in newest.fields)
            return any(found and _loses(one.type, found.type) for one, found in pairs)
        case (ArrayOf(one), ArrayOf(other)) | (MapOf(_, one), MapOf(_, other)):
            return _loses(one, other)
    if not is_union(newest) and not is_union(older):
        return False
    return any(taker(branch, newest, older) is None for branch in as_union(older).fields)


def _field(field: Field, other: Field | None) -> Field:
    if other is None:
        return lacking(field)
    type_ = united(field.type, other.type)
    default = field.default
    if type_ == TEXT != field.type and default not in (MISSING, None):
        default = json_text(default)
    return replace(field, type=type_, nullable=field.nullable or other.nullable, default=default)


def json_text(value: Any) -> str:
    """A string as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, default=str, ensure_ascii=False, separators=(",", ":"))
