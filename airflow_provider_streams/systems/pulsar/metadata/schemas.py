"""Pulsar's schemas, version by version, as this package reads the payloads that were written with them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.formats.json.columns import of_avro_style, of_json_schema
from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of
from airflow_provider_streams.model.schema.change_payload import ChangePayload, Debezium
from airflow_provider_streams.model.schema.decoding import ANY_VERSION, Decoding, WriterSchema
from airflow_provider_streams.model.schema.payload import Auto
from airflow_provider_streams.model.schema.record_types import NO_NAME, RecordName
from airflow_provider_streams.model.schema.types import Simple
from airflow_provider_streams.model.window.window import moment_of_ms
from airflow_provider_streams.systems.pulsar.client.admin import requests
from airflow_provider_streams.systems.pulsar.client.admin.responses import StoredSchema
from airflow_provider_streams.systems.pulsar.client.protobuf import write_varint
from airflow_provider_streams.systems.pulsar.client.queries import Question, Topic, by_shard, topics_of
from airflow_provider_streams.systems.pulsar.metadata.names import parent_of
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.schemas import (
    Compatibility,
    OfferedSchema,
    SchemaVersion,
    Versions,
    known_of,
    made_of,
    record_name,
    types_of,
)

_SINGLE: Final = {
    **{name.upper(): name for name in ("bytes", "boolean", "int8", "int16", "int32", "int64", "float", "double")},
    **{name.upper(): name for name in ("date", "time", "timestamp", "instant")},
    **{name.upper(): name for name in ("local_date", "local_time", "local_date_time")},
    "STRING": "utf8",
}
"""Types of single values, and our names of their formats."""

_KINDS: Final = {"protobuf": "PROTOBUF_NATIVE", "utf8": "STRING"}
"""Formats whose type has another name."""

_JSON_SCHEMA: Final = ("object", "integer", "number")
"""Types of JSON Schema that Avro does not have."""

_NOTHING: Final = frozenset({"NONE", "AUTO", "AUTO_CONSUME", "AUTO_PUBLISH"})
"""Types that say nothing about payloads."""

_PARSING_INFO: Final = "__PARSING_INFO__"
_FIELD_TYPES: Final = {
    "DOUBLE": 1, "FLOAT": 2, "INT64": 3, "UINT64": 4, "INT32": 5, "FIXED64": 6, "FIXED32": 7, "BOOL": 8, "STRING": 9,
    "BYTES": 12, "UINT32": 13, "ENUM": 5, "SFIXED32": 15, "SFIXED64": 16, "SINT32": 17, "SINT64": 18,
}  # fmt: skip
"""The numbers of types in descriptors; an enum is read as its number on the wire."""
_REPEATED: Final = {"LABEL_REPEATED": 3}
_HINT: Final = "Give the descriptor: value=Protobuf(descriptor, message); or read bytes with value=Bytes()."


def versions_of(shards: Iterable[str]) -> Question[Versions]:
    """Every version of the schemas of topics, by their names `tenant/namespace/topic`; one request per topic.

    Args:
        shards: topics, or partitions, which share their topic's schemas.
    """
    found = yield from by_shard(dict.fromkeys(map(parent_of, shards)), requests.schemas)
    return {
        topic.removeprefix("persistent://"): tuple(
            version_of(one) for one in stored or () if one.type.upper() not in _NOTHING
        )
        for topic, stored in found.items()
    }


def of_source(source: PulsarSource) -> Question[Versions]:
    """Every version of the schema of each of a source's topics; raises as `topics_of`."""
    topics = yield from topics_of(source)
    return (yield from versions_of(topic.name for topic in topics))


def decoding_for(source: PulsarSource, shards: Iterable[str]) -> Question[Decoding | None]:
    """How the payloads of a source become columns; None: it decodes none.

    Raises:
        IncompatibleSchemas: topics whose rows cannot have the same columns.
        InvalidSchema: a schema that no row can be decoded by.
    """
    if source.value is None and source.key_payload is None:
        return None
    if isinstance(source.value, ChangePayload):
        return _before_changes(source.value, (yield from versions_of(shards)))
    if not isinstance(source.value, Auto):
        return decoding_of(source.value, source.key_payload, {})
    found = yield from versions_of(shards)
    types = types_of(found, source.value, source.key_payload)
    decoding = decoding_of(source.value, source.key_payload, known_of(found, types), "message", types)
    return replace(decoding, made=made_of(found))


def _before_changes(payload: ChangePayload, found: Versions) -> Decoding | None:
    """How payloads become columns before they are changes; None: they are JSON.

    Raises:
        InvalidSchema, IncompatibleSchemas, MultipleRecordTypes: not all topics are written in one way.
    """
    writers = {name: versions[-1].writer if versions else None for name, versions in found.items()}
    values = [one.parts[1] if one and one.parts else one for one in writers.values()]
    may_be_typed = isinstance(payload, Debezium) and payload.values == "auto"
    if may_be_typed and any(one and one.format == "avro" for one in values):
        auto = Auto()
        types = types_of(found, auto)
        decoding = decoding_of(auto, None, known_of(found, types), "message", types)
        return replace(decoding, made=made_of(found))
    paired = {name: {ANY_VERSION: one} for name, one in writers.items() if one and one.parts and one.inline}
    if not paired:
        return None
    if len(paired) < len(writers):
        alone = min(writers.keys() - paired.keys())
        reason = f"{next(iter(paired))} has keys and values in one payload, and {alone} has not"
        raise InvalidSchema(f"value={payload.format}", reason, "Read these topics as separate sources.")
    return Decoding(Simple("binary"), None, paired)


def fits(topics: Iterable[Topic], offered: OfferedSchema) -> Question[dict[str, Compatibility]]:
    """Whether each topic would accept a schema in addition to its present ones."""
    kind = _KINDS.get(offered.kind.lower(), offered.kind.upper())
    return (
        yield from by_shard(
            [parent_of(topic.name) for topic in topics],
            lambda name: requests.compatibility(name, kind, offered.text, offered.properties),
        )
    )


def version_of(stored: StoredSchema) -> SchemaVersion:
    """One version, as plans pin it."""
    writer, problem = None, None
    try:
        writer = writer_of(stored.type, stored.data, stored.properties)
    except InvalidSchema as error:
        problem = error
    made = moment_of_ms(stored.timestamp_ms) if stored.timestamp_ms else None
    record, key_record = _records(stored, writer)
    return SchemaVersion(
        str(stored.version),
        stored.type,
        stored.data,
        writer,
        problem,
        made,
        details={name: stored.properties[name] for name in _SHOWN if name in stored.properties},
        record=record,
        key_record=key_record,
    )


_SHOWN: Final = ("key.schema.type", "value.schema.type", "kv.encoding.type")


def _records(stored: StoredSchema, writer: WriterSchema | None) -> tuple[RecordName, RecordName]:
    """The names of the records of a schema's values, and of its keys."""
    if stored.type.upper() != "KEY_VALUE":
        return _record(stored.type, stored.data, writer), NO_NAME
    if writer is None or writer.parts is None:
        return NO_NAME, NO_NAME
    values = _object(stored.data, "KEY_VALUE")
    key, value = (
        _record(stored.properties[f"{name}.schema.type"], _as_text(values.get(name)), part)
        for name, part in zip(("key", "value"), writer.parts, strict=True)
    )
    return value, key


def _record(type_: str, data: str, writer: WriterSchema | None) -> RecordName:
    if type_.upper() in ("AVRO", "JSON"):
        return record_name(data)
    if writer is None or writer.format in ("avro", "json", "protobuf"):
        return RecordName(writer.message) if writer is not None else NO_NAME
    return RecordName(type_.lower(), is_record=False)


def writer_of(type_: str, data: str, properties: Mapping[str, str]) -> WriterSchema:
    """The schema that payloads were written with, from Pulsar's type, text and properties of it.

    Raises:
        InvalidSchema: this package cannot read such payloads.
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
            return _parsed_protobuf(data, properties)
        case "KEY_VALUE":
            return _key_value(data, properties)
    raise InvalidSchema(type_, "this release cannot read schemas of this type")


def _json(data: str) -> WriterSchema:
    """JSON values have an Avro schema; the oldest clients wrote JSON Schema."""
    try:
        values = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidSchema("JSON", f"its text is not JSON ({type(error).__name__})") from error
    if isinstance(values, list):
        raise InvalidSchema("JSON", "it is a union, and values in JSON do not say their branch")
    is_json_schema = isinstance(values, dict) and (values.get("type") in _JSON_SCHEMA or "$schema" in values)
    return of_json_schema(data) if is_json_schema else of_avro_style(data)


def _native_protobuf(data: str) -> WriterSchema:
    values = _object(data, "PROTOBUF_NATIVE")
    try:
        return WriterSchema("protobuf", values["fileDescriptorSet"], message=values["rootMessageTypeName"])
    except KeyError as error:
        raise InvalidSchema("PROTOBUF_NATIVE", "it has no descriptor, or names no message") from error


def _parsed_protobuf(data: str, properties: Mapping[str, str]) -> WriterSchema:
    """A schema of type PROTOBUF: an Avro schema, with the field numbers of the outermost message in a property.

    Pulsar's Java client writes `[{"number", "name", "type", "label"}, ..]`. It tells neither the numbers of messages
    inside the message, nor those of an enum's symbols.
    """
    try:
        record, fields = json.loads(data), json.loads(properties[_PARSING_INFO])
        name, package = str(record["name"]), str(record.get("namespace") or "")
        made = b"".join(_text(2, _field(one)) for one in fields)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        if isinstance(error, InvalidSchema):
            raise
        raise InvalidSchema("PROTOBUF", "the broker does not tell its fields' numbers", _HINT) from error
    # the namespace is the package's name in Java, and a class within a class has a dollar sign
    package = package.replace("$", ".").strip(".")
    file = _text(1, b"topic.proto") + _text(2, package.encode()) + _text(4, _text(1, name.encode()) + made)
    descriptor = base64.b64encode(_text(1, file + _text(12, b"proto3"))).decode()
    return WriterSchema("protobuf", descriptor, f"{package}.{name}".strip("."))


def _field(told: Mapping[str, Any]) -> bytes:
    type_ = str(told["type"])
    if type_ not in _FIELD_TYPES:
        reason = f"the broker does not tell what its field {told['name']!r} holds ({type_})"
        raise InvalidSchema("PROTOBUF", reason, _HINT)
    numbers = {3: int(told["number"]), 4: _REPEATED.get(str(told.get("label")), 1), 5: _FIELD_TYPES[type_]}
    return _text(1, str(told["name"]).encode()) + b"".join(
        write_varint(tag << 3) + write_varint(number) for tag, number in numbers.items()
    )


def _text(field: int, data: bytes) -> bytes:
    return write_varint(field << 3 | 2) + write_varint(len(data)) + data


def _key_value(data: str, properties: Mapping[str, str]) -> WriterSchema:
    values = _object(data, "KEY_VALUE")
    key, value = (_part(name, values.get(name), properties) for name in ("key", "value"))
    inline = properties.get("kv.encoding.type", "INLINE").upper() == "INLINE"
    return WriterSchema("key_value", parts=(key, value), inline=inline)


def _part(name: str, data: Any, properties: Mapping[str, str]) -> WriterSchema:
    type_ = properties.get(f"{name}.schema.type", "")
    if not type_ or type_.upper() == "KEY_VALUE":
        raise InvalidSchema("KEY_VALUE", f"the schema of its {name} is of no type that holds one value: {type_!r}")
    return writer_of(type_, _as_text(data), _object(properties.get(f"{name}.schema.properties") or "{}", "KEY_VALUE"))


def _as_text(data: Any) -> str:
    return data if isinstance(data, str) else json.dumps(data)


def _object(data: str, type_: str) -> dict[str, Any]:
    try:
        values = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidSchema(type_, f"its text is not JSON ({type(error).__name__})") from error
    if not isinstance(values, dict):
        raise InvalidSchema(type_, "its text is no JSON object")
    return values
