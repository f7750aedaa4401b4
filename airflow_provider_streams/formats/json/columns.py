"""What systems say of JSON payloads, as the row type that a plan pins. No Arrow, no numpy.

| JSON Schema | column |
|---|---|
| boolean, integer, number, string | boolean, long, double, string |
| integer or number of format `utc-millisec` | timestamp, as milliseconds |
| object with properties; with additionalProperties only | struct; map |
| array | array |
| a type or null | that type, nullable |
"""

from __future__ import annotations

import json
from typing import Any, Final

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.formats.avro.columns import branches_with_values, row_type, widened
from airflow_provider_streams.formats.json.references import without_references
from airflow_provider_streams.model import avro_schema
from airflow_provider_streams.model.avro_schema import Array, Map, Record, Recursive, Schema, Union
from airflow_provider_streams.model.decoding import WriterSchema
from airflow_provider_streams.model.row_type import (
    MISSING,
    MOST_DEPTH,
    ArrayOf,
    Field,
    MapOf,
    Simple,
    StructOf,
    Type,
    to_json,
)


def of_avro_style(schema: str) -> WriterSchema:
    """Of Pulsar's JSON schemas: an Avro schema says what the objects hold.

    Times are numbers of the logical type's unit (or ISO 8601), bytes are base64, a union's value has no name around it.

    Raises:
        InvalidSchema: no Avro schema, or one whose JSON says not what it holds: a union of several types, a type inside
            itself.
    """
    parsed = avro_schema.parse(schema)
    _check(parsed)
    return _written(row_type(parsed))


def of_json_schema(schema: str) -> WriterSchema:
    """Of the Schema Registry's JSON groups: a JSON Schema, as Jackson writes it.

    Raises:
        InvalidSchema: not JSON, or of no rows that we could name.
    """
    try:
        data = json.loads(schema)
    except (ValueError, RecursionError) as error:
        raise InvalidSchema("JSON Schema", f"its text is not JSON ({error})", _HINT) from None
    return _written(_type(without_references(data), "", 0))


def _written(type_: Type) -> WriterSchema:
    return WriterSchema("json", json.dumps(to_json(type_), separators=(",", ":")))


def _check(schema: Schema) -> None:
    match schema:
        case Array(inner) | Map(inner):
            _check(inner)
        case Record(_, fields):
            for one in fields:
                _check(one.schema)
        case Union():
            branches = branches_with_values(schema)
            if len(branches) > 1 and not widened(branches):
                raise InvalidSchema("JSON", "a union of several types: its values do not say which they are", _HINT)
            for branch in branches:
                _check(branch)
        case Recursive(name):
            raise InvalidSchema("JSON", f"{name} is inside itself", _HINT)


def _type(data: Any, path: str, depth: int) -> Type:
    if depth > MOST_DEPTH or not isinstance(data, dict):
        raise InvalidSchema("JSON Schema", f"{path or 'the value'} is of no type", _HINT)
    kinds = _kinds(data)
    if len(kinds) != 1:
        raise InvalidSchema("JSON Schema", f"{path or 'the value'} is of {len(kinds)} types", _HINT)
    match kinds[0]:
        case "object":
            return _object(data, path, depth)
        case "array":
            return ArrayOf(_type(data.get("items"), f"{path}[]", depth + 1))
        case "integer" | "number" if data.get("format") == "utc-millisec":
            return Simple("timestamp", "ms")
        case str(kind) if kind in _SIMPLE:
            return Simple(_SIMPLE[kind])
    raise InvalidSchema("JSON Schema", f"{path or 'the value'} is of type {kinds[0]!r:.40}", _HINT)


def _object(data: dict[str, Any], path: str, depth: int) -> Type:
    properties, others = data.get("properties"), data.get("additionalProperties")
    if isinstance(properties, dict) and properties:
        required = data.get("required")
        names = required if isinstance(required, list) else ()
        return StructOf(tuple(_field(name, one, name in names, path, depth) for name, one in properties.items()))
    return MapOf(Simple("string"), _type(others, f"{path}{{}}", depth + 1))


def _field(name: str, data: Any, named: bool, path: str, depth: int) -> Field:  # noqa: FBT001  # one of its facts
    type_ = _type(data, f"{path}.{name}" if path else name, depth + 1)
    required = (named or data.get("required") is True) and "null" not in _all_kinds(data)
    return Field(name, type_, nullable=not required, default=MISSING if required else None)


def _kinds(data: dict[str, Any]) -> list[Any]:
    return [kind for kind in _all_kinds(data) if kind != "null"]


def _all_kinds(data: dict[str, Any]) -> list[Any]:
    kinds = data.get("type")
    return kinds if isinstance(kinds, list) else [kinds]


_HINT: Final = "Name the columns with value=Json('..'), or read bytes with value=Bytes()."
_SIMPLE: Final = {"boolean": "boolean", "integer": "long", "number": "double", "string": "string"}
