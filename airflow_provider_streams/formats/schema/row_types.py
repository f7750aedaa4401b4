"""The column types of a schema's payloads. Planning uses this module, so it loads neither Arrow nor numpy."""

from __future__ import annotations

import json
from typing import Final

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.formats.avro import columns as avro_columns
from airflow_provider_streams.formats.avro.reader_names import renamed_for_reader
from airflow_provider_streams.formats.schema.field_aliases import renamed
from airflow_provider_streams.model.schema import avro_schema
from airflow_provider_streams.model.schema.decoding import WriterSchema
from airflow_provider_streams.model.schema.type_json import from_json
from airflow_provider_streams.model.schema.types import Simple, Type

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
of days or of times of day would cut them, by an unknown zone."""


def type_of(schema: WriterSchema, reader: WriterSchema | None = None) -> Type:
    """The type of values; for `key_value`, of its value.

    Args:
        schema: the writer's schema.
        reader: the schema whose names the columns have, such as the newest version; None: the writer's own.

    Raises:
        InvalidSchema: it decodes no rows.
        MissingDependency: Protobuf's runtime is not installed.
        Ambiguous: several fields of the writer would become one of the reader.
    """
    known = naming(schema, reader)
    match schema.format:
        case "avro":
            parsed = avro_schema.parse(schema.schema)
            return avro_columns.row_type(
                renamed_for_reader(avro_schema.parse(known.schema), parsed) if known else parsed
            )
        case "json":
            own = _json(schema.schema)
            return renamed(own, _json(known.schema)) if known else own
        case "protobuf":
            from airflow_provider_streams.formats.protobuf.columns import row_type  # noqa: PLC0415  # an extra

            return row_type(schema, known)
        case "key_value":
            return type_of(parts_of(schema)[1], parts_of(known)[1] if known else None)
    return Simple(SINGLE[schema.format])


def key_type_of(schema: WriterSchema, reader: WriterSchema | None = None) -> Type | None:
    """The type of a `key_value` schema's keys; None: the schema has no keys."""
    if schema.format != "key_value":
        return None
    known = naming(schema, reader)
    return type_of(parts_of(schema)[0], parts_of(known)[0] if known else None)


def naming(schema: WriterSchema, reader: WriterSchema | None) -> WriterSchema | None:
    """The reader's schema, if it can name the writer's fields; None: the writer's own names stay."""
    return reader if reader is not None and reader.format == schema.format and reader != schema else None


def parts_of(schema: WriterSchema) -> tuple[WriterSchema, WriterSchema]:
    """The schemas of a `key_value` schema's key and value.

    Raises:
        InvalidSchema: it lacks them, or one of them is `key_value` itself.
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
