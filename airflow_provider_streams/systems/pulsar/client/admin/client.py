"""The two edges of the admin API, blocking and asynchronous, and the clients that an event loop shares."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from airflow_provider_streams.systems.connection.backoff import Backoff
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.systems.rest.client import CONCURRENCY, AsyncRestClient, RestClient

__all__ = ["CONCURRENCY", "AdminClient", "AsyncAdminClient", "acquire", "release"]


class AdminClient(RestClient[Endpoint]):
    """Calls the admin API and waits."""


class AsyncAdminClient(AsyncRestClient[Endpoint]):
    """Calls the admin API from one event loop."""


@dataclass(slots=True)
class _Shared:
    client: AsyncAdminClient
    users: int = 0


_BY_LOOP: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Endpoint, _Shared]] = WeakKeyDictionary()
"""A thousand waiting triggers share a few connections."""


def acquire(endpoint: Endpoint) -> AsyncAdminClient:
    """The running loop's client of an endpoint, which sends each call once; pair it with `release`."""
    clients = _BY_LOOP.setdefault(asyncio.get_running_loop(), {})
    if endpoint not in clients:
        # callers that poll repeat calls themselves
        clients[endpoint] = _Shared(AsyncAdminClient(endpoint, backoff=Backoff(attempts=1)))
    shared = clients[endpoint]
    shared.users += 1
    return shared.client


async def release(endpoint: Endpoint) -> None:
    """Give a client back; the last user closes its connections."""
    clients = _BY_LOOP.get(asyncio.get_running_loop(), {})
    shared = clients.get(endpoint)
    if shared is None:
        return
    shared.users -= 1
    if not shared.users:
        del clients[endpoint]
        await shared.client.close()
