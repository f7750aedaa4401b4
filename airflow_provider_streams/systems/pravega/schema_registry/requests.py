"""Every call to a Schema Registry, one function each: what to send, and how the answer becomes a value."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar
from urllib.parse import quote

from airflow_provider_streams.systems.rest.request import Refusal, Request
from airflow_provider_streams.systems.rest.response import Answer

T = TypeVar("T")

_ABSENT: Refusal = (404, "")
_EXISTS: Refusal = (409, "")


FORMATS = ("Avro", "Json", "Protobuf", "Any")


@dataclass(frozen=True, slots=True)
class SchemaInfo:
    """A schema: the name of its type, its format (`Avro`, `Json`, `Protobuf`, or a custom one) and its bytes."""

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
    """A schema and the codec that compresses its events. The group numbers its encodings and keeps the numbers."""

    registered: Registered
    codec: str

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """From the registry's values."""
        return cls(Registered.of(data), str((data.get("codecType") or {}).get("name") or ""))


@dataclass(frozen=True, slots=True)
class Group:
    """A group's settings; `policy` says which schemas it accepts."""

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


@dataclass(frozen=True, slots=True)
class GroupName:
    """A group and its namespace: as a rule a stream and its scope."""

    namespace: str
    group: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.group}"


def groups(namespace: str, after: str = "") -> Request[tuple[dict[str, Group], str]]:
    """A page of the groups of a namespace, by name; and the token of the next page, empty: there is none."""

    def parse(answer: Answer) -> tuple[dict[str, Group], str]:
        data = answer.json()
        found = {name: Group.of(one) for name, one in (data.get("groups") or {}).items() if one}
        return found, str(data.get("continuationToken") or "") if found else ""

    params = {"namespace": namespace, "limit": "100", **({"continuationToken": after} if after else {})}
    return Request(f"list the groups of {namespace}", "v1/groups", parse, params)


def group(name: GroupName) -> Request[Group]:
    """A group's settings. A wrong namespace is answered as an unknown group is."""
    return _ask("read", name, "", lambda answer: Group.of(answer.json()))


def history(name: GroupName) -> Request[tuple[Change, ...]]:
    """Every schema of a group, with its time and the policy then."""
    return _ask("read the history of", name, "/history", lambda a: tuple(map(Change.of, a.json()["history"] or ())))


def versions(name: GroupName) -> Request[tuple[Registered, ...]]:
    """Every schema of a group, the oldest first."""
    return _ask(
        "read the schemas of", name, "/schemas/versions", lambda a: tuple(map(Registered.of, a.json()["schemas"] or ()))
    )


def encoding(name: GroupName, number: int) -> Request[Encoding | None]:
    """The encoding of an id, even of a deleted schema; None: there is no such id, or no such group."""
    return _ask("read an encoding of", name, f"/encodings/{number}", lambda a: Encoding.of(a.json()), absent=(_ABSENT,))


def codecs(name: GroupName) -> Request[tuple[str, ...]]:
    """The names of the codecs that may compress a group's events."""

    def parse(answer: Answer) -> tuple[str, ...]:
        return tuple(one["name"] for one in answer.json()["codecTypes"] or () if one["name"])

    return _ask("read the codecs of", name, "/codecTypes", parse)


def validate(name: GroupName, schema: SchemaInfo, compatibility: Mapping[str, Any]) -> Request[bool]:
    """Whether a policy accepts a schema next to those of a group; changes nothing."""
    body = {"schemaInfo": schema.to_json(), "compatibility": dict(compatibility)}
    return _ask(
        "check a schema of", name, "/schemas/versions/validate", lambda a: bool(a.json()["valid"]), **_post(body)
    )


def can_read(name: GroupName, schema: SchemaInfo) -> Request[bool]:
    """Whether a reader with a schema can read the events of a group's writers; changes nothing."""
    return _ask(
        "check a schema of",
        name,
        "/schemas/versions/canRead",
        lambda a: bool(a.json()["compatible"]),
        **_post(schema.to_json()),
    )


def find(name: GroupName, schema: SchemaInfo) -> Request[int | None]:
    """The id of a schema in a group; None: there is no such schema or group."""
    return _ask(
        "look for a schema in",
        name,
        "/schemas/versions/find",
        lambda a: int(a.json()["id"]),
        absent=(_ABSENT,),
        **_post(schema.to_json()),
    )


# Changes: each may be sent twice


def create_group(
    name: GroupName, format_: str, policy: str = "AllowAny", *, many_types: bool = False
) -> Request[bool | None]:
    """Make a group; None: it exists already, and stays as it is."""
    settings = {
        "serializationFormat": {"serializationFormat": format_, "fullTypeName": format_},
        "compatibility": {"policy": policy},
        "allowMultipleTypes": many_types,
        "properties": {},
    }
    return Request(
        f"create group {name}",
        "v1/groups",
        lambda _: True,
        {"namespace": name.namespace},
        subject=f"namespace {name.namespace}",
        absent=(_EXISTS,),
        **_post({"groupName": name.group, "groupProperties": settings}),
    )


def set_policy(name: GroupName, policy: str) -> Request[bool]:
    """Change which schemas a group accepts."""
    body = json.dumps({"compatibility": {"policy": policy}}).encode()
    return _ask("change the policy of", name, "/compatibility", lambda _: True, method="PUT", body=body)


def add_schema(name: GroupName, schema: SchemaInfo) -> Request[int | None]:
    """Add a schema to a group; its id, or None: the group's policy does not accept it."""
    return _ask(
        "add a schema to",
        name,
        "/schemas",
        lambda a: int(a.json()["id"]),
        absent=(_EXISTS,),
        **_post(schema.to_json()),
    )


def _ask(action: str, name: GroupName, suffix: str, parse: Callable[[Answer], T], **more: Any) -> Request[T]:
    return Request(
        f"{action} group {name}",
        f"v1/groups/{quote(name.group, safe='')}{suffix}",
        parse,
        {"namespace": name.namespace},
        subject=f"group {name.group!r} of namespace {name.namespace!r}",
        **more,
    )


def _post(body: Any) -> dict[str, Any]:
    return {"method": "POST", "body": json.dumps(body).encode()}
