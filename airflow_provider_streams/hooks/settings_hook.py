"""Settings become an endpoint and its clients: what the hooks of all services share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, TypeVar

from airflow_provider_streams.connections.per_loop_client import Closing, PerLoopClient
from airflow_provider_streams.hooks.connection_hook import ConnectionHook
from airflow_provider_streams.hooks.testable_connection import TestableConnection
from airflow_provider_streams.systems.connection.endpoint import EndpointBase

E = TypeVar("E", bound=EndpointBase)
C = TypeVar("C")
A = TypeVar("A", bound=Closing)


class SettingsHook(TestableConnection, ConnectionHook, Generic[E, C, A]):
    """A connection whose settings are those of an endpoint, and its clients: a blocking one, and one for each loop."""

    conn_name_attr = "conn_id"
    endpoint_class: type[E]
    _client: C | None = None
    _per_loop_client: PerLoopClient[A] | None = None

    def endpoint(self) -> E:
        """Where the service is and who we are there.

        Raises:
            InvalidRequest: a setting is missing or malformed.
        """
        return self.endpoint_class.from_options(self._endpoint_options())

    @property
    def client(self) -> C:
        """The client of the service, not for several threads.

        Raises:
            MissingDependency: what it needs is not installed.
        """
        if self._client is None:
            self._client = self._opened(self.endpoint())
        return self._client

    def get_conn(self) -> C:
        """As `client`."""
        return self.client

    def close(self) -> None:
        """Close what blocking calls opened."""
        if self._client is not None:
            self._client.close()  # type: ignore[attr-defined]  # all clients have it
            self._client = None

    async def aclient(self) -> A:
        """The client of the running event loop; what another loop has opened cannot be used here."""
        if self._per_loop_client is None:
            self._per_loop_client = PerLoopClient(self._aopened)
        return await self._per_loop_client.get()

    async def aclose(self) -> None:
        """Close what asynchronous calls opened."""
        if self._per_loop_client is not None:
            await self._per_loop_client.close()

    def _check(self) -> None:
        self.endpoint()

    def _endpoint_options(self) -> dict[str, str]:
        return self.options()

    @abstractmethod
    def _opened(self, endpoint: E) -> C:
        """A client; it connects when used."""

    async def _aopened(self) -> A:
        return self._aclient_of(self.endpoint_class.from_options(await self.aoptions()))

    @abstractmethod
    def _aclient_of(self, endpoint: E) -> A:
        """A client of the running event loop; it connects when used."""
