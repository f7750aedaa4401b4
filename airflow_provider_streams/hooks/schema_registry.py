"""A connection to a Pravega Schema Registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, TypeVar

from airflow_provider_streams.errors import InvalidRequest, NotAuthorized
from airflow_provider_streams.hooks.settings_hook import SettingsHook
from airflow_provider_streams.model.lazy_module import LazyModule
from airflow_provider_streams.systems.pravega.schema_registry.endpoint import ADDRESS, RegistryEndpoint
from airflow_provider_streams.systems.pravega.schema_registry.requests import GroupName

if TYPE_CHECKING:
    from airflow_provider_streams.systems.pravega.schema_registry import client, requests, schemas
    from airflow_provider_streams.systems.pravega.schema_registry.client import (
        AsyncRegistryClient,
        Question,
        RegistryClient,
    )
    from airflow_provider_streams.systems.pravega.schema_registry.requests import Change, Group, Registered, SchemaInfo
    from airflow_provider_streams.systems.rest.request import Request
    from airflow_provider_streams.systems.schemas import SchemaVersion
else:
    _FOLDER = "airflow_provider_streams.systems.pravega.schema_registry"
    client, requests, schemas = (LazyModule(f"{_FOLDER}.{name}") for name in ("client", "requests", "schemas"))

T = TypeVar("T")


class SchemaRegistryHook(SettingsHook[RegistryEndpoint, "RegistryClient", "AsyncRegistryClient"]):
    """A connection to a Schema Registry: groups, their schemas and encodings, and whether schemas fit.

    Host and port are the registry, login and password the user; the schema is the namespace of groups that are named
    without one. Groups are named `namespace/group`, usually a stream's scope and name. `call` and `acall` take any call
    of `systems.pravega.schema_registry.requests`; the named methods are the most common of them.

    Args:
        conn_id: the Airflow connection, of type `schema_registry`.
        options: settings that win over the connection's.
    """

    default_conn_name = "registry_default"
    conn_type = "schema_registry"
    hook_name = "Pravega Schema Registry"
    exclusive_options = frozenset({"password", "token"})
    option_fields: ClassVar[Mapping[str, str]] = {"schema": "namespace", "login": "username", "password": "password"}
    endpoint_class = RegistryEndpoint

    def __init__(self, conn_id: str = default_conn_name, *, options: Mapping[str, str] | None = None) -> None:
        known = RegistryEndpoint.options()
        super().__init__(
            conn_id,
            kind=self.conn_type,
            known=known,
            options=options,
            default_name=self.default_conn_name,
            address=ADDRESS,
        )

    def _opened(self, endpoint: RegistryEndpoint) -> RegistryClient:
        return client.RegistryClient(endpoint)

    def _aclient_of(self, endpoint: RegistryEndpoint) -> AsyncRegistryClient:
        return client.AsyncRegistryClient(endpoint)

    def call(self, request: Request[T]) -> T:
        """The answer to one call."""
        return self.client(request)

    async def acall(self, request: Request[T]) -> T:
        """As `call`, for an event loop."""
        return await (await self.aclient())(request)

    def ask(self, question: Question[T]) -> T:
        """The answer to a question of several calls."""
        return self.client.ask(question)

    async def aask(self, question: Question[T]) -> T:
        """As `ask`, for an event loop."""
        return await (await self.aclient()).ask(question)

    # Questions

    def name(self, group: str) -> GroupName:
        """A group by its name, with or without the namespace.

        Raises:
            InvalidRequest: neither the name nor the connection says a namespace.
        """
        return full_group_name(group, self.settings()["namespace"].value, self.conn_id)

    def groups(self, namespace: str | None = None) -> dict[str, Group]:
        """Every group of a namespace by name; by default of the connection's."""
        return self.ask(schemas.all_groups(namespace or self.name("groups").namespace))

    def group(self, group: str) -> Group:
        """A group's settings."""
        return self.call(requests.group(self.name(group)))

    def versions(self, group: str) -> tuple[Registered, ...]:
        """Every schema of a group, the oldest first; deleted ones are not among them."""
        return self.call(requests.versions(self.name(group)))

    def encodings(self, group: str, codecs: Mapping[str, str] | None = None) -> tuple[SchemaVersion, ...]:
        """The schema of each encoding id of a group, the newest last, deleted ones included; `codecs` as `Registry`."""
        return self.ask(schemas.versions_of(self.name(group), codecs or {}))

    def codecs(self, group: str) -> tuple[str, ...]:
        """The names of the codecs that may compress a group's events."""
        return self.call(requests.codecs(self.name(group)))

    def history(self, group: str) -> tuple[Change, ...]:
        """Every schema of a group, with its time and the policy at that time."""
        return self.call(requests.history(self.name(group)))

    def is_valid(self, group: str, schema: SchemaInfo, policy: str | None = None) -> bool:
        """Whether a policy, by default the group's own, takes a schema in addition to those that are there."""
        return self.ask(schemas.is_valid(self.name(group), schema, policy))

    def can_read(self, group: str, schema: SchemaInfo) -> bool:
        """Whether a reader with a schema can read what a group's writers write."""
        return self.call(requests.can_read(self.name(group), schema))

    # Administration

    def create_group(self, group: str, format_: str, policy: str = "AllowAny", *, many_types: bool = False) -> bool:
        """Make a group; False: it was there, and stays as it is."""
        return bool(self.call(requests.create_group(self.name(group), format_, policy, many_types=many_types)))

    def set_policy(self, group: str, policy: str) -> None:
        """Set which schemas a group takes from now on."""
        self.call(requests.set_policy(self.name(group), policy))

    def add_schema(self, group: str, schema: SchemaInfo) -> int:
        """Add a schema to a group; its id there.

        Raises:
            InvalidRequest: the group's policy does not take it.
        """
        added = self.call(requests.add_schema(self.name(group), schema))
        if added is None:
            raise InvalidRequest(
                f"group {self.name(group)} does not take the schema {schema.type}: its policy forbids it"
            )
        return added

    # Health

    def _test(self) -> str:
        endpoint = self.client.endpoint
        where = endpoint.route().where
        try:
            self.call(requests.groups(endpoint.namespace or "_system"))
        except NotAuthorized:
            return f"The registry at {where} knows us, but does not grant this namespace."
        return f"The registry at {where} accepts us."


def full_group_name(name: str, namespace: str, conn_id: str) -> GroupName:
    """A group by its name, `namespace/group`, or by its name alone where there is a namespace.

    Raises:
        InvalidRequest: there is none.
    """
    first, slash, rest = name.partition("/")
    if slash:
        return GroupName(first, rest)
    if not namespace:
        raise InvalidRequest(
            f"no namespace: name groups 'namespace/group', or set one in connection {conn_id!r} (its field Schema)"
        )
    return GroupName(namespace, name)
