"""What payloads of a schema become as columns. Neither Arrow nor numpy is loaded for it: planning asks it."""

from __future__ import annotations

import json
from typing import Final

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.formats.avro import columns as avro_columns
from airflow_provider_streams.model import avro_schema
from airflow_provider_streams.model.decoding import WriterSchema
from airflow_provider_streams.model.row_type import Simple, Type, from_json

SINGLE: Final[dict[str, str]] = {
    "bytes": "binary",
    "utf8": "string",
    "boolean": "boolean",
    "int8": "byte",
    "int16": "short",
    "int32": "int",
    "int64": "long",
    "float": "float",
    "double": "double",
    "date": "timestamp",
    "time": "timestamp",
    "timestamp": "timestamp",
    "instant": "timestamp",
    "local_date": "date",
    "local_time": "time",
    "local_date_time": "timestamp_ntz",
}
"""Formats of single values, and the column of each. Java's `Date` and `Time` are moments, to the millisecond: a column
of days or of times of day would cut them, by a zone that nobody wrote down."""


def type_of(schema: WriterSchema) -> Type:
    """The type of values; of `key_value`, of its value.

    Raises:
        InvalidSchema: no rows can be decoded by it.
        MissingDependency: of `protobuf`, its runtime is not installed.
    """
    match schema.format:
        case "avro":
            return avro_columns.row_type(avro_schema.parse(schema.schema))
        case "json":
            return _json(schema.schema)
        case "protobuf":
            from airflow_provider_streams.formats.protobuf.columns import row_type  # noqa: PLC0415  # an extra

            return row_type(schema.schema, schema.message)
        case "key_value":
            return type_of(parts_of(schema)[1])
    return Simple(SINGLE[schema.format])


def key_type_of(schema: WriterSchema) -> Type | None:
    """The type of the keys that `key_value` brings; None: the schema says nothing of keys."""
    return type_of(parts_of(schema)[0]) if schema.format == "key_value" else None


def parts_of(schema: WriterSchema) -> tuple[WriterSchema, WriterSchema]:
    """Key's and value's schema of `key_value`.

    Raises:
        InvalidSchema: it lacks them, or one holds keys and values itself.
    """
    if schema.parts is None or any(part.format == "key_value" for part in schema.parts):
        raise InvalidSchema("key_value", "it needs a schema of keys and one of values, each of one value")
    return schema.parts


def _json(text: str) -> Type:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidSchema("json", f"its row type is not JSON ({error})") from None
    return from_json(data)
