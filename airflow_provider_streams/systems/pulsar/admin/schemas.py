"""Admin calls about the schemas of topics, and what they answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from airflow_provider_streams.systems.pulsar.names import namespace_of, parent_of, segment
from airflow_provider_streams.systems.rest.answer import Answer, reason
from airflow_provider_streams.systems.rest.request import Refusal, Request
from airflow_provider_streams.systems.schemas import Compatibility


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """One version of a topic's schema. `data` is text that its `type` decides; properties are the clients' own."""

    version: int
    type: str
    data: str
    properties: Mapping[str, str] = field(default_factory=dict)
    timestamp_ms: int = 0

    @classmethod
    def read_all(cls, answer: Answer) -> tuple[Self, ...]:
        """From `{"getSchemaResponses": [..]}`."""
        return tuple(cls.of(one) for one in answer.json()["getSchemaResponses"])

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """From one of them."""
        texts = {str(name): str(value) for name, value in (data.get("properties") or {}).items()}
        return cls(int(data["version"]), str(data["type"]), data.get("data") or "", texts, data.get("timestamp") or 0)


def _read_compatibility(answer: Answer) -> Compatibility:
    """From the answer, which is a failure with a reason where brokers find that a schema does not fit."""
    if answer.status >= _FAILED:
        return Compatibility(compatible=False, reason=reason(answer))
    data = answer.json()
    return Compatibility(bool(data["compatibility"]), data.get("schemaCompatibilityStrategy") or "")


_FAILED = 400
_NO_SCHEMA: Refusal = (404, "")
_INCOMPATIBLE: tuple[Refusal, ...] = (
    (500, "incompatible schema"),
    (500, "schema compatibility check"),
    (409, "incompatible"),
)


def schemas(topic: str) -> Request[tuple[StoredSchema, ...] | None]:
    """Every version of a topic's schema, the oldest first; None, or none: it has no schema.

    A topic that does not exist has none, either; of deleted versions nothing is left.
    """
    return Request(f"read the schemas of {topic}", _path(topic, "schemas"), StoredSchema.read_all, absent=(_NO_SCHEMA,))


def compatibility(topic: str, type_: str, schema: str, properties: Mapping[str, str]) -> Request[Compatibility]:
    """Whether a topic would take a schema beside those that it has; changes nothing."""
    body = json.dumps({"type": type_, "schema": schema, "properties": dict(properties)}).encode()
    return Request(
        f"check a schema of {topic}",
        _path(topic, "compatibility"),
        _read_compatibility,
        method="POST",
        body=body,
        subject=topic,
        told=_INCOMPATIBLE,
    )


def _path(topic: str, suffix: str) -> str:
    tenant, _, namespace = namespace_of(topic).partition("/")
    local = parent_of(topic).removeprefix("persistent://").split("/", 2)[2]
    return f"admin/v2/schemas/{segment(tenant)}/{segment(namespace)}/{segment(local)}/{suffix}"
