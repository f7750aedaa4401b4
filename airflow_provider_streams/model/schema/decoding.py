"""What a plan pins about payloads: their writers' schemas, and the columns that all of them become."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Self

from airflow_provider_streams.errors import PlanMismatch
from airflow_provider_streams.model.schema.change_rows import ChangeFormat
from airflow_provider_streams.model.schema.type_json import from_json, to_json
from airflow_provider_streams.model.schema.types import StructOf, Type

PRIMITIVES: Final = (
    "boolean", "int8", "int16", "int32", "int64", "float", "double", "date", "time", "timestamp", "instant",
    "local_date", "local_time", "local_date_time",
)  # fmt: skip
"""Pulsar's own formats of single values."""

FORMATS: Final = ("bytes", "utf8", *PRIMITIVES, "avro", "json", "protobuf", "key_value")

ANY_VERSION: Final = "*"
"""The version of a schema that a user gave: all payloads are of it."""

ANY_NAME: Final = "*"
"""The name that stands for all names, if they are not known."""

Framing = Literal["", "message", "header"]
"""Where payloads name their version: nowhere, in the message's metadata (Pulsar), or in a header (registry)."""


@dataclass(frozen=True, slots=True)
class WriterSchema:
    """The schema of payloads of one version.

    Args:
        format: one of `FORMATS`.
        schema: `avro`: its JSON; `json`: the row type as JSON text; `protobuf`: a `FileDescriptorSet` as base64.
        message: `protobuf`: the message's full name.
        codec: what compressed the bytes after the header: empty, `gzip`, `snappy`, or `package.module:function`.
        parts: `key_value`: the schemas of key and value.
        inline: `key_value`: whether key and value share the payload; otherwise the message has the key.
        strict: `json`: whether an object is refused that has keys without a column, and lacks a column's key.
    """

    format: str
    schema: str = ""
    message: str = ""
    codec: str = ""
    parts: tuple[WriterSchema, WriterSchema] | None = None
    inline: bool = False
    strict: bool = False

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise PlanMismatch(f"this release decodes {', '.join(FORMATS)}, not {self.format!r}")

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, without defaults."""
        names = ("schema", "message", "codec", "inline", "strict")
        rest = {name: value for name in names if (value := getattr(self, name))}
        parts = {"parts": [part.to_json() for part in self.parts]} if self.parts else {}
        return {"format": self.format, **rest, **parts}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        parts = data.get("parts")
        rest = {name: value for name, value in data.items() if name != "parts"}
        return cls(**rest, parts=(cls.from_json(parts[0]), cls.from_json(parts[1])) if parts else None)


def newest_of(versions: Mapping[str, WriterSchema]) -> WriterSchema:
    """The last version, whatever its number is: a registry may give an old schema a new number."""
    return versions[next(reversed(tuple(versions)))]


@dataclass(frozen=True, slots=True)
class RecordTypes:
    """The record types, if rows depend on them.

    Args:
        of: the type of payloads, by name and version, including versions that are not read.
        columns: the columns of each type that is read, before they become the columns of all types.
        is_column: whether the last field of values is the type.
    """

    of: Mapping[str, Mapping[str, str]]
    columns: Mapping[str, Type]
    is_column: bool = False

    def is_other(self, name: str, version: str) -> bool:
        """Whether payloads of a version are of a type that is not read."""
        type_ = self.of.get(name, {}).get(version)
        return type_ is not None and type_ not in self.columns

    def alike(self, name: str, version: str, versions: Mapping[str, WriterSchema]) -> dict[str, WriterSchema]:
        """The versions of a name with the type of one version, in the same order."""
        of = self.of.get(name, {})
        return {one: schema for one, schema in versions.items() if of.get(one) == of.get(version)}

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "of": {name: dict(versions) for name, versions in self.of.items()},
            "columns": {name: to_json(type_) for name, type_ in self.columns.items()},
            "is_column": self.is_column,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        columns = {name: from_json(type_) for name, type_ in data["columns"].items()}
        return cls(data["of"], columns, data["is_column"])


@dataclass(frozen=True, slots=True)
class Decoding:
    """How the payloads of a plan become columns.

    Args:
        value: the type of all values: a record's fields are columns, anything else is the column `value`.
        key: the type of all keys, the column `_key`; None: keys stay as they were stored.
        schemas: the writers' schemas, by the source's name (`Declaration.dataset`) and version, the oldest first.
            Versions are decimal numbers, or `ANY_VERSION`.
        framing: where payloads name their version.
        key_schema: the schema of keys, if no key_value schema has it.
        otherwise: how to decode events that cannot be decoded so, into the same columns.
        made: when versions were registered, in milliseconds by name and version, as far as the system tells it. A
            payload that was written earlier has another schema, whatever version it names.
        types: the record types, if rows depend on them.
        as_text: whether other values become text if the plan's column is text.
        changes: how database changes become rows, of which `value` is the type; None: payloads are no changes.
        within: how payloads become columns before they are changes; None: changes are JSON.
    """

    value: Type
    key: Type | None = None
    schemas: Mapping[str, Mapping[str, WriterSchema]] = field(default_factory=dict)
    framing: Framing = ""
    key_schema: WriterSchema | None = None
    otherwise: Decoding | None = None
    made: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    types: RecordTypes | None = None
    as_text: bool = False
    changes: ChangeFormat | None = None
    within: Decoding | None = None

    def or_else(self, other: Decoding) -> Decoding:
        """Try another decoding last, for events that this one cannot decode. Both get the columns of both.

        The other one must have these columns, of the same types, and may have more.
        """
        if other.otherwise is not None:
            return self.or_else(replace(other, otherwise=None)).or_else(other.otherwise)
        value = _of_both(self.value, other.value)
        last = other if self.otherwise is None else self.otherwise.or_else(other)
        return replace(self, value=value, otherwise=replace(last, value=value))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; each schema once, however many names and versions have it."""
        written: list[dict[str, Any]] = []
        names: dict[str, dict[str, int]] = {}
        for name, versions in self.schemas.items():
            names[name] = {}
            for version, schema in versions.items():
                if (found := schema.to_json()) not in written:
                    written.append(found)
                names[name][version] = written.index(found)
        return {
            "value": to_json(self.value),
            "key": None if self.key is None else to_json(self.key),
            "written": written,
            "schemas": names,
            "framing": self.framing,
            "key_schema": self.key_schema.to_json() if self.key_schema else None,
            **({"otherwise": self.otherwise.to_json()} if self.otherwise else {}),
            **({"made": {name: dict(versions) for name, versions in self.made.items()}} if self.made else {}),
            **({"types": self.types.to_json()} if self.types else {}),
            **({"as_text": True} if self.as_text else {}),
            **({"changes": self.changes.to_json()} if self.changes else {}),
            **({"within": self.within.to_json()} if self.within else {}),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        written = [WriterSchema.from_json(one) for one in data["written"]]
        return cls(
            from_json(data["value"]),
            None if data["key"] is None else from_json(data["key"]),
            {
                name: {version: written[place] for version, place in versions.items()}
                for name, versions in data["schemas"].items()
            },
            data["framing"],
            WriterSchema.from_json(data["key_schema"]) if data["key_schema"] else None,
            cls.from_json(data["otherwise"]) if "otherwise" in data else None,
            data.get("made", {}),
            RecordTypes.from_json(data["types"]) if "types" in data else None,
            data.get("as_text", False),
            ChangeFormat.from_json(data["changes"]) if "changes" in data else None,
            cls.from_json(data["within"]) if "within" in data else None,
        )


def _of_both(one: Type, other: Type) -> Type:
    """The fields of both, by their names. A field is nullable if one of them says so, or lacks it."""
    if not isinstance(one, StructOf) or not isinstance(other, StructOf):
        return one
    own, theirs = ({field.name: field for field in type_.fields} for type_ in (one, other))
    kept = {name for name, field in theirs.items() if not field.nullable and name in own}
    fields = (own | {name: field for name, field in theirs.items() if name not in own}).values()
    return StructOf(
        tuple(field if field.name in kept else replace(field, nullable=True, default=None) for field in fields)
    )
