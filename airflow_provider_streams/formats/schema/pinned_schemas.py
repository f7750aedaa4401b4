"""What a plan pins, of what a user wrote and what a system knows. Values only: no Arrow, no numpy, no network."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import reduce

from airflow_provider_streams.errors import IncompatibleSchemas, InvalidSchema
from airflow_provider_streams.formats.json.columns import Known, as_declared
from airflow_provider_streams.formats.schema.field_aliases import Ambiguous
from airflow_provider_streams.formats.schema.merge_schemas import as_equals, by_newest, is_certain, united_types
from airflow_provider_streams.formats.schema.row_types import key_type_of, type_of
from airflow_provider_streams.formats.schema.types_as_text import united
from airflow_provider_streams.model.schema.ddl import parse_columns
from airflow_provider_streams.model.schema.decoding import (
    ANY_NAME,
    ANY_VERSION,
    Decoding,
    Framing,
    RecordTypes,
    WriterSchema,
    newest_of,
)
from airflow_provider_streams.model.schema.payload import Auto, Avro, Bytes, Json, Payload, Protobuf, Registry, Utf8
from airflow_provider_streams.model.schema.record_types import ONE_TYPE, ReadTypes
from airflow_provider_streams.model.schema.type_json import to_json
from airflow_provider_streams.model.schema.types import Type, empty_records

TypeOf = Callable[[WriterSchema, WriterSchema], Type | None]
"""The type of a version of a schema, with the newest one's names; None: it has no such type."""


def decoding_of(
    value: Payload | None, key: Payload | None, known: Known, framing: Framing = "", types: ReadTypes = ONE_TYPE
) -> Decoding:
    """How payloads become columns: one row type for all schemas, and the schemas themselves.

    Args:
        value: what the user wrote for values; None: they stay bytes.
        key: what the user wrote for keys; None: a key_value schema decides, or they stay as they were stored.
        known: the system's schemas of payloads, by name and version, the oldest first. With `Auto`, a name without any
            version has no schema: it holds bytes. With schemas that the user gave: the names, or nothing.
        framing: where payloads say their version, if the system's schemas are meant.
        types: the record types of the system's schemas. `known` has no versions of types that are not read.

    Raises:
        IncompatibleSchemas: rows of different names cannot have the same columns. A version that does not fit its own
            name's newest one is no error here: its rows are bad later.
        InvalidSchema: a schema decodes no row, a record has no fields, or nothing is known of keys.
        MissingDependency: Protobuf's runtime is not installed.
    """
    if isinstance(key, Auto) and (key.type or key.types or key.version or key.as_text):
        raise InvalidSchema("key=Auto(..)", "types, versions and text are those of values", "Say it in value.")
    if isinstance(value, Auto | Registry):
        schemas: Known = {
            name: {ANY_VERSION: WriterSchema("bytes")} if not versions and not types.of.get(name) else dict(versions)
            for name, versions in known.items()
        }
        if not schemas:
            raise InvalidSchema(f"value={value.format!r}", "the system told no schema")
        declared = parse_columns(value.fields) if isinstance(value, Auto) and value.fields else None
        schemas = as_declared(schemas, declared, strict=value.refuse_unmatched)
        schemas = _with_leading(value.version, schemas)
    else:
        framing, types = "", ONE_TYPE
        schemas = {name: {ANY_VERSION: given(value)} for name in (known or (ANY_NAME,))}
    key_schema = None if key is None or isinstance(key, Auto) else given(key)
    is_text = isinstance(value, Auto | Registry) and value.as_text
    columns = _by_type(schemas, types, united if is_text else _fitting)
    several = len(columns) > 1 or types.is_column
    united_value = united_types(columns, with_column=types.is_column) if several else next(iter(columns.values()))
    key_type = _key(key, key_schema, schemas)
    _refuse_empty(united_value, "")
    _refuse_empty(key_type, "the key: ")
    told = RecordTypes(types.of, columns, types.is_column) if several or types.is_chosen else None
    return Decoding(united_value, key_type, schemas, framing, key_schema, types=told, as_text=is_text)


def _with_leading(version: str, schemas: Known) -> Known:
    """The schemas with a version in the newest one's place, whose columns it decides; empty: they are unchanged.

    Raises:
        InvalidSchema: no name has such a version.
    """
    known = dict.fromkeys(one for versions in schemas.values() for one in versions)
    if version and version not in known:
        raise InvalidSchema(f"version={version!r}", f"there are only {', '.join(known)}", "Name one of them.")
    return {
        name: dict(sorted(versions.items(), key=lambda one: one[0] == version)) for name, versions in schemas.items()
    }


def given(payload: Payload | None) -> WriterSchema:
    """The writer's schema of a payload that the user described completely.

    Raises:
        InvalidSchema: the payload needs the system's schemas.
    """
    match payload:
        case None | Bytes():
            return WriterSchema("bytes")
        case Utf8():
            return WriterSchema("utf8")
        case Json(columns, strict):
            row = json.dumps(to_json(parse_columns(columns)), separators=(",", ":"))
            return WriterSchema("json", row, strict=strict)
        case Avro(schema):
            return WriterSchema("avro", schema)
        case Protobuf(descriptor, message):
            return WriterSchema("protobuf", descriptor, message)
    raise InvalidSchema(
        f"key={payload.format!r}", "only values have it", "Write Utf8(), Bytes(), Json(..), Avro(..) or Protobuf(..)."
    )


def _refuse_empty(type_: Type | None, what: str) -> None:
    """Refuse a record without fields: Spark writes no table with it."""
    if type_ is not None and (path := next(empty_records(type_), None)):
        raise InvalidSchema(f"{what}{path}", "it is a record without fields, which no table can hold")


def _key(key: Payload | None, schema: WriterSchema | None, schemas: Known) -> Type | None:
    if schema is not None:
        return type_of(schema)
    found = {name: _of_versions(versions, key_type_of, _fitting) for name, versions in schemas.items()}
    lacking = [name for name, type_ in found.items() if type_ is None]
    if lacking and len(lacking) < len(found):
        raise IncompatibleSchemas([f"{lacking[0]}: its keys have no schema, those of others have"])
    if lacking and isinstance(key, Auto):
        raise InvalidSchema("key='auto'", f"{lacking[0]} says nothing of its keys", "Write key=Utf8() or key=Bytes().")
    return None if lacking else _united(found, "key: ")


def _by_type(schemas: Known, types: ReadTypes, fit: Callable[[Type, Type], Type]) -> dict[str, Type]:
    """The columns of each type, of its versions alone."""
    versions_of: dict[str, dict[str, dict[str, WriterSchema]]] = {}
    for name, versions in schemas.items():
        for version, schema in versions.items():
            versions_of.setdefault(types.type_of(name, version), {}).setdefault(name, {})[version] = schema
    found = {
        type_: _united({name: _of_versions(versions, type_of, fit) for name, versions in names.items()}, "")
        for type_, names in versions_of.items()
    }
    return {type_: columns for type_, columns in found.items() if columns is not None}


def _of_versions(versions: Mapping[str, WriterSchema], of: TypeOf, fit: Callable[[Type, Type], Type]) -> Type | None:
    """The newest's columns, wide enough for all versions that fit it."""
    types: list[Type] = []
    for version in reversed(tuple(versions)):
        try:
            type_ = of(versions[version], newest_of(versions))
        except Ambiguous:
            continue
        types += [] if type_ is None else [type_]
    return reduce(fit, types) if types else None


def _fitting(newest: Type, older: Type) -> Type:
    """The newest's columns. A version does not widen them if all its rows are bad."""
    return newest if is_certain(newest, older) else by_newest(newest, older)[0]


def _united(types: Mapping[str, Type | None], what: str) -> Type | None:
    """The columns of all names. Raises IncompatibleSchemas if there are none."""
    names = [(name, type_) for name, type_ in types.items() if type_ is not None]
    if not names:
        return None
    (first, result), *others = names
    differences: list[str] = []
    for name, type_ in others:
        result, found = as_equals(result, type_)
        differences += [f"{what}{one} ({first} and {name})" for one in found]
    if differences:
        raise IncompatibleSchemas(differences)
    return result
