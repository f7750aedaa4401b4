"""Questions to a Schema Registry that take several calls, without I/O; see `client`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from airflow_provider_streams.errors import InvalidRequest, SourceNotFound
from airflow_provider_streams.model.payload import Registry
from airflow_provider_streams.model.readiness import Readiness
from airflow_provider_streams.systems.pravega.registry import requests
from airflow_provider_streams.systems.pravega.registry.answers import Group, SchemaInfo
from airflow_provider_streams.systems.pravega.registry.requests import GroupName
from airflow_provider_streams.systems.pravega.registry.schemas import fits, group_of, versions_of
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.rest.request import AnyRequest
from airflow_provider_streams.systems.rules import Rule
from airflow_provider_streams.systems.schemas import (
    Check,
    Compatibility,
    OfferedSchema,
    SchemaAvailable,
    SchemaVersion,
    Versions,
)


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
    """Every encoding of the groups of some streams, see `schemas.versions_of`.

    Raises:
        SourceNotFound: there is no such group.
    """
    found: dict[str, tuple[SchemaVersion, ...]] = {}
    for stream in streams:
        found[stream] = yield from versions_of(group_of(registry, stream), dict(registry.codecs))
    return found


def available(
    registry: Registry, streams: Iterable[str], condition: SchemaAvailable
) -> Rule[list[AnyRequest], Readiness]:
    """Whether each stream's group has a schema; a group that is not there comes with its first writer."""
    try:
        found = yield from schemas_of(registry, streams)
    except SourceNotFound as error:
        return Readiness(ready=False, because=str(error))
    return condition.judge(found)


def fits_all(
    registry: Registry, streams: Iterable[str], offered: OfferedSchema, check: Check, policy: str | None
) -> Rule[list[AnyRequest], Compatibility]:
    """Whether a schema fits those of each stream's group, see `schemas.fits`; the first where it does not tells."""
    found = Compatibility(compatible=True)
    for stream in streams:
        group = group_of(registry, stream)
        found = yield from fits(group, offered, check, policy)
        if not found.compatible:
            return replace(found, reason=f"group {group}")
    return found


def registry_of(source: PravegaSource) -> Registry:
    """The registry of a source's events.

    Raises:
        InvalidRequest: it names none.
    """
    if not isinstance(source.value, Registry):
        raise InvalidRequest(f"Pravega keeps no schemas: say which registry has those of {source}, value=Registry(..)")
    return source.value


def is_valid(name: GroupName, schema: SchemaInfo, policy: str | None = None) -> Rule[list[AnyRequest], bool]:
    """Whether a policy takes a schema beside those of a group; None: the group's own policy."""
    compatibility = {"policy": policy}
    if policy is None:
        (group,) = yield [requests.group(name)]
        compatibility = group.compatibility
    (valid,) = yield [requests.validate(name, schema, compatibility)]
    return bool(valid)
