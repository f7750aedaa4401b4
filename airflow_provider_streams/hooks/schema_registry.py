"""A connection to a Pravega Schema Registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from airflow_provider_streams.errors import InvalidRequest, NotAuthorized, StreamsError
from airflow_provider_streams.hooks.connection import ConnectionHook
from airflow_provider_streams.hooks.of_loop import OfLoop
from airflow_provider_streams.systems.pravega.registry.endpoint import RegistryEndpoint
from airflow_provider_streams.systems.pravega.registry.options import OPTIONS
from airflow_provider_streams.systems.pravega.registry.requests import GroupName

if TYPE_CHECKING:
    from airflow.sdk import Connection as AirflowConnection

    from airflow_provider_streams.systems.pravega.registry.answers import Change, Group, Registered, SchemaInfo
    from airflow_provider_streams.systems.pravega.registry.client import AsyncRegistryClient, Question, RegistryClient
    from airflow_provider_streams.systems.rest.request import Request
    from airflow_provider_streams.systems.schemas import SchemaVersion

T = TypeVar("T")


class SchemaRegistryHook(ConnectionHook):
    """A connection to a Schema Registry: groups, their schemas and encodings, and whether schemas fit.

    Host and port are the registry, login and password the user; the schema is the namespace of groups that are named
    without one. Groups are named `namespace/group`, as a rule a stream's scope and name. `call` and `acall` take any
    call of `systems.pravega.registry.requests`; the named methods are the most common of them.

    Args:
        conn_id: the Airflow connection, of type `schema_registry`.
        options: settings that win over the connection's.
    """

    conn_name_attr = "conn_id"
    default_conn_name = "registry_default"
    conn_type = "schema_registry"
    hook_name = "Pravega Schema Registry"
    exclusive_options = frozenset({"password", "token"})

    def __init__(self, conn_id: str = default_conn_name, *, options: Mapping[str, str] | None = None) -> None:
        super().__init__(
            conn_id, kind=self.conn_type, known=OPTIONS, options=options, default_name=self.default_conn_name
        )
        self._client: RegistryClient | None = None
        self._of_loop = OfLoop(self._opened)

    def endpoint(self) -> RegistryEndpoint:
        """Where the registry is and who we are there.

        Raises:
            InvalidRequest: a setting is missing or malformed.
        """
        return RegistryEndpoint.from_options(self.options())

    @property
    def client(self) -> RegistryClient:
        """Calls the registry."""
        if self._client is None:
            from airflow_provider_streams.systems.pravega.registry.client import RegistryClient  # noqa: PLC0415 - httpx

            self._client = RegistryClient(self.endpoint())
        return self._client

    def get_conn(self) -> RegistryClient:
        """As `client`."""
        return self.client

    async def aclient(self) -> AsyncRegistryClient:
        """The same for the running event loop."""
        return await self._of_loop.get()

    async def _opened(self) -> AsyncRegistryClient:
        from airflow_provider_streams.systems.pravega.registry.client import AsyncRegistryClient  # noqa: PLC0415

        return AsyncRegistryClient(RegistryEndpoint.from_options(await self.aoptions()))

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

    async def aname(self, group: str) -> GroupName:
        """As `name`, for an event loop."""
        return full_group_name(group, (await self.aoptions()).get("namespace", ""), self.conn_id)

    def groups(self, namespace: str | None = None) -> dict[str, Group]:
        """Every group of a namespace by name; by default of the connection's."""
        from airflow_provider_streams.systems.pravega.registry.questions import all_groups  # noqa: PLC0415

        return self.ask(all_groups(namespace or self.name("groups").namespace))

    def group(self, group: str) -> Group:
        """A group's settings."""
        from airflow_provider_streams.systems.pravega.registry import requests  # noqa: PLC0415

        return self.call(requests.group(self.name(group)))

    def versions(self, group: str) -> tuple[Registered, ...]:
        """Every schema of a group, the oldest first; deleted ones are not among them."""
        from airflow_provider_streams.systems.pravega.registry import requests  # noqa: PLC0415

        return self.call(requests.versions(self.name(group)))

    def encodings(self, group: str, codecs: Mapping[str, str] | None = None) -> tuple[SchemaVersion, ...]:
        """What each encoding id of a group stands for, that of its newest schema last; deleted schemas are there.

        Args:
            group: its name.
            codecs: see `Registry`.
        """
        from airflow_provider_streams.systems.pravega.registry.schemas import versions_of  # noqa: PLC0415

        return self.ask(versions_of(self.name(group), codecs or {}))

    def codecs(self, group: str) -> tuple[str, ...]:
        """The names of what may compress a group's events."""
        from airflow_provider_streams.systems.pravega.registry import requests  # noqa: PLC0415

        return self.call(requests.codecs(self.name(group)))

    def history(self, group: str) -> tuple[Change, ...]:
        """Every schema that is there, with its time and the policy then."""
        from airflow_provider_streams.systems.pravega.registry import requests  # noqa: PLC0415

        return self.call(requests.history(self.name(group)))

    def is_valid(self, group: str, schema: SchemaInfo, policy: str | None = None) -> bool:
        """Whether a policy, by default the group's own, takes a schema beside those that are there."""
        from airflow_provider_streams.systems.pravega.registry.questions import is_valid  # noqa: PLC0415

        return self.ask(is_valid(self.name(group), schema, policy))

    def can_read(self, group: str, schema: SchemaInfo) -> bool:
        """Whether a reader with a schema can read what a group's writers write."""
        from airflow_provider_streams.systems.pravega.registry import requests  # noqa: PLC0415

        return self.call(requests.can_read(self.name(group), schema))

    # Administration

    def create_group(self, group: str, format_: str, policy: str = "AllowAny", *, many_types: bool = False) -> bool:
        """Make a group; False: it was there, and stays as it is."""
        from airflow_provider_streams.systems.pravega.registry import requests  # noqa: PLC0415

        return bool(self.call(requests.create_group(self.name(group), format_, policy, many_types=many_types)))

    def set_policy(self, group: str, policy: str) -> None:
        """Which schemas a group takes from now on."""
        from airflow_provider_streams.systems.pravega.registry import requests  # noqa: PLC0415

        self.call(requests.set_policy(self.name(group), policy))

    def add_schema(self, group: str, schema: SchemaInfo) -> int:
        """A schema's id in a group, where it is from now on.

        Raises:
            InvalidRequest: the group's policy does not take it.
        """
        from airflow_provider_streams.systems.pravega.registry import requests  # noqa: PLC0415

        added = self.call(requests.add_schema(self.name(group), schema))
        if added is None:
            raise InvalidRequest(
                f"group {self.name(group)} does not take the schema {schema.type}: its policy forbids it"
            )
        return added

    # Health

    def test_connection(self) -> tuple[bool, str]:
        """Whether the registry accepts us; the message holds no secret."""
        try:
            return True, self._test()
        except StreamsError as error:
            return False, str(error)
        except Exception as error:  # noqa: BLE001 - Airflow shows this text unmasked: foreign errors may quote secrets
            return False, f"{type(error).__name__} while connecting; the API server's log has more"

    def _test(self) -> str:
        from airflow_provider_streams.systems.pravega.registry import requests  # noqa: PLC0415

        endpoint = self.client.endpoint
        where = endpoint.route().where
        try:
            self.call(requests.groups(endpoint.namespace or "_system"))
        except NotAuthorized:
            return f"The registry at {where} knows us, and grants other namespaces."
        return f"The registry at {where} accepts us."

    def close(self) -> None:
        """Close what blocking calls opened."""
        if self._client is not None:
            self._client.close()
            self._client = None

    async def aclose(self) -> None:
        """Close what asynchronous calls opened."""
        await self._of_loop.close()

    def _fields(self, connection: AirflowConnection) -> Mapping[str, object]:
        return {
            "url": _url(connection.host, connection.port),
            "namespace": connection.schema,
            "username": connection.login,
            "password": connection.password,
        }


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
            f"no namespace: name groups 'namespace/group', or give connection {conn_id!r} one (its field Schema)"
        )
    return GroupName(namespace, name)


def _url(host: str | None, port: int | None) -> str:
    if not host:
        return ""
    url = host if "://" in host else f"http://{host}"
    return f"{url}:{port}" if port and not url.rpartition(":")[2].isdigit() else url
