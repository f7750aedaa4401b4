"""Schemas as a system keeps them, in all their versions: what plans pin, and what `airflow streams schema` shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Literal, Protocol, runtime_checkable

from airflow_provider_streams.errors import InvalidRequest, InvalidSchema, SchemasDiffer
from airflow_provider_streams.formats.row_types import key_type_of, type_of
from airflow_provider_streams.model.decoding import WriterSchema
from airflow_provider_streams.model.readiness import Readiness
from airflow_provider_streams.model.row_type import ArrayOf, MapOf, StructOf, Type
from airflow_provider_streams.model.source import Source


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """One version of a topic's or a group's schema.

    Args:
        version: its number, as payloads say it.
        kind: the system's own word for what it is: `AVRO`, `KEY_VALUE`, `Json`.
        text: the schema itself, as the system keeps it.
        writer: what payloads of it were written with; None: nothing can read them.
        problem: why nothing can.
        made: when it was registered, where the system tells.
        number: what counts the system's schemas; by default the version.
        details: what else it says, for a person: the codec, the type's name.
    """

    version: str
    kind: str
    text: str
    writer: WriterSchema | None
    problem: InvalidSchema | None = None
    made: datetime | None = None
    number: int = -1
    details: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.number < 0 and self.version.isdigit():
            object.__setattr__(self, "number", int(self.version))

    @property
    def row_type(self) -> Type:
        """What values become.

        Raises:
            InvalidSchema: nothing.
        """
        return type_of(self._writer())

    @property
    def key_type(self) -> Type | None:
        """What keys become; None: it says nothing of keys.

        Raises:
            InvalidSchema: nothing.
        """
        return key_type_of(self._writer())

    def check(self) -> WriterSchema:
        """What payloads of it were written with, if columns can be made of them.

        Raises:
            InvalidSchema: they cannot.
        """
        _ = self.row_type, self.key_type
        return self._writer()

    def _writer(self) -> WriterSchema:
        if self.writer is None:
            raise self.problem or InvalidSchema(self.kind, "nothing is known of it")
        return self.writer


@dataclass(frozen=True, slots=True)
class OfferedSchema:
    """A schema that somebody would like to write or read with.

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
    """Whether a schema fits; policy and reason are empty where the system does not tell them."""

    compatible: bool
    policy: str = ""
    reason: str = ""


Check = Literal["write", "read"]
"""Whether events of a schema may be written, or events that are written can be read with it."""


@dataclass(frozen=True, slots=True)
class SchemaAvailable:
    """Every name of a source has a schema: of this version at least, and with these columns.

    Args:
        version: of Pulsar the schema's version, of a registry the schema's id in its group.
        columns: names of columns, or of fields within them, `customer.city`, that the newest schema must have.

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
        there = set(_names(versions[-1].row_type))
        lacking = [name for name in self.columns if name not in there]
        return f"lacks {', '.join(lacking)}" if lacking else ""


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


def known_of(found: Versions) -> dict[str, dict[str, WriterSchema]]:
    """What is known of each name's payloads, for `formats.resolve`.

    A version that nothing can read is left out, unless it is the newest one: its payloads are bad when they come.

    Raises:
        InvalidSchema: the newest version of a name is of no use.
        SchemasDiffer: some names have schemas, and others none.
    """
    if lacking := sorted(name for name, versions in found.items() if not versions):
        having = sorted(found.keys() - set(lacking))
        if having:
            raise SchemasDiffer([f"{', '.join(lacking)} has no schema, {', '.join(having)} has"])
    return {name: _readable(name, versions) for name, versions in found.items()}


def made_of(found: Versions) -> dict[str, dict[str, int]]:
    """When versions were registered, in milliseconds, for `Decoding.made`."""
    made = {
        name: {one.version: round(one.made.timestamp() * 1000) for one in versions if one.made}
        for name, versions in found.items()
    }
    return {name: times for name, times in made.items() if times}


def _readable(name: str, versions: Sequence[SchemaVersion]) -> dict[str, WriterSchema]:
    readable: dict[str, WriterSchema] = {}
    for one in versions:
        try:
            readable[one.version] = one.check()
        except InvalidSchema as error:
            if one is versions[-1]:
                what = f"{name}, version {one.version}: {error.what}"
                raise InvalidSchema(what, error.reason, error.hint) from error
    return readable
