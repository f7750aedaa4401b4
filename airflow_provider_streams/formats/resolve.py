"""From what a user wrote and what a system knows to what a plan pins. Values only: no Arrow, no numpy, no network."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import reduce

from airflow_provider_streams.errors import InvalidSchema, SchemasDiffer
from airflow_provider_streams.formats.row_types import key_type_of, type_of
from airflow_provider_streams.formats.unite import as_equals, by_newest
from airflow_provider_streams.model.ddl import parse_columns
from airflow_provider_streams.model.decoding import ANY_NAME, ANY_VERSION, Decoding, Framing, WriterSchema
from airflow_provider_streams.model.payload import Auto, Avro, Bytes, Json, Payload, Protobuf, Registry, Utf8
from airflow_provider_streams.model.row_type import Type, empty_records, to_json

Known = Mapping[str, Mapping[str, WriterSchema]]


def decoding_of(value: Payload | None, key: Payload | None, known: Known, framing: Framing = "") -> Decoding:
    """How payloads become columns: the row type of all schemas as one, and the schemas themselves.

    Args:
        value: of values, as the user wrote it; None: they stay bytes.
        key: of keys; None: as a key_value schema says, else as they were stored.
        known: by name, then by version, the oldest first, what the system knows payloads were written with. Names of
            `Auto` without any version have no schema: they hold bytes. Of schemas that the user gave: the names, or
            nothing.
        framing: where payloads say their version, if the system's schemas are meant.

    Raises:
        SchemasDiffer: names whose rows cannot have the same columns. A version that does not fit the newest one of its
            own name is no error here: its rows are bad when they come.
        InvalidSchema: a schema that no row can be decoded by, a record without fields, or nothing is known of keys.
        MissingDependency: of Protobuf, its runtime is not installed.
    """
    if isinstance(value, Auto | Registry):
        schemas = {name: dict(versions) or {ANY_VERSION: WriterSchema("bytes")} for name, versions in known.items()}
        if not schemas:
            raise InvalidSchema(f"value={value.format!r}", "the system told no schema")
    else:
        framing = ""
        schemas = {name: {ANY_VERSION: given(value)} for name in (known or (ANY_NAME,))}
    key_schema = None if key is None or isinstance(key, Auto) else given(key)
    united_value = _united({name: _of_versions(versions, type_of) for name, versions in schemas.items()}, "")
    assert united_value is not None  # noqa: S101  # every schema has a type of values
    key_type = _key(key, key_schema, schemas)
    _refuse_empty(united_value, "")
    _refuse_empty(key_type, "the key: ")
    return Decoding(united_value, key_type, schemas, framing, key_schema)


def given(payload: Payload | None) -> WriterSchema:
    """The writer's schema of a payload that says it all itself.

    Raises:
        InvalidSchema: it says nothing by itself.
    """
    match payload:
        case None | Bytes():
            return WriterSchema("bytes")
        case Utf8():
            return WriterSchema("utf8")
        case Json(columns):
            return WriterSchema("json", json.dumps(to_json(parse_columns(columns)), separators=(",", ":")))
        case Avro(schema):
            return WriterSchema("avro", schema)
        case Protobuf(descriptor, message):
            return WriterSchema("protobuf", descriptor, message)
    raise InvalidSchema(
        f"key={payload.format!r}", "only values have it", "Write Utf8(), Bytes(), Json(..), Avro(..) or Protobuf(..)."
    )


def _refuse_empty(type_: Type | None, what: str) -> None:
    """Spark writes no table with a record that has no fields."""
    if type_ is not None and (path := next(empty_records(type_), None)):
        raise InvalidSchema(f"{what}{path}", "it is a record without fields, which no table can hold")


def _key(key: Payload | None, schema: WriterSchema | None, schemas: Known) -> Type | None:
    if schema is not None:
        return type_of(schema)
    found = {name: _of_versions(versions, key_type_of) for name, versions in schemas.items()}
    lacking = [name for name, type_ in found.items() if type_ is None]
    if lacking and len(lacking) < len(found):
        raise SchemasDiffer([f"{lacking[0]}: its keys have no schema, those of others have"])
    if lacking and isinstance(key, Auto):
        raise InvalidSchema("key='auto'", f"{lacking[0]} says nothing of its keys", "Write key=Utf8() or key=Bytes().")
    return None if lacking else _united(found, "key: ")


def _of_versions(versions: Mapping[str, WriterSchema], of: Callable[[WriterSchema], Type | None]) -> Type | None:
    """The newest's columns, wide enough for all versions that fit it."""
    types = [type_ for version in reversed(tuple(versions)) if (type_ := of(versions[version])) is not None]
    return reduce(_fitting, types) if types else None


def _fitting(newest: Type, older: Type) -> Type:
    both, differences = by_newest(newest, older)
    return newest if differences else both


def _united(types: Mapping[str, Type | None], what: str) -> Type | None:
    """The columns of all names.

    Raises:
        SchemasDiffer: there are none.
    """
    names = [(name, type_) for name, type_ in types.items() if type_ is not None]
    if not names:
        return None
    (first, result), *others = names
    differences: list[str] = []
    for name, type_ in others:
        result, found = as_equals(result, type_)
        differences += [f"{what}{one} ({first} and {name})" for one in found]
    if differences:
        raise SchemasDiffer(differences)
    return result
