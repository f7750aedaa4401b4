"""Which `Auto(fields)` would take a JSON event that cannot be decoded, by its cause."""

from __future__ import annotations

from typing import Final

from airflow_provider_streams.formats.json.unmatched_keys import OTHERS
from airflow_provider_streams.formats.schema.row_types import parts_of, type_of
from airflow_provider_streams.model.schema.decoding import Decoding
from airflow_provider_streams.model.schema.types import (
    VALUE,
    ArrayOf,
    Field,
    MapOf,
    Simple,
    StructOf,
    Type,
    columns,
    quoted,
)


def declarations(decoding: Decoding, name: str, version: str, cause: str) -> tuple[str, ...]:
    """The fields as a user may declare them, the most helpful first; none: no declaration takes the event.

    Args:
        decoding: what the plan pinned.
        name: the source's name (`Declaration.dataset`).
        version: the schema version of the event; empty: none.
        cause: why the event cannot be decoded.
    """
    type_ = _declarable(decoding, name, version)
    if type_ is None:
        return ()
    path, _, rule = cause.partition(": ")
    path = path if isinstance(type_, StructOf) else f"{VALUE}{'' if path == _WHOLE else path}"
    ends = (" from ..", "") if rule.endswith(OTHERS) else ("",)
    if rule.startswith(_LACKING_ONLY):
        ends = ends[:1]
    found = [_declared(columns(type_), path, rule, " ", end) for end in ends]
    return tuple(one for one in found if one and not _UNQUOTABLE & set(one))


def _declarable(decoding: Decoding, name: str, version: str) -> Type | None:
    """The type of a version's values, if users may declare their fields."""
    schema = decoding.schemas.get(name, {}).get(version)
    if schema is None or decoding.framing != "message" or decoding.changes is not None:
        return None
    value = parts_of(schema)[1] if schema.format == "key_value" else schema
    return type_of(value) if value.format == "json" else None


def _declared(fields: tuple[Field, ...], path: str, rule: str, mark: str, end: str) -> str | None:
    """The declaration of the one field that a path leads to or through; None: there is none."""
    for one in fields:
        rest = path.removeprefix(one.name)
        if path.startswith(one.name) and (not rest or rest[0] in ".[{"):
            type_ = _inner(one.type, rest.removeprefix("."), rule, end)
            kept = "" if one.nullable or not rest else " not null"
            if type_ is not None:
                return f"{quoted(one.name)}{mark}{type_}{kept if rest else end}"
    return None


def _inner(type_: Type, path: str, rule: str, end: str) -> str | None:
    """The type to declare, which differs from a type at this path only."""
    if not path:
        return _of_rule(type_, rule)
    match type_:
        case ArrayOf(element) if path.startswith("[]"):
            inner = _inner(element, path[2:].removeprefix("."), rule, end)
            return inner and f"array<{inner}>"
        case MapOf(Simple("string") as key, value) if path.startswith("{}"):
            inner = _inner(value, path[2:].removeprefix("."), rule, end)
            return inner and f"map<{key},{inner}>"
        case StructOf(fields):
            inner = _declared(fields, path, rule, ": ", end)
            return inner and f"struct<{inner}>"
    return None


def _of_rule(type_: Type, rule: str) -> str | None:
    """The type that holds a value which broke a rule."""
    if rule.startswith(_LACKING):
        return _same(type_)
    if rule.startswith(_OF_NO_TYPE) or (isinstance(type_, Simple) and type_.form == "json"):
        return None
    return next((word for begin, word in _WIDER.items() if rule.startswith(begin)), "json")


def _same(type_: Type) -> str:
    """The type itself, as users write it. Of a struct, one field stands for all."""
    match type_:
        case Simple(word, unit, form) if how := unit or form:
            return f"{word}({how})"
        case ArrayOf(element):
            return f"array<{_same(element)}>"
        case MapOf(key, value):
            return f"map<{key},{_same(value)}>"
        case StructOf((first, *_)):
            return f"struct<{quoted(first.name)}: {_same(first.type)}{'' if first.nullable else ' not null'}>"
    return str(type_)


_WHOLE: Final = "the value"
_LACKING: Final = "is lacking"
_LACKING_ONLY: Final = "is lacking;"
_OF_NO_TYPE: Final = (
    *("is there twice", "a key is there twice", "is null"),
    *("is not UTF-8", "is not JSON", "is nested deeper", "more follows"),
)
"""Rules that say nothing of a field's type."""
_WIDER: Final = {
    "is the number of an enum": "int",
    "is no text of a time": "json",
    "is no text": "string(number)",
    "does not fit into 8 bits": "long",
    "does not fit into 16 bits": "long",
    "does not fit into 32 bits": "long",
    "is a moment before 1970": "decimal(20,9)",
    "is no date as": "string",
    "is no time of day as": "string",
    "is no time as": "string",
    "is no moment as": "string",
    "is not base64": "string",
}
"""What JSON holds, by how the rule begins. Of others, `json` takes anything."""
_UNQUOTABLE: Final = {"'", '"', "\n", "\\"}
"""A message writes declarations in quotes."""
