"""A connection to Pravega: who is called, with which identity, and the two edges that ask."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

from airflow_provider_streams.errors import InvalidRequest, NotAuthorized, StreamsError
from airflow_provider_streams.hooks.base import Sampled, StreamHook
from airflow_provider_streams.hooks.name_or_source import NameOrSource
from airflow_provider_streams.hooks.schema_registry import SchemaRegistryHook
from airflow_provider_streams.hooks.settings_hook import SettingsHook
from airflow_provider_streams.model.lazy_module import LazyModule
from airflow_provider_streams.model.name_suggestion import hint_for
from airflow_provider_streams.model.schema.payload import Registry
from airflow_provider_streams.systems.pravega.client.endpoint import Endpoint
from airflow_provider_streams.systems.pravega.source import PravegaSource, pravega_source, scoped_stream_name


def lazy(name: str) -> LazyModule:
    """A module of Pravega's folder."""
    return LazyModule(f"airflow_provider_streams.systems.pravega.{name}")


if TYPE_CHECKING:
    from airflow_provider_streams.model.stream.retention import Holding
    from airflow_provider_streams.model.stream.source import Source
    from airflow_provider_streams.systems.pravega.client import stream_client
    from airflow_provider_streams.systems.pravega.client.controller import stream_calls
    from airflow_provider_streams.systems.pravega.client.controller.call import Call
    from airflow_provider_streams.systems.pravega.client.multi_step_queries import Steps
    from airflow_provider_streams.systems.pravega.client.stream_client import AsyncClient, Client
    from airflow_provider_streams.systems.pravega.metadata import queries
    from airflow_provider_streams.systems.pravega.operations import health, retention
    from airflow_provider_streams.systems.pravega.system import PravegaSystem

else:  # gRPC when used
    stream_calls = lazy("client.controller.stream_calls")
    stream_client = lazy("client.stream_client")
    queries = lazy("metadata.queries")
    health = lazy("operations.health")
    retention = lazy("operations.retention")

T = TypeVar("T")

_PREFIX = "registry_"
"""How the options begin that are a Schema Registry's."""


class PravegaConnection(SettingsHook[Endpoint, "Client", "AsyncClient"], StreamHook):
    """What every question to Pravega goes through: `run` a rule, `call` the controller, blocking or in a loop.

    Args:
        conn_id: the Airflow connection, of type `pravega`.
        options: settings that win over the connection's.
    """

    endpoint_class = Endpoint
    default_conn_name = "pravega_default"
    conn_type = "pravega"
    hook_name = "Pravega"
    exclusive_options: ClassVar[frozenset[str]] = frozenset({"password", "token", "keycloak_file"})
    option_fields: ClassVar[Mapping[str, str]] = {"schema": "scope", "login": "username", "password": "password"}

    def __init__(self, conn_id: str = default_conn_name, *, options: Mapping[str, str] | None = None) -> None:
        super().__init__(conn_id, system="pravega", options=options)
        self._registry: str | None = None

    def own(self, source: Source) -> PravegaSource:
        """As `StreamHook`."""
        return pravega_source(super().own(source))

    def of_source(self, source: Source) -> None:
        """As `StreamHook`: a source may name the connection of the registry that has its schemas."""
        value = self.own(source).value
        self._registry = value.conn_id if isinstance(value, Registry) else None

    def options(self) -> dict[str, str]:
        """As `ConnectionHook`, without the registry's settings, which only planning needs."""
        return _without_registry(super().options())

    async def aoptions(self) -> dict[str, str]:
        """As `options`, for an event loop."""
        return _without_registry(await super().aoptions())

    def planning_options(self) -> dict[str, str]:
        """As `StreamHook`: those of the source's registry win over the connection's own."""
        if self._registry is None:
            return super().options()
        return {**self.options(), **_as_registrys(SchemaRegistryHook(self._registry).options())}

    async def aplanning_options(self) -> dict[str, str]:
        """As `planning_options`, for an event loop."""
        if self._registry is None:
            return await super().aoptions()
        return {**await self.aoptions(), **_as_registrys(await SchemaRegistryHook(self._registry).aoptions())}

    def _endpoint_options(self) -> dict[str, str]:
        return self.planning_options()

    def _check(self) -> None:
        """With the registry's settings, which planning uses."""
        _ = self.endpoint().registry

    def system(self) -> PravegaSystem:
        """As `StreamHook`; close it."""
        return cast("PravegaSystem", super().system())

    # Rules and calls, on both edges

    def _opened(self, endpoint: Endpoint) -> Client:
        return stream_client.Client(endpoint)

    def _aclient_of(self, endpoint: Endpoint) -> AsyncClient:
        return stream_client.AsyncClient(endpoint)

    def run(self, rule: Steps[T]) -> T:
        """The value of a rule."""
        return self.client.run(rule)

    async def arun(self, rule: Steps[T]) -> T:
        """As `run`, for an event loop."""
        return await (await self.aclient()).run(rule)

    def call(self, call: Call[T]) -> T:
        """The answer to one call to the controller."""
        return self.client.call(call)

    async def acall(self, call: Call[T]) -> T:
        """As `call`, for an event loop."""
        return await (await self.aclient()).call(call)

    def stream(self, name: str) -> str:
        """`scope/stream` of a name with or without the scope.

        Raises:
            InvalidName: Pravega cannot have such a stream.
            InvalidRequest: neither the name nor the connection says a scope.
        """
        return full_stream_name(name, self.client.endpoint.scope, self.conn_id)

    async def astream(self, name: str) -> str:
        """As `stream`, for an event loop."""
        return full_stream_name(name, (await self.aclient()).endpoint.scope, self.conn_id)

    def scope(self, scope: str | None) -> str:
        """This scope, or the connection's.

        Raises:
            InvalidRequest: neither is given.
        """
        return given_scope(scope or self.client.endpoint.scope, self.conn_id)

    async def ascope(self, scope: str | None) -> str:
        """As `scope`, for an event loop."""
        return given_scope(scope or (await self.aclient()).endpoint.scope, self.conn_id)

    # Health

    def health(self) -> dict[str, str]:
        """Each service that the connection names, and what it says: `up`, or why not; no secret.

        Raises:
            InvalidRequest: a setting is missing or malformed.
        """
        return {service: str(answer) for service, answer in health.health(self.client).items()}

    def _test(self) -> str:
        """Whether every service accepts us, and the connection's scope exists.

        Raises:
            StreamsError: one does not.
            InvalidRequest: no such scope; with the nearest name, where we may list scopes.
        """
        answers = health.health(self.client)
        for answer in answers.values():
            if isinstance(answer, StreamsError):
                raise answer
        self._check_scope(self.client.endpoint.scope)
        shown = ", ".join(f"{service} {answer}" for service, answer in answers.items())
        return f"Pravega at {self.client.endpoint.controller} accepts us: {shown}."

    def _check_scope(self, scope: str) -> None:
        try:
            if not scope or self.call(stream_calls.scope_exists(scope)):
                return
        except NotAuthorized:
            return  # this user may not know
        try:
            hint = hint_for(scope, self.run(queries.scopes()))
        except NotAuthorized:
            hint = "this user may not list the others"
        raise InvalidRequest(f"connection {self.conn_id!r}: there is no scope {scope!r}; {hint}")

    def holding(self, source: Source, reader: str | None, recorded: Callable[[], Sampled]) -> Holding:
        """As `StreamHook`, by recorded cuts."""
        return self.run(retention.holding(self.own(source), reader, recorded(), datetime.now(UTC)))

    async def aholding(self, source: Source, reader: str | None, recorded: Callable[[], Awaitable[Sampled]]) -> Holding:
        """As `holding`, for an event loop."""
        rule = retention.holding(self.own(source), reader, await recorded(), datetime.now(UTC))
        return await self.arun(rule)

    def full_names(self, names: list[str]) -> list[str]:
        """As `StreamHook`: one name without a scope is in the connection's scope."""
        if len(names) != 1 or "/" in names[0]:
            return names
        return [full_stream_name(names[0], self.settings()["scope"].value, self.conn_id)]


def _without_registry(options: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in options.items() if not name.startswith(_PREFIX)}


def _as_registrys(options: Mapping[str, str]) -> dict[str, str]:
    known = {option.name for option in Endpoint.options()}
    return {f"{_PREFIX}{name}": value for name, value in options.items() if f"{_PREFIX}{name}" in known}


def full_stream_name(name: str, scope: str, conn_id: str) -> str:
    """`scope/stream` of a name with or without the scope.

    Raises:
        InvalidName: Pravega cannot have such a stream.
        InvalidRequest: no scope is known.
    """
    return scoped_stream_name(name if "/" in name else f"{given_scope(scope, conn_id)}/{name}")


def one_stream(owner: object, stream: str | None, source: PravegaSource | None, conn_id: str | None) -> tuple[str, str]:
    """The name and the connection of a stream that an operator, a sensor or a trigger is given by name or as a source.

    Raises:
        InvalidRequest: both are given, or none; or a source of several streams, or of another connection.
    """
    connection = NameOrSource(owner, "stream", stream, source, conn_id).connection(PravegaConnection.default_conn_name)
    return stream or "" if source is None else pravega_source(source).stream, connection


def given_scope(scope: str, conn_id: str) -> str:
    """A scope that is not empty.

    Raises:
        InvalidRequest: it is.
    """
    if not scope:
        raise InvalidRequest(
            f"no scope: name streams 'scope/stream', or set one in connection {conn_id!r} (its field Schema, or the "
            "environment variable PRAVEGA_SCOPE)"
        )
    return scope
