"""What payloads of a topic were written with: Pulsar's schemas, version by version, as this package reads them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.formats.json.columns import of_avro_style, of_json_schema
from airflow_provider_streams.formats.resolve import decoding_of
from airflow_provider_streams.model.decoding import Decoding, WriterSchema
from airflow_provider_streams.model.payload import Auto
from airflow_provider_streams.model.window import moment_of_ms
from airflow_provider_streams.systems.pulsar.admin import schemas as requests
from airflow_provider_streams.systems.pulsar.admin.schemas import StoredSchema
from airflow_provider_streams.systems.pulsar.names import parent_of
from airflow_provider_streams.systems.pulsar.parsing_info import descriptor_of
from airflow_provider_streams.systems.pulsar.questions import Question, Topic, topics_of
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.schemas import (
    Compatibility,
    OfferedSchema,
    SchemaVersion,
    Versions,
    known_of,
    made_of,
)

_SINGLE: Final[dict[str, str]] = {
    "BYTES": "bytes",
    "STRING": "utf8",
    "BOOLEAN": "boolean",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "FLOAT": "float",
    "DOUBLE": "double",
    "DATE": "date",
    "TIME": "time",
    "TIMESTAMP": "timestamp",
    "INSTANT": "instant",
    "LOCAL_DATE": "local_date",
    "LOCAL_TIME": "local_time",
    "LOCAL_DATE_TIME": "local_date_time",
}
"""Types of single values, and our names of their formats."""

_KINDS: Final = {"protobuf": "PROTOBUF_NATIVE", "utf8": "STRING"}
"""Formats whose type is of another name."""

_NOTHING: Final = frozenset({"NONE", "AUTO", "AUTO_CONSUME", "AUTO_PUBLISH"})
"""Types that say nothing of payloads."""


def versions_of(shards: Iterable[str]) -> Question[Versions]:
    """Every version of the schemas of topics, by their names `tenant/namespace/topic`; one request a topic.

    Args:
        shards: topics, or partitions of them: these share their topic's schemas.
    """
    topics = list(dict.fromkeys(map(parent_of, shards)))
    found = yield [requests.schemas(topic) for topic in topics]
    return {
        topic.removeprefix("persistent://"): tuple(
            version_of(one) for one in stored or () if one.type.upper() not in _NOTHING
        )
        for topic, stored in zip(topics, found, strict=True)
    }


def of_source(source: PulsarSource) -> Question[Versions]:
    """Every version of the schema of each of a source's topics.

    Raises:
        SourceNotFound: a topic does not exist, or nothing matches the pattern.
    """
    topics = yield from topics_of(source)
    return (yield from versions_of(topic.name for topic in topics))


def decoding_for(source: PulsarSource, shards: Iterable[str]) -> Question[Decoding | None]:
    """How the payloads of a source become columns; None: they do not.

    Raises:
        SchemasDiffer: topics whose rows cannot have the same columns.
        InvalidSchema: a schema that no row can be decoded by.
    """
    if source.value is None and source.key_payload is None:
        return None
    if not isinstance(source.value, Auto):
        return decoding_of(source.value, source.key_payload, {})
    found = yield from versions_of(shards)
    decoding = decoding_of(source.value, source.key_payload, known_of(found), "message")
    return replace(decoding, made=made_of(found))


def fits(topics: Iterable[Topic], offered: OfferedSchema) -> Question[dict[str, Compatibility]]:
    """Whether each topic would take a schema beside those that it has."""
    names = [parent_of(topic.name) for topic in topics]
    kind = _KINDS.get(offered.kind.lower(), offered.kind.upper())
    found = yield [requests.compatibility(name, kind, offered.text, offered.properties) for name in names]
    return dict(zip(names, found, strict=True))


def version_of(stored: StoredSchema) -> SchemaVersion:
    """One version, as plans pin it."""
    writer, problem = None, None
    try:
        writer = writer_of(stored.type, stored.data, stored.properties)
    except InvalidSchema as error:
        problem = error
    made = moment_of_ms(stored.timestamp_ms) if stored.timestamp_ms else None
    return SchemaVersion(str(stored.version), stored.type, stored.data, writer, problem, made, details=_details(stored))


def writer_of(type_: str, data: str, properties: Mapping[str, str]) -> WriterSchema:
    """What payloads of a schema were written with.

    Args:
        type_: Pulsar's name of the schema's type.
        data: the schema as the admin API tells it.
        properties: of the schema.

    Raises:
        InvalidSchema: nothing can read them.
    """
    kind = type_.upper()
    if kind in _SINGLE:
        return WriterSchema(_SINGLE[kind])
    match kind:
        case "AVRO":
            return WriterSchema("avro", data)
        case "JSON":
            return _json(data)
        case "PROTOBUF_NATIVE":
            return _native_protobuf(data)
        case "PROTOBUF":
            return WriterSchema("protobuf", *descriptor_of(data, properties))
        case "KEY_VALUE":
            return _key_value(data, properties)
    raise InvalidSchema(type_, "this release cannot read schemas of this type")


def _json(data: str) -> WriterSchema:
    """JSON objects have Avro's kind of schema; the oldest clients wrote JSON Schema."""
    return of_avro_style(data) if "fields" in _object(data, "JSON") else of_json_schema(data)


def _native_protobuf(data: str) -> WriterSchema:
    values = _object(data, "PROTOBUF_NATIVE")
    try:
        return WriterSchema("protobuf", values["fileDescriptorSet"], message=values["rootMessageTypeName"])
    except KeyError as error:
        raise InvalidSchema("PROTOBUF_NATIVE", "it has no descriptor, or names no message") from error


def _key_value(data: str, properties: Mapping[str, str]) -> WriterSchema:
    values = _object(data, "KEY_VALUE")
    key, value = (_part(name, values.get(name), properties) for name in ("key", "value"))
    inline = properties.get("kv.encoding.type", "INLINE").upper() == "INLINE"
    return WriterSchema("key_value", parts=(key, value), inline=inline)


def _part(name: str, data: Any, properties: Mapping[str, str]) -> WriterSchema:
    type_ = properties.get(f"{name}.schema.type", "")
    if not type_ or type_.upper() == "KEY_VALUE":
        raise InvalidSchema("KEY_VALUE", f"the schema of its {name} is of no type that holds one value: {type_!r}")
    text = data if isinstance(data, str) else json.dumps(data)
    return writer_of(type_, text, _object(properties.get(f"{name}.schema.properties") or "{}", "KEY_VALUE"))


def _object(data: str, type_: str) -> dict[str, Any]:
    try:
        values = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidSchema(type_, f"its text is not JSON ({type(error).__name__})") from error
    if not isinstance(values, dict):
        raise InvalidSchema(type_, "its text is no JSON object")
    return values


def _details(stored: StoredSchema) -> dict[str, str]:
    shown = ("key.schema.type", "value.schema.type", "kv.encoding.type")
    return {name: stored.properties[name] for name in shown if name in stored.properties}
