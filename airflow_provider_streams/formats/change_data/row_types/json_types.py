"""Types as JSON values show them, and how JSON without a schema writes a column that a user declared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, Final

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.formats.change_data.row_types import column_meanings
from airflow_provider_streams.formats.change_data.row_types.column_meanings import LONG, SCALED, TEXT, Meaning
from airflow_provider_streams.formats.change_data.row_types.uniting import wider
from airflow_provider_streams.model.schema.type_table import TIMES
from airflow_provider_streams.model.schema.types import ArrayOf, Decimal, Field, MapOf, Simple, StructOf, Type

JSON: Final = Simple("string", form="json")
_FRACTION, _LARGE = Simple("double"), Decimal(38, 0)
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


def shown_type(value: Any) -> Type:  # noqa: PLR0911  # one for each kind of value
    """The type of a parsed value. Null is text, as long as nothing else is known."""
    match value:
        case bool():
            return Simple("boolean")
        case int():
            return LONG if _LEAST <= value <= _MOST else _LARGE
        case float():
            return _FRACTION
        case list():
            return ArrayOf(_shown_element([shown_type(one) for one in value if shows_type(one)]))
        case {"scale": int(), "value": str()} if len(value) == len(_SCALED):
            return TEXT
        case dict() if value and len({name.lower() for name in value}) == len(value):
            return StructOf(tuple(Field(name, shown_type(one), default=None) for name, one in value.items()))
        case dict():
            return JSON
    return TEXT


def takes_others(type_: Type) -> bool:
    """Whether a type that a value showed also reads values that show another one, such as integers as fractions."""
    match type_:
        case StructOf(fields):
            return any(takes_others(field.type) for field in fields)
    return _is_json(type_) or type_ in (_FRACTION, _LARGE)


def is_shown_by(type_: Type, value: Any) -> bool:
    """Whether another parsed value shows a type that `takes_others`. Null shows any."""
    match type_, value:
        case _, None:
            return True
        case StructOf(fields), dict():
            return all(is_shown_by(field.type, value.get(field.name)) for field in fields)
    if not takes_others(type_):
        return True
    own = shown_type(value)
    return own == type_ and _is_json(own) == _is_json(type_)


def _is_json(type_: Type) -> bool:
    return isinstance(type_, Simple) and type_.form == JSON.form  # which types are compared without


def shows_type(value: Any) -> bool:
    """Whether a parsed value shows a type: neither null does, nor a list of nothing else."""
    return any(map(shows_type, value)) if isinstance(value, list) else value is not None


def _shown_element(types: Sequence[Type]) -> Type:
    """A type for all elements of a list. Without one, the first counts, and lists with others are undecodable."""
    if not types:
        return TEXT
    try:
        return reduce(wider, types)
    except InvalidSchema:
        return types[0]


def shown(value: Any) -> Meaning:
    """What a parsed value means if nothing tells it."""
    return written(shown_type(value), value)


def written(type_: Type, value: Any) -> Meaning:  # noqa: PLR0911  # one for each kind of type
    """How JSON writes a column, by one of its values; None: by default."""
    match type_:
        case Decimal():
            return _decimal(type_, value)
        case Simple("binary"):
            return column_meanings.BYTES
        case Simple(word) if word in TIMES:
            return _time(type_, value)
        case Simple("string") if _is_scaled(value):
            return SCALED
        case ArrayOf(element):
            return column_meanings.list_of(written(element, _first(value)))
        case MapOf(Simple("string"), item):
            held = list(value.values()) if isinstance(value, Mapping) else []
            return column_meanings.map_of(written(item, _first(held)))
        case StructOf(fields):
            held_fields = value if isinstance(value, Mapping) else {}
            return column_meanings.struct_of({one.name: written(one.type, held_fields.get(one.name)) for one in fields})
    return column_meanings.plain(type_)


def _decimal(type_: Decimal, value: Any) -> Meaning:
    if _is_scaled(value):
        return SCALED
    if isinstance(value, int | float) and not isinstance(value, bool):
        return column_meanings.plain(type_)
    return Meaning("digits", TEXT, type_)


def _time(type_: Simple, value: Any) -> Meaning:
    """Debezium writes dates as days; other times are numbers of a unit, which only the user can tell."""
    if type_.unit is not None and not isinstance(value, str):
        return column_meanings.count(type_.word, type_.unit)
    if type_.word == "date" and not isinstance(value, str):
        return column_meanings.count("date", "d")
    if isinstance(value, int):
        return Meaning("odd", LONG, Simple(type_.word))
    return column_meanings.iso(type_.word)


def _is_scaled(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == _SCALED


def _first(values: Any) -> Any:
    if not isinstance(values, Sequence) or isinstance(values, str):
        return None
    return next((one for one in values if one is not None), None)


_SCALED: Final = {"scale", "value"}
