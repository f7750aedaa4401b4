"""The row type of a JSON Schema.

| JSON Schema | column |
|---|---|
| boolean, integer, number, string | boolean, long, double, string |
| integer or number of format `utc-millisec` | timestamp, as milliseconds |
| object with properties; with additionalProperties only | struct; map |
| array | array |
| a type or null | that type, nullable |

Jackson writes a type once, and then refers to its id: references are replaced by their types first.
"""

from __future__ import annotations

import json
from typing import Any, Final

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.model.schema.type_table import MOST_DEPTH, MOST_LEAVES
from airflow_provider_streams.model.schema.types import MISSING, ArrayOf, Field, MapOf, Simple, StructOf, Type, below


def json_schema_type(schema: str) -> Type:
    """The type of the objects of a JSON Schema, as Jackson writes it.

    Raises:
        InvalidSchema: it is not JSON, or has no rows with names.
    """
    try:
        data = json.loads(schema)
    except (ValueError, RecursionError) as error:
        raise _wrong(f"its text is not JSON ({error})") from None
    return _type(_Unfolding(data).value(data, (), 0), "", 0)


def _type(data: Any, path: str, depth: int) -> Type:
    if depth > MOST_DEPTH or not isinstance(data, dict):
        raise _wrong(f"{path or 'the value'} is of no type")
    kinds = [kind for kind in _all_kinds(data) if kind != "null"]
    if len(kinds) != 1:
        raise _wrong(f"{path or 'the value'} is of {len(kinds)} types")
    match kinds[0]:
        case "object":
            return _object(data, path, depth)
        case "array":
            return ArrayOf(_type(data.get("items"), f"{path}[]", depth + 1))
        case "integer" | "number" if data.get("format") == "utc-millisec":
            return Simple("timestamp", "ms")
        case str(kind) if kind in _SIMPLE:
            return Simple(_SIMPLE[kind])
    raise _wrong(f"{path or 'the value'} is of type {kinds[0]!r:.40}")


def _object(data: dict[str, Any], path: str, depth: int) -> Type:
    properties, others = data.get("properties"), data.get("additionalProperties")
    if isinstance(properties, dict) and properties:
        required = data.get("required")
        names = required if isinstance(required, list) else ()
        return StructOf(tuple(_field(name, one, name in names, path, depth) for name, one in properties.items()))
    return MapOf(Simple("string"), _type(others, f"{path}{{}}", depth + 1))


def _field(name: str, data: Any, named: bool, path: str, depth: int) -> Field:  # noqa: FBT001  # one of its facts
    type_ = _type(data, below(path, name), depth + 1)
    required = (named or data.get("required") is True) and "null" not in _all_kinds(data)
    return Field(name, type_, nullable=not required, default=MISSING if required else None)


def _wrong(reason: str) -> InvalidSchema:
    return InvalidSchema(
        "JSON Schema", reason, "Name the columns with value=Json('..'), or read bytes with value=Bytes()."
    )


def _all_kinds(data: dict[str, Any]) -> list[Any]:
    kinds = data.get("type")
    return kinds if isinstance(kinds, list) else [kinds]


class _Unfolding:
    """Replaces references, and counts the values that it makes."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._made = 0

    def value(self, data: Any, inside: tuple[str, ...], depth: int) -> Any:
        self._made += 1
        if self._made > _MOST or depth > _MOST_LEVELS:
            raise _wrong("its types unfold to too many")
        if isinstance(data, list):
            return [self.value(one, inside, depth + 1) for one in data]
        if not isinstance(data, dict):
            return data
        reference = data.get("$ref")
        if isinstance(reference, str):
            if reference in inside:
                raise _wrong(f"{reference} is inside itself")
            return self.value(self._meant(reference), (*inside, reference), depth + 1)
        own = data.get("id")
        within = (*inside, own) if isinstance(own, str) else inside
        return {name: self.value(one, within, depth + 1) for name, one in data.items() if name not in _ASIDE}

    def _meant(self, reference: str) -> Any:
        """The schema at a path from the root, or with an `id`."""
        found = _at(self._root, reference) if reference.startswith("#") else _with_id(self._root, reference)
        if found is None:
            raise _wrong(f"nothing in it is {reference!r:.80}")
        return found


def _at(root: Any, reference: str) -> Any:
    found = root
    for name in filter(None, reference.removeprefix("#").split("/")):
        found = found.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found


def _with_id(root: Any, wanted: str) -> Any:
    """The outermost schema with an id."""
    level = [root]
    while level:
        inner: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                if "$ref" not in one and wanted in (one.get("id"), one.get("$id")):
                    return one
                inner += one.values()
            elif isinstance(one, list):
                inner += one
        level = inner
    return None


_SIMPLE: Final = {"boolean": "boolean", "integer": "long", "number": "double", "string": "string"}
_ASIDE: Final = frozenset({"definitions", "$defs"})
"""Types for references: they are no part of the value."""
_MOST: Final = 20 * MOST_LEAVES
_MOST_LEVELS: Final = 4 * MOST_DEPTH
"""A schema writes several levels of JSON for one of its types."""
