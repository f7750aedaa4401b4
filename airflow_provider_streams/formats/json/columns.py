"""What systems and users say about JSON payloads, as the row type that a plan pins. No Arrow, no numpy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.formats.avro.columns import row_type
from airflow_provider_streams.formats.json.jackson import type_in_json, with_bean_names
from airflow_provider_streams.formats.json.json_schema import json_schema_type
from airflow_provider_streams.model.schema import avro_schema
from airflow_provider_streams.model.schema.decoding import WriterSchema
from airflow_provider_streams.model.schema.type_json import from_json, to_json
from airflow_provider_streams.model.schema.types import MISSING, VALUE, ArrayOf, Field, MapOf, StructOf, Type

Known: TypeAlias = Mapping[str, Mapping[str, WriterSchema]]
"""By name and version."""


def of_avro_style(schema: str) -> WriterSchema:
    """The schema of objects that Pulsar's JSON schemas describe by an Avro schema.

    Times are numbers of the logical type's unit (or ISO 8601), and bytes are base64. A value whose type its JSON does
    not tell (a union of several types) stays JSON, and so does a recursive type.

    Raises:
        InvalidSchema: it is no Avro schema.
    """
    return _written(with_bean_names(row_type(avro_schema.parse(schema), type_in_json)))


def of_json_schema(schema: str) -> WriterSchema:
    """The schema of objects that the Schema Registry's JSON groups describe by a JSON Schema.

    Raises:
        InvalidSchema: it is no JSON Schema of rows with names.
    """
    return _written(json_schema_type(schema))


def as_declared(schemas: Known, declared: StructOf | None, *, strict: bool) -> Known:
    """The schemas, with fields of JSON objects as a user declared them: also whether they may be null.

    Args:
        schemas: the system's schemas.
        declared: the fields; None: none.
        strict: whether objects are refused that have keys without a column, and lack a column's key.

    Raises:
        InvalidSchema: a schema is not JSON, or no version of any schema has a declared field.
    """
    if declared is None and not strict:
        return schemas
    lacking: list[set[str]] = []
    found = {
        name: {version: _declared(name, one, declared, lacking, strict=strict) for version, one in versions.items()}
        for name, versions in schemas.items()
    }
    if lost := set[str].intersection(*lacking) if lacking else set():
        raise InvalidSchema(
            "fields",
            f"no version of the schema has {', '.join(sorted(lost))}",
            "Name what it has. A value that is no object is declared as 'value long'.",
        )
    return found


def _declared(
    name: str, schema: WriterSchema, declared: StructOf | None, lacking: list[set[str]], *, strict: bool
) -> WriterSchema:
    if schema.format == "key_value" and schema.parts:
        key, value = schema.parts
        return replace(schema, parts=(key, _declared(name, value, declared, lacking, strict=strict)))
    if schema.format != "json":
        raise InvalidSchema(
            f"the fields or refuse_unmatched=True of {name}",
            f"they are for JSON, and its schema is of {schema.format}",
        )
    lacking.append(set())
    type_ = from_json(json.loads(schema.schema))
    found = type_ if declared is None else _overridden(type_, declared, lacking[-1])
    return replace(_written(found), codec=schema.codec, strict=strict)


def _overridden(type_: Type, declared: StructOf, lacking: set[str]) -> Type:
    """The type of values as declared. A value that is no object is declared as the field `value`."""
    if isinstance(type_, StructOf):
        return _merged(type_, declared, "", lacking)
    found: Type = type_
    for one in declared.fields:
        if one.name == VALUE and not one.keys:
            found = _merged(type_, one.type, f"{VALUE}.", lacking)
        else:
            lacking.add(" from ".join((one.name, *one.keys)))
    return found


def _merged(type_: Type, declared: Type, path: str, lacking: set[str]) -> Type:
    match type_, declared:
        case StructOf(), StructOf(wanted):
            asked = {one.name: one for one in wanted}
            lacking.update(f"{path}{name}" for name in asked.keys() - {one.name for one in type_.fields})
            fields = [_merged_field(one, asked.get(one.name), path, lacking) for one in type_.fields]
            return replace(type_, fields=tuple(fields))
        case ArrayOf(one), ArrayOf(other):
            return ArrayOf(_merged(one, other, path, lacking))
        case MapOf(_, one), MapOf(key, other):
            return MapOf(key, _merged(one, other, path, lacking))
    return declared


def _merged_field(field: Field, declared: Field | None, path: str, lacking: set[str]) -> Field:
    if declared is None:
        return field
    type_ = _merged(field.type, declared.type, f"{path}{field.name}.", lacking)
    default = field.default if type_ == field.type or field.default is MISSING else None
    keys = declared.keys or field.keys
    return replace(field, type=type_, nullable=declared.nullable, default=default, keys=keys)


def _written(type_: Type) -> WriterSchema:
    return WriterSchema("json", json.dumps(to_json(type_), separators=(",", ":")))
