"""What events of a group were written with: encodings, as this package reads them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from airflow_provider_streams.errors import InvalidRequest, InvalidSchema
from airflow_provider_streams.formats.json.columns import of_json_schema
from airflow_provider_streams.model import avro_schema
from airflow_provider_streams.model.decoding import ANY_VERSION, WriterSchema
from airflow_provider_streams.model.payload import Registry
from airflow_provider_streams.systems.pravega.registry import requests
from airflow_provider_streams.systems.pravega.registry.answers import FORMATS, Encoding, Registered, SchemaInfo
from airflow_provider_streams.systems.pravega.registry.requests import GroupName
from airflow_provider_streams.systems.rest.request import AnyRequest
from airflow_provider_streams.systems.rules import Rule
from airflow_provider_streams.systems.schemas import Check, Compatibility, OfferedSchema, SchemaVersion

_AT_FIRST: Final = 2
_MOST_AT_ONCE: Final = 16
"""Encodings that are asked for side by side, ever more: nobody tells how many there are."""

_CODECS: Final = {"": "", "application/x-gzip": "gzip", "application/x-snappy-framed": "snappy"}
"""What Java's serializers call them; its snappy is a raw block, whatever its name says."""


def group_of(registry: Registry, stream: str) -> GroupName:
    """The group of a stream, `scope/stream`, by what a source says of its registry."""
    scope, _, name = stream.partition("/")
    return GroupName(registry.namespace or scope, registry.group or name)


def versions_of(name: GroupName, codecs: Mapping[str, str]) -> Rule[list[AnyRequest], tuple[SchemaVersion, ...]]:
    """Every encoding of a group, that of its newest schema last; of a group without any, its schemas.

    Args:
        name: of the group.
        codecs: functions of codecs that are not built in, by the codecs' names.

    Raises:
        SourceNotFound: there is no such group in this namespace.
    """
    at_once = _AT_FIRST
    _there, *found = yield [requests.group(name), *_next(name, 0, at_once)]
    encodings: list[Encoding] = []
    while None not in found:
        encodings += found
        at_once = min(2 * at_once, _MOST_AT_ONCE)
        found = yield _next(name, len(encodings), at_once)
    encodings += found[: found.index(None)]
    if not encodings:
        (schemas,) = yield [requests.versions(name)]
        return tuple(_of_schema(one) for one in schemas)
    numbered = sorted(enumerate(encodings), key=lambda one: (one[1].registered.id, one[0]))
    return tuple(_of_encoding(number, one, codecs) for number, one in numbered)


def fits(
    name: GroupName, offered: OfferedSchema, check: Check, policy: str | None
) -> Rule[list[AnyRequest], Compatibility]:
    """Whether a schema fits those of a group.

    Raises:
        SourceNotFound: there is no such group in this namespace.
        InvalidRequest: the schema's text says no name, and nothing else does.
    """
    schema = info_of(offered)
    (group,) = yield [requests.group(name)]
    if check == "read":
        (readable,) = yield [requests.can_read(name, schema)]
        return Compatibility(readable, group.policy)
    compatibility = group.compatibility if policy is None else {"policy": policy}
    (valid,) = yield [requests.validate(name, schema, compatibility)]
    return Compatibility(valid, policy or group.policy)


def info_of(offered: OfferedSchema) -> SchemaInfo:
    """A schema as the registry takes it.

    Raises:
        InvalidRequest: it has no name, or is no base64 of a descriptor.
    """
    format_ = {known.lower(): known for known in FORMATS}.get(offered.kind.lower(), offered.kind)
    name = offered.name or (_avro_name(offered.text) if format_ == "Avro" else "")
    if not name:
        raise InvalidRequest(f"a schema of {format_} has a name beside its text: give schema_name")
    try:
        data = base64.b64decode(offered.text, validate=True) if format_ == "Protobuf" else offered.text.encode()
    except ValueError as error:
        raise InvalidRequest("a schema of Protobuf is a descriptor set as base64") from error
    return SchemaInfo(name, format_, data, offered.properties)


def _avro_name(text: str) -> str:
    parsed = avro_schema.parse(text)
    return getattr(parsed, "name", "")


def _next(name: GroupName, first: int, count: int) -> list[AnyRequest]:
    return [requests.encoding(name, number) for number in range(first, first + count)]


def _of_encoding(number: int, encoding: Encoding, codecs: Mapping[str, str]) -> SchemaVersion:
    return _version(str(number), encoding.registered, encoding.codec, codecs)


def _of_schema(registered: Registered) -> SchemaVersion:
    """No event can name it yet, but rows of it have columns."""
    return _version(ANY_VERSION, registered, "", {})


def _version(version: str, registered: Registered, codec: str, codecs: Mapping[str, str]) -> SchemaVersion:
    schema = registered.schema
    writer, problem = None, None
    try:
        writer = writer_of(schema, codec, codecs)
    except InvalidSchema as error:
        problem = error
    details = {"record": schema.type, "schema_version": str(registered.version), "codec": codec}
    return SchemaVersion(
        version, schema.format, text_of(schema), writer, problem, number=registered.id, details=details
    )


def writer_of(schema: SchemaInfo, codec: str, codecs: Mapping[str, str]) -> WriterSchema:
    """What events of an encoding were written with.

    Raises:
        InvalidSchema: nothing can read them.
    """
    found = {**_CODECS, **codecs}.get(codec)
    if found is None:
        hint = "Name the function that undoes it: Registry(.., codecs={name: 'package.module:function'})."
        raise InvalidSchema(f"codec {codec!r}", "it is not built in", hint)
    match schema.format:
        case "Avro":
            return WriterSchema("avro", _text(schema), codec=found)
        case "Json":
            return replace(of_json_schema(_text(schema)), codec=found)
        case "Protobuf":
            return WriterSchema("protobuf", base64.b64encode(schema.data).decode(), schema.type, codec=found)
    raise InvalidSchema(schema.format, "this release reads schemas of Avro, Json and Protobuf")


def text_of(schema: SchemaInfo) -> str:
    """The schema's own text; of Protobuf, and of what is no text, base64."""
    if schema.format != "Protobuf":
        try:
            return schema.data.decode()
        except UnicodeDecodeError:
            pass
    return base64.b64encode(schema.data).decode()


def _text(schema: SchemaInfo) -> str:
    try:
        return schema.data.decode()
    except UnicodeDecodeError as error:
        raise InvalidSchema(schema.format, "its text is not UTF-8") from error
