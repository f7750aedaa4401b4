"""What a Schema Registry answers, as values."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class SchemaInfo:
    """A schema: its type's name, its format (`Avro`, `Json`, `Protobuf`, or a custom one) and what the format keeps."""

    type: str
    format: str
    data: bytes
    properties: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As the registry takes it."""
        known = self.format in FORMATS
        return {
            "type": self.type,
            "serializationFormat": {
                "serializationFormat": self.format if known else "Custom",
                "fullTypeName": self.format,
            },
            "schemaData": base64.b64encode(self.data).decode(),
            "properties": dict(self.properties),
        }

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """From the registry's values."""
        kind = data["serializationFormat"]
        name = kind["serializationFormat"]
        return cls(
            data["type"],
            kind.get("fullTypeName") or name if name == "Custom" else name,
            base64.b64decode(data["schemaData"] or ""),
            dict(data.get("properties") or {}),
        )


FORMATS = ("Avro", "Json", "Protobuf", "Any")


@dataclass(frozen=True, slots=True)
class Registered:
    """A schema of a group. `version` counts those of its type, `id` all of the group; both from 0."""

    schema: SchemaInfo
    version: int
    id: int

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """From the registry's values."""
        version = data["versionInfo"]
        return cls(SchemaInfo.of(data["schemaInfo"]), int(version["version"]), int(version["id"]))


@dataclass(frozen=True, slots=True)
class Encoding:
    """What an encoding id stands for: a schema and what compresses its events; ids are the group's own, and stay."""

    registered: Registered
    codec: str

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """From the registry's values."""
        return cls(Registered.of(data), str((data.get("codecType") or {}).get("name") or ""))


@dataclass(frozen=True, slots=True)
class Group:
    """A group's settings; `policy` says which schemas it takes."""

    format: str
    policy: str
    allows_many_types: bool
    compatibility: Mapping[str, Any]
    """The policy with its details, as the registry wants it back."""
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """From the registry's values."""
        kind = data["serializationFormat"]
        return cls(
            kind.get("fullTypeName") or kind["serializationFormat"],
            data["compatibility"]["policy"],
            bool(data["allowMultipleTypes"]),
            dict(data["compatibility"]),
            dict(data.get("properties") or {}),
        )


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of a group's history: a schema came, under this policy."""

    registered: Registered
    policy: str
    timestamp_ms: int

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """From the registry's values."""
        return cls(Registered.of(data), data["compatibility"]["policy"], int(data["timestamp"]))
