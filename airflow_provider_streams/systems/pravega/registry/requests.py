"""Every call to a Schema Registry that we make, one function each: what to send, and how its answer becomes a value."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

from airflow_provider_streams.systems.pravega.registry.answers import Change, Encoding, Group, Registered, SchemaInfo
from airflow_provider_streams.systems.rest.answer import Answer
from airflow_provider_streams.systems.rest.request import Refusal, Request

T = TypeVar("T")

_ABSENT: Refusal = (404, "")
_EXISTS: Refusal = (409, "")


@dataclass(frozen=True, slots=True)
class GroupName:
    """A group, and the namespace that it lies in: as a rule a stream, and its scope."""

    namespace: str
    group: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.group}"


def groups(namespace: str, after: str = "") -> Request[tuple[dict[str, Group], str]]:
    """Groups of a namespace by name, a page of them; and what to ask for those after them, empty: there are none."""

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
    """Every schema that is there, with its time and the policy then."""
    return _ask("read the history of", name, "/history", lambda a: tuple(map(Change.of, a.json()["history"] or ())))


def versions(name: GroupName) -> Request[tuple[Registered, ...]]:
    """Every schema that is there, the oldest first."""
    return _ask(
        "read the schemas of", name, "/schemas/versions", lambda a: tuple(map(Registered.of, a.json()["schemas"] or ()))
    )


def encoding(name: GroupName, number: int) -> Request[Encoding | None]:
    """What an encoding id stands for, deleted schemas too; None: there is no such id, or no such group."""
    return _ask("read an encoding of", name, f"/encodings/{number}", lambda a: Encoding.of(a.json()), absent=(_ABSENT,))


def codecs(name: GroupName) -> Request[tuple[str, ...]]:
    """The names of what may compress a group's events."""
    return _ask(
        "read the codecs of",
        name,
        "/codecTypes",
        _codec_names,
    )


def _codec_names(answer: Answer) -> tuple[str, ...]:
    return tuple(one["name"] for one in answer.json()["codecTypes"] or () if one["name"])


def validate(name: GroupName, schema: SchemaInfo, compatibility: Mapping[str, Any]) -> Request[bool]:
    """Whether a policy takes a schema beside those of a group; changes nothing."""
    body = {"schemaInfo": schema.to_json(), "compatibility": dict(compatibility)}
    return _ask(
        "check a schema of", name, "/schemas/versions/validate", lambda a: bool(a.json()["valid"]), **_post(body)
    )


def can_read(name: GroupName, schema: SchemaInfo) -> Request[bool]:
    """Whether a reader with a schema can read what a group's writers write; changes nothing."""
    return _ask(
        "check a schema of",
        name,
        "/schemas/versions/canRead",
        lambda a: bool(a.json()["compatible"]),
        **_post(schema.to_json()),
    )


def find(name: GroupName, schema: SchemaInfo) -> Request[int | None]:
    """The id of a schema in a group; None: it is not there, or the group is not."""
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
    """A group; None: it was there, and stays as it is."""
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
    """Which schemas a group takes from now on."""
    body = json.dumps({"compatibility": {"policy": policy}}).encode()
    return _ask("change the policy of", name, "/compatibility", lambda _: True, method="PUT", body=body)


def add_schema(name: GroupName, schema: SchemaInfo) -> Request[int | None]:
    """A schema's id in a group, where it is from now on; None: the group's policy does not take it."""
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
