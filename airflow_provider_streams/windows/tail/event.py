"""One event, as it is shown: where it is, when it came, and what it holds."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a source, with plain Python values."""

    place: tuple[str, tuple[int, ...]]
    """Its shard, and its position there."""
    metadata: Mapping[str, Any]
    """The system's columns, by their names in typed rows (`_topic`), without value and key."""
    moment: datetime | None
    """When it was published; None: its system does not say."""
    key: Any
    """Decoded, or text, or bytes that are no text; None: there is none."""
    value: Any
    """Decoded; None: it is null, or was not decoded."""
    payload: bytes | None
    """The value as it is stored, if it was not decoded."""
    cause: str = ""
    """Why it could not be decoded."""
    version: str = ""
    """The version of the schema that it names."""
    has_key: bool = True
    """Whether events of its source have keys at all."""
    kind: str = ""
    """What it is, if it is a message of a change data connector that changes no row: `heartbeat`, `tombstone`, .."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, by the names of columns in typed rows; the guide lists them. They stay what they are."""
        told = {name: plain(value) for name, value in self.metadata.items()}
        if self.has_key:
            is_bytes = isinstance(self.key, bytes)
            told["_key"] = None if is_bytes else plain(self.key)
            told |= {"_key_base64": base64_of(self.key)} if is_bytes else {}
        told["value"] = plain(self.value)
        if self.payload is not None:
            told["value_base64"] = base64_of(self.payload)
        if self.version:
            told["_schema_version"] = self.version
        if self.kind:
            told["_kind"] = self.kind
        if self.cause:
            told["error"] = self.cause
        return told


def base64_of(data: bytes) -> str:
    """Bytes as base64 text."""
    return base64.b64encode(data).decode()


def plain(value: Any) -> Any:
    """A value of a column as JSON has it: bytes as base64, times as ISO 8601, numbers without a loss."""
    match value:
        case bytes():
            found: Any = base64_of(value)
        case datetime():
            aware = value if value.tzinfo is None else value.astimezone(UTC)
            found = aware.isoformat().replace("+00:00", "Z")
        case date() | time():
            found = value.isoformat()
        case Decimal():
            found = str(value)
        case float() if not math.isfinite(value):
            found = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case Mapping():
            found = {str(plain(name)): plain(one) for name, one in value.items()}
        case list() | tuple():
            found = [plain(one) for one in value]
        case _:
            found = value
    return found
