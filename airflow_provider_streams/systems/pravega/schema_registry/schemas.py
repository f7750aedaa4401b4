"""Questions to a Schema Registry, without I/O (see `client`): its schemas, and what events were written with."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from airflow_provider_streams.errors import InvalidRequest, InvalidSchema, SourceNotFound
from airflow_provider_streams.formats.json.columns import of_json_schema
from airflow_provider_streams.model.schema import avro_schema
from airflow_provider_streams.model.schema.decoding import ANY_VERSION, WriterSchema
from airflow_provider_streams.model.schema.payload import Registry
from airflow_provider_streams.model.schema.record_types import RecordName
from airflow_provider_streams.model.window.readiness import Readiness
from airflow_provider_streams.systems.io_free_rules import Rule
from airflow_provider_streams.systems.pravega.schema_registry import requests
from airflow_provider_streams.systems.pravega.schema_registry.requests import (
    FORMATS,
    Encoding,
    Group,
    GroupName,
    Registered,
    SchemaInfo,
)
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.rest.request import AnyRequest
from airflow_provider_streams.systems.schemas import (
    Check,
    Compatibility,
    OfferedSchema,
    SchemaAvailable,
    SchemaVersion,
    Versions,
    record_name,
)

_AT_FIRST: Final = 2
_MOST_AT_ONCE: Final = 16
"""Encodings that are asked for side by side, ever more: the registry does not tell how many there are."""

_CODECS: Final = {"": "", "application/x-gzip": "gzip", "application/x-snappy-framed": "snappy"}
"""What Java's serializers call them; its snappy is a raw block, whatever its name says."""


def group_of(registry: Registry, stream: str) -> GroupName:
    """The group of a stream, `scope/stream`."""
    scope, _, name = stream.partition("/")
    return GroupName(registry.namespace or scope, registry.group or name)


def versions_of(name: GroupName, codecs: Mapping[str, str]) -> Rule[list[AnyRequest], tuple[SchemaVersion, ...]]:
    """Every encoding of a group, the newest schema last; of a group without any, its schemas.

    `codecs` are functions of codecs that are not built in, by name. Raises `SourceNotFound` if there is no such group.
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
        return tuple(_version(ANY_VERSION, one, "", {}) for one in schemas)  # no event can name it yet
    numbered = sorted(enumerate(encodings), key=lambda one: (one[1].registered.id, one[0]))
    return tuple(_version(str(number), one.registered, one.codec, codecs) for number, one in numbered)


def fits(
    name: GroupName, offered: OfferedSchema, check: Check, policy: str | None
) -> Rule[list[AnyRequest], Compatibility]:
    """Whether a schema fits those of a group.

    Raises:
        SourceNotFound: there is no such group in this namespace.
        InvalidRequest: the schema has no name.
    """
    schema = info_of(offered)
    (group,) = yield [requests.group(name)]
    if check == "read":
        (readable,) = yield [requests.can_read(name, schema)]
        return Compatibility(readable, group.policy)
    valid = yield from is_valid(name, schema, policy, group)
    return Compatibility(valid, policy or group.policy)


def is_valid(
    name: GroupName, schema: SchemaInfo, policy: str | None = None, group: Group | None = None
) -> Rule[list[AnyRequest], bool]:
    """Whether a policy accepts a schema next to those of a group; None: the group's own policy."""
    if policy is None and group is None:
        (group,) = yield [requests.group(name)]
    compatibility = group.compatibility if policy is None and group else {"policy": policy}
    (valid,) = yield [requests.validate(name, schema, compatibility)]
    return bool(valid)


def all_groups(namespace: str) -> Rule[list[AnyRequest], dict[str, Group]]:
    """Every group of a namespace, by name."""
    found: dict[str, Group] = {}
    after = ""
    while True:
        ((page, after),) = yield [requests.groups(namespace, after)]
        if page.keys() <= found.keys():
            return found
        found |= page
        if not after:
            return found


def schemas_of(registry: Registry, streams: Iterable[str]) -> Rule[list[AnyRequest], Versions]:
    """Every encoding of the groups of some streams; `SourceNotFound` if there is no such group."""
    found: dict[str, tuple[SchemaVersion, ...]] = {}
    for stream in streams:
        found[stream] = yield from versions_of(group_of(registry, stream), dict(registry.codecs))
    return found


def available(
    registry: Registry, streams: Iterable[str], condition: SchemaAvailable
) -> Rule[list[AnyRequest], Readiness]:
    """Whether each stream's group has a schema. The first writer makes a missing group."""
    try:
        found = yield from schemas_of(registry, streams)
    except SourceNotFound as error:
        return Readiness(ready=False, because=str(error))
    return condition.judge(found)


def fits_all(
    registry: Registry, streams: Iterable[str], offered: OfferedSchema, check: Check, policy: str | None
) -> Rule[list[AnyRequest], Compatibility]:
    """Whether a schema fits those of each stream's group, see `fits`; else why not, for the first such group."""
    found = Compatibility(compatible=True)
    for stream in streams:
        group = group_of(registry, stream)
        found = yield from fits(group, offered, check, policy)
        if not found.compatible:
            return replace(found, reason=f"group {group}")
    return found


def registry_of(source: PravegaSource) -> Registry:
    """The registry of a source's events; `InvalidRequest` if it names none."""
    if not isinstance(source.value, Registry):
        raise InvalidRequest(f"Pravega keeps no schemas: say which registry has those of {source}, value=Registry(..)")
    return source.value


def info_of(offered: OfferedSchema) -> SchemaInfo:
    """A schema as the registry takes it; `InvalidRequest` if it has no name, or no descriptor as base64."""
    format_ = {known.lower(): known for known in FORMATS}.get(offered.kind.lower(), offered.kind)
    name = offered.name or (getattr(avro_schema.parse(offered.text), "name", "") if format_ == "Avro" else "")
    if not name:
        raise InvalidRequest(f"a schema of {format_} has a name besides its text: give schema_name")
    try:
        data = base64.b64decode(offered.text, validate=True) if format_ == "Protobuf" else offered.text.encode()
    except ValueError as error:
        raise InvalidRequest("a schema of Protobuf is a descriptor set as base64") from error
    return SchemaInfo(name, format_, data, offered.properties)


def _next(name: GroupName, first: int, count: int) -> list[AnyRequest]:
    return [requests.encoding(name, number) for number in range(first, first + count)]


def _version(version: str, registered: Registered, codec: str, codecs: Mapping[str, str]) -> SchemaVersion:
    schema = registered.schema
    writer, problem = None, None
    try:
        writer = writer_of(schema, codec, codecs)
    except InvalidSchema as error:
        problem = error
    details = {"record": schema.type, "schema_version": str(registered.version), "codec": codec}
    aliases = record_name(text_of(schema)).aliases if schema.format == "Avro" else ()
    record = RecordName(schema.type, aliases)
    return SchemaVersion(
        version, schema.format, text_of(schema), writer, problem, number=registered.id, details=details, record=record
    )


def writer_of(schema: SchemaInfo, codec: str, codecs: Mapping[str, str]) -> WriterSchema:
    """How events of an encoding were written; `InvalidSchema` if they cannot be read."""
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
    """The schema's own text; base64 for Protobuf and for other bytes."""
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
