"""Schemas as a system keeps them, in all their versions: what plans pin, and what `airflow streams schema` shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Literal, Protocol, runtime_checkable

from airflow_provider_streams.errors import IncompatibleSchemas, InvalidRequest, InvalidSchema, MultipleRecordTypes
from airflow_provider_streams.formats.schema.row_types import key_type_of, type_of
from airflow_provider_streams.model.schema import avro_schema
from airflow_provider_streams.model.schema.decoding import WriterSchema
from airflow_provider_streams.model.schema.payload import Auto, Payload, Registry
from airflow_provider_streams.model.schema.record_types import (
    NO_NAME,
    ONE_TYPE,
    ReadTypes,
    RecordName,
    read_types,
    types_of_versions,
)
from airflow_provider_streams.model.schema.types import ArrayOf, MapOf, StructOf, Type
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.readiness import Readiness


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """One version of a topic's or a group's schema.

    Args:
        version: its number, as payloads say it.
        kind: the system's own word for what it is: `AVRO`, `KEY_VALUE`, `Json`.
        text: the schema itself, as the system keeps it.
        writer: what payloads of it were written with; None: nothing can read them.
        problem: why nothing can.
        made: when it was registered, if the system says it.
        number: its place in the order of versions; by default the version.
        details: more for a person: the codec, the type's name.
        record: the name of its values' record.
        key_record: the name of its keys' record, if it describes keys.
    """

    version: str
    kind: str
    text: str
    writer: WriterSchema | None
    problem: InvalidSchema | None = None
    made: datetime | None = None
    number: int = -1
    details: Mapping[str, str] = field(default_factory=dict)
    record: RecordName = NO_NAME
    key_record: RecordName = NO_NAME

    def __post_init__(self) -> None:
        if self.number < 0 and self.version.isdigit():
            object.__setattr__(self, "number", int(self.version))

    @property
    def row_type(self) -> Type:
        """The type of decoded values.

        Raises:
            InvalidSchema: they cannot be decoded.
        """
        return type_of(self._writer())

    @property
    def key_type(self) -> Type | None:
        """As `row_type`, of keys; None: it does not describe keys."""
        return key_type_of(self._writer())

    def check(self) -> WriterSchema:
        """What payloads of it were written with.

        Raises:
            InvalidSchema: no columns can be made of them.
        """
        _ = self.row_type, self.key_type
        return self._writer()

    def _writer(self) -> WriterSchema:
        if self.writer is None:
            raise self.problem or InvalidSchema(self.kind, "nothing is known of it")
        return self.writer


@dataclass(frozen=True, slots=True)
class OfferedSchema:
    """A schema that a producer or a reader would use.

    Args:
        kind: `avro`, `json` or `protobuf`, or the system's own word.
        text: the schema, as the system keeps it; of protobuf the descriptor set as base64.
        name: of the type, where the text does not say it.
        properties: the system's own.
    """

    kind: str
    text: str
    name: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """For messages."""
        return f"{self.name} ({self.kind})" if self.name else self.kind


@dataclass(frozen=True, slots=True)
class Compatibility:
    """Whether a schema fits; policy and reason are empty if the system does not say them."""

    compatible: bool
    policy: str = ""
    reason: str = ""


Check = Literal["write", "read"]
"""Whether events of a schema may be written, or it can read the events that are written."""


@dataclass(frozen=True, slots=True)
class SchemaAvailable:
    """Every name of a source has a schema: of this version at least, and with these columns.

    Args:
        version: of Pulsar the schema's version, of a registry the schema's id in its group.
        columns: names of columns, or of fields within them (`customer.city`), that the newest schema must have; if
            there are several record types, the newest schema of one of them.

    Raises:
        InvalidRequest: a negative version.
    """

    version: int = 0
    columns: tuple[str, ...] = ()

    kind: ClassVar[str] = "schema_available"

    def __post_init__(self) -> None:
        if self.version < 0:
            raise InvalidRequest(f"versions are counted from 0, got {self.version}")

    def judge(self, found: Versions) -> Readiness:
        """Ready when each name has such a schema."""
        problems = {name: problem for name, versions in found.items() if (problem := self._problem(versions))}
        newest = {name: versions[-1].version for name, versions in found.items() if versions}
        return Readiness(
            not problems, "; ".join(f"{name} {why}" for name, why in problems.items()), {"versions": newest}
        )

    def _problem(self, versions: Sequence[SchemaVersion]) -> str:
        if not versions:
            return "has no schema"
        newest = max(one.number for one in versions)
        if newest < self.version:
            return f"has version {newest}"
        lacking = min((self._lacking(one) for one in _newest_of_each_type(versions)), key=len)
        return f"lacks {', '.join(lacking)}" if lacking else ""

    def _lacking(self, version: SchemaVersion) -> list[str]:
        there = set(_names(version.row_type)) if self.columns else set()
        return [name for name in self.columns if name not in there]


def _newest_of_each_type(versions: Sequence[SchemaVersion]) -> list[SchemaVersion]:
    """The newest of all first."""
    types = types_of_versions({one.version: one.record for one in versions})
    return list({types[one.version]: one for one in versions}.values())[::-1]


def _names(type_: Type, path: str = "") -> Iterator[str]:
    match type_:
        case StructOf(fields):
            for one in fields:
                yield f"{path}{one.name}"
                yield from _names(one.type, f"{path}{one.name}.")
        case ArrayOf(element):
            yield from _names(element, path)
        case MapOf(_, value):
            yield from _names(value, path)


Versions = Mapping[str, tuple[SchemaVersion, ...]]
"""By a source's name, the oldest first; none: it has no schema."""


@runtime_checkable
class SchemaKeeper(Protocol):
    """A system that knows what payloads were written with."""

    def schemas(self, source: Source) -> Versions:
        """Every version that is kept.

        Raises:
            SourceNotFound: no such source.
            AccessError, SystemUnavailable: the system refuses or does not answer.
        """


def types_of(found: Versions, value: Auto | Registry, key: Payload | None = None) -> ReadTypes:
    """The record types of each name's payloads, and which of them a source reads.

    Raises:
        MultipleRecordTypes: a name has several, of values or of keys, and the source does not say which to read.
        InvalidSchema: a type that it names is not there, or may be several.
    """
    names = {name: {one.version: one.record for one in versions} for name, versions in found.items()}
    types = read_types(names, value.type, all_types=value.types == "all")
    if key is None or isinstance(key, Auto):
        for name, versions in found.items():
            of_keys = {one.version: one.key_record for one in versions if types.reads(name, one.version)}
            if len(kinds := list(dict.fromkeys(types_of_versions(of_keys).values()))) > 1:
                raise MultipleRecordTypes(name, kinds, of_keys=True)
    return types


def known_of(found: Versions, types: ReadTypes = ONE_TYPE) -> dict[str, dict[str, WriterSchema]]:
    """What is known of each name's payloads, for `formats.schema.pinned_schemas`: of the types that are read.

    A version that nothing can read is left out, unless it is the newest one of its type: its payloads are bad when they
    come.

    Raises:
        InvalidSchema: the newest version of a type is of no use.
        IncompatibleSchemas: some names have schemas, and others none.
    """
    if lacking := sorted(name for name, versions in found.items() if not versions):
        having = sorted(found.keys() - set(lacking))
        if having:
            raise IncompatibleSchemas([f"{', '.join(lacking)} has no schema, {', '.join(having)} has"])
    return {name: _readable(name, versions, types) for name, versions in found.items()}


def record_name(schema: str) -> RecordName:
    """The name of an Avro schema, or of a JSON record that is described like one; other texts have none."""
    try:
        return _name_of(avro_schema.parse(schema))
    except InvalidSchema:
        return NO_NAME


def _name_of(schema: avro_schema.Schema) -> RecordName:
    """A union of null and a record has the record's name."""
    match schema:
        case avro_schema.Record():
            return RecordName(schema.name, schema.aliases)
        case avro_schema.Union(branches):
            records = [one for one in branches if isinstance(one, avro_schema.Record)]
            return _name_of(records[0]) if len(records) == 1 else RecordName("union", is_record=False)
        case avro_schema.Primitive(kind):
            return RecordName(kind, is_record=False)
    return RecordName(type(schema).__name__.lower(), is_record=False)


def made_of(found: Versions) -> dict[str, dict[str, int]]:
    """When versions were registered, in milliseconds, for `Decoding.made`."""
    made = {
        name: {one.version: round(one.made.timestamp() * 1000) for one in versions if one.made}
        for name, versions in found.items()
    }
    return {name: times for name, times in made.items() if times}


def _readable(name: str, versions: Sequence[SchemaVersion], types: ReadTypes) -> dict[str, WriterSchema]:
    readable: dict[str, WriterSchema] = {}
    read = [one for one in versions if types.reads(name, one.version)]
    newest = {types.type_of(name, one.version): one for one in read}
    for one in read:
        try:
            readable[one.version] = one.check()
        except InvalidSchema as error:
            if one is newest[types.type_of(name, one.version)]:
                what = f"{name}, version {one.version}: {error.what}"
                raise InvalidSchema(what, error.reason, error.hint) from error
    return readable
