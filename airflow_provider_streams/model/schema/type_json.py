"""Row types as JSON, as plans keep them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.model.schema.ddl import parse_type
from airflow_provider_streams.model.schema.types import MISSING, ArrayOf, Decimal, Field, MapOf, Simple, StructOf, Type


def to_json(type_: Type) -> Any:
    """A type as JSON: words for simple types and decimals, objects for others."""
    match type_:
        case Simple(symbols=(_, *_) as symbols):
            return {"enum": list(symbols)}
        case Simple(word, unit, form):
            return "/".join(filter(None, (word, unit, form)))
        case Decimal():
            return str(type_)
        case ArrayOf(element):
            return {"array": to_json(element)}
        case MapOf(key, value):
            return {"map": [to_json(key), to_json(value)]}
        case StructOf(fields, union, names):
            inner = [_field_json(one) for one in fields]
            return {"union" if union else "struct": inner, **({"names": list(names)} if names else {})}


def from_json(data: Any) -> Type:
    """The reverse of `to_json`.

    Raises:
        InvalidSchema: it is no type.
    """
    match data:
        case str():
            return _simple(data)
        case {"enum": [*symbols]}:
            return Simple("string", symbols=tuple(symbols))
        case {"array": element}:
            return ArrayOf(from_json(element))
        case {"map": [key, value]}:
            return MapOf(from_json(key), from_json(value))
        case {"struct": [*fields]}:
            return StructOf(tuple(map(_field, fields)), names=tuple(data.get("names", ())))
        case {"union": [*fields]}:
            return StructOf(tuple(map(_field, fields)), union=True)
    raise InvalidSchema(str(data)[:80], "not a type")


@lru_cache(maxsize=1024)
def _simple(text: str) -> Type:
    """The type of `timestamp/ms`. A plan has few of them, for thousands of columns."""
    word, _, how = text.partition("/")
    return parse_type(f"{word}({how})" if how else word)


def _field_json(one: Field) -> dict[str, Any]:
    """Plain JSON values, without defaults."""
    return {
        "name": one.name,
        "type": to_json(one.type),
        **({} if one.nullable else {"nullable": False}),
        **({} if one.default is MISSING else {"default": one.default}),
        **{name: list(values) for name, values in (("aliases", one.aliases), ("keys", one.keys)) if values},
    }


def _field(data: Any) -> Field:
    if not isinstance(data, dict) or not isinstance(data.get("name"), str) or "type" not in data:
        raise InvalidSchema(str(data)[:80], "not a field")
    return Field(
        data["name"],
        from_json(data["type"]),
        data.get("nullable", True),
        data.get("default", MISSING),
        tuple(data.get("aliases", ())),
        tuple(data.get("keys", ())),
    )
