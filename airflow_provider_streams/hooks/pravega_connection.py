"""A connection to Pravega: who is called, with which identity, and the two edges that ask."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

from airflow_provider_streams.errors import InvalidRequest, StreamsError
from airflow_provider_streams.hooks.base import Sampled, StreamHook
from airflow_provider_streams.hooks.of_loop import OfLoop
from airflow_provider_streams.hooks.schema_registry import SchemaRegistryHook
from airflow_provider_streams.model.payload import Registry
from airflow_provider_streams.systems.pravega.endpoint import Endpoint
from airflow_provider_streams.systems.pravega.registry.options import OF_PRAVEGA, PREFIX
from airflow_provider_streams.systems.pravega.source import PravegaSource, scoped_stream_name

if TYPE_CHECKING:
    from airflow.sdk import Connection as AirflowConnection

    from airflow_provider_streams.model.retention import Holding
    from airflow_provider_streams.model.source import Source
    from airflow_provider_streams.systems.pravega.calls import Call
    from airflow_provider_streams.systems.pravega.client import AsyncClient, Client
    from airflow_provider_streams.systems.pravega.steps import Steps
    from airflow_provider_streams.systems.pravega.system import PravegaSystem

T = TypeVar("T")


class PravegaConnection(StreamHook):
    """What every question to Pravega goes through: `run` a rule, `call` the controller, blocking or in a loop.

    Args:
        conn_id: the Airflow connection, of type `pravega`.
        options: settings that win over the connection's.
    """

    conn_name_attr = "conn_id"
    default_conn_name = "pravega_default"
    conn_type = "pravega"
    hook_name = "Pravega"
    exclusive_options: ClassVar[frozenset[str]] = frozenset({"password", "token", "keycloak_file"})

    def __init__(self, conn_id: str = default_conn_name, *, options: Mapping[str, str] | None = None) -> None:
        super().__init__(conn_id, system="pravega", options=options)
        self._client: Client | None = None
        self._of_loop = OfLoop(self._opened)
        self._registry: str | None = None

    def of_source(self, source: Source) -> None:
        """See `StreamHook`: a source may name the connection of the registry that has its schemas."""
        value = cast("PravegaSource", source).value
        self._registry = value.conn_id if isinstance(value, Registry) else None

    def options(self) -> dict[str, str]:
        """See `ConnectionHook`; without what only planning needs, the registry's settings."""
        return _without_registry(super().options())

    async def aoptions(self) -> dict[str, str]:
        """As `options`, for an event loop."""
        return _without_registry(await super().aoptions())

    def planning_options(self) -> dict[str, str]:
        """See `StreamHook`: those of the source's registry win over the connection's own."""
        if self._registry is None:
            return super().options()
        return {**self.options(), **_as_registrys(SchemaRegistryHook(self._registry).options())}

    async def aplanning_options(self) -> dict[str, str]:
        """As `planning_options`, for an event loop."""
        if self._registry is None:
            return await super().aoptions()
        return {**await self.aoptions(), **_as_registrys(await SchemaRegistryHook(self._registry).aoptions())}

    def endpoint(self) -> Endpoint:
        """Where the cluster is and who we are there.

        Raises:
            InvalidRequest: a setting is missing or malformed.
        """
        return Endpoint.from_options(self.planning_options())

    def system(self) -> PravegaSystem:
        """The system behind the connection; close it. It connects when used."""
        return cast("PravegaSystem", super().system())

    # Rules and calls, on both edges

    @property
    def client(self) -> Client:
        """Asks the controller and the segment stores; not for several threads.

        Raises:
            MissingDependency: grpcio is not installed.
        """
        if self._client is None:
            from airflow_provider_streams.systems.pravega.client import Client  # noqa: PLC0415 - gRPC when used

            self._client = Client(self.endpoint())
        return self._client

    def get_conn(self) -> Client:
        """As `client`."""
        return self.client

    async def aclient(self) -> AsyncClient:
        """The same for the running event loop; what another loop has opened cannot be used here."""
        return await self._of_loop.get()

    async def _opened(self) -> AsyncClient:
        from airflow_provider_streams.systems.pravega.client import AsyncClient  # noqa: PLC0415 - gRPC when used

        return AsyncClient(Endpoint.from_options(await self.aoptions()))

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
        from airflow_provider_streams.systems.pravega.health import health  # noqa: PLC0415

        return {service: str(answer) for service, answer in health(self.client).items()}

    def test_connection(self) -> tuple[bool, str]:
        """Whether the cluster accepts us; the message holds no secret."""
        try:
            return self._test()
        except StreamsError as error:
            return False, str(error)
        except Exception as error:  # noqa: BLE001 - Airflow shows this text unmasked: foreign errors may quote secrets
            return False, f"{type(error).__name__} while connecting; the API server's log has more"

    def _test(self) -> tuple[bool, str]:
        from airflow_provider_streams.systems.pravega.health import health  # noqa: PLC0415

        answers = health(self.client)
        for answer in answers.values():
            if isinstance(answer, StreamsError):
                raise answer
        shown = ", ".join(f"{service} {answer}" for service, answer in answers.items())
        return True, f"Pravega at {self.client.endpoint.controller} accepts us: {shown}."

    def holding(self, source: Source, reader: str | None, recorded: Callable[[], Sampled]) -> Holding:
        """See `StreamHook`: recorded cuts tell."""
        from airflow_provider_streams.systems.pravega import retention  # noqa: PLC0415 - gRPC when used

        return self.run(retention.holding(cast("PravegaSource", source), reader, recorded(), datetime.now(UTC)))

    async def aholding(self, source: Source, reader: str | None, recorded: Callable[[], Awaitable[Sampled]]) -> Holding:
        """As `holding`, for an event loop."""
        from airflow_provider_streams.systems.pravega import retention  # noqa: PLC0415 - gRPC when used

        rule = retention.holding(cast("PravegaSource", source), reader, await recorded(), datetime.now(UTC))
        return await self.arun(rule)

    def close(self) -> None:
        """Close what blocking calls opened."""
        if self._client is not None:
            self._client.close()
            self._client = None

    async def aclose(self) -> None:
        """Close what asynchronous calls opened."""
        await self._of_loop.close()

    def full_names(self, names: list[str]) -> list[str]:
        """As `StreamHook`: one name without a scope is of the connection's."""
        if len(names) != 1 or "/" in names[0]:
            return names
        return [full_stream_name(names[0], self.settings()["scope"].value, self.conn_id)]

    def _fields(self, connection: AirflowConnection) -> Mapping[str, object]:
        return {
            "controller": _controller(connection.host, connection.port),
            "scope": connection.schema,
            "username": connection.login,
            "password": connection.password,
        }


def _without_registry(options: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in options.items() if not name.startswith(PREFIX)}


def _as_registrys(options: Mapping[str, str]) -> dict[str, str]:
    return {f"{PREFIX}{name}": value for name, value in options.items() if f"{PREFIX}{name}" in _REGISTRYS}


_REGISTRYS = frozenset(option.name for option in OF_PRAVEGA)


def full_stream_name(name: str, scope: str, conn_id: str) -> str:
    """`scope/stream` of a name with or without the scope.

    Raises:
        InvalidName: Pravega cannot have such a stream.
        InvalidRequest: no scope is known.
    """
    return scoped_stream_name(name if "/" in name else f"{given_scope(scope, conn_id)}/{name}")


def one_stream(owner: object, stream: str | None, source: PravegaSource | None, conn_id: str) -> tuple[str, str]:
    """The name and the connection of a stream that an operator or a sensor is given in one of two ways.

    Raises:
        InvalidRequest: both are given, or none.
    """
    if (stream is None) == (source is None):
        raise InvalidRequest(f"{type(owner).__name__} takes a stream or a source, one of them")
    return (source.stream, source.conn_id) if source else (stream or "", conn_id)


def given_scope(scope: str, conn_id: str) -> str:
    """A scope that is not empty.

    Raises:
        InvalidRequest: it is.
    """
    if not scope:
        raise InvalidRequest(
            f"no scope: name streams 'scope/stream', or give connection {conn_id!r} one (its field Schema, or the "
            "environment variable PRAVEGA_SCOPE)"
        )
    return scope


def _controller(host: str | None, port: int | None) -> str:
    if not host:
        return ""
    address = host if "://" in host else f"tcp://{host}"
    return f"{address}:{port}" if port and not address.rpartition(":")[2].isdigit() else address
