"""What a plan pins of payloads: which schemas they were written with, and the columns that all of them become."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Self

from airflow_provider_streams.errors import PlanMismatch
from airflow_provider_streams.model.row_type import Field, Simple, StructOf, Type, from_json, to_json

PRIMITIVES: Final = (
    "boolean", "int8", "int16", "int32", "int64", "float", "double", "date", "time", "timestamp", "instant",
    "local_date", "local_time", "local_date_time",
)  # fmt: skip
"""Pulsar's own formats of single values."""

FORMATS: Final = ("bytes", "utf8", *PRIMITIVES, "avro", "json", "protobuf", "key_value")

ANY_VERSION: Final = "*"
"""The version of a schema that a user gave: payloads are of it, whatever they say."""

ANY_NAME: Final = "*"
"""The name that stands for all, where no name was told."""

Framing = Literal["", "message", "header"]
"""Where a payload says its version: nowhere, in the message's metadata (Pulsar), in five bytes before it (registry)."""


@dataclass(frozen=True, slots=True)
class WriterSchema:
    """What payloads of one version were written with.

    Args:
        format: one of `FORMATS`.
        schema: of `avro` its JSON; of `json` the row type as JSON text; of `protobuf` a `FileDescriptorSet` as base64.
        message: of `protobuf`, the message's full name.
        codec: what compressed the bytes behind the header: none, `gzip`, `snappy`, or `package.module:function`.
        parts: of `key_value`, the key's and the value's own.
        inline: of `key_value`, whether key and value share the payload; otherwise the key is the message's.
    """

    format: str
    schema: str = ""
    message: str = ""
    codec: str = ""
    parts: tuple[WriterSchema, WriterSchema] | None = None
    inline: bool = False

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise PlanMismatch(f"this release decodes {', '.join(FORMATS)}, not {self.format!r}")

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; what is as usual is left out."""
        rest = {name: value for name in ("schema", "message", "codec", "inline") if (value := getattr(self, name))}
        parts = {"parts": [part.to_json() for part in self.parts]} if self.parts else {}
        return {"format": self.format, **rest, **parts}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        parts = data.get("parts")
        rest = {name: value for name, value in data.items() if name != "parts"}
        return cls(**rest, parts=(cls.from_json(parts[0]), cls.from_json(parts[1])) if parts else None)


@dataclass(frozen=True, slots=True)
class Decoding:
    """How the payloads of a plan become columns.

    Args:
        value: what all values become: a record's fields are columns, anything else is the column `value`.
        key: what all keys become, the column `_key`; None: keys are as they were stored.
        schemas: by name of the source (`Declaration.dataset`), then by version: what payloads were written with.
            Versions are decimal numbers; the version `ANY_VERSION` stands for all.
        framing: where a payload says its version.
        key_schema: what keys were written with, where no key_value schema says it.
        otherwise: what events are tried as that cannot be decoded so; of the same columns.
        made: when versions were registered, in milliseconds, by name and version, where the system tells it. A payload
            that was written before is of another schema, whatever version it names.
    """

    value: Type
    key: Type | None = None
    schemas: Mapping[str, Mapping[str, WriterSchema]] = field(default_factory=dict)
    framing: Framing = ""
    key_schema: WriterSchema | None = None
    otherwise: Decoding | None = None
    made: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def or_else(self, other: Decoding) -> Decoding:
        """The same; what cannot be decoded is tried as another says at last. All become the columns of both.

        Args:
            other: has these columns, of the same types, and may have more.
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
            names[name] = {version: _place(written, schema.to_json()) for version, schema in versions.items()}
        return {
            "value": to_json(self.value),
            "key": None if self.key is None else to_json(self.key),
            "written": written,
            "schemas": names,
            "framing": self.framing,
            "key_schema": self.key_schema.to_json() if self.key_schema else None,
            **({"otherwise": self.otherwise.to_json()} if self.otherwise else {}),
            **({"made": {name: dict(versions) for name, versions in self.made.items()}} if self.made else {}),
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
        )


def _of_both(one: Type, other: Type) -> Type:
    """The fields of both, by their names; what one of them lets be null may be."""
    if not isinstance(one, StructOf) or not isinstance(other, StructOf):
        return one
    theirs = {field.name: field for field in other.fields}
    shared = [_freed(field) if theirs.get(field.name, _FREE).nullable else field for field in one.fields]
    names = {field.name for field in one.fields}
    return StructOf((*shared, *(_freed(field) for field in other.fields if field.name not in names)))


_FREE: Final = Field("", Simple("string"))


def _freed(field: Field) -> Field:
    return replace(field, nullable=True, default=None)


def _place(written: list[dict[str, Any]], schema: dict[str, Any]) -> int:
    if schema not in written:
        written.append(schema)
    return written.index(schema)
