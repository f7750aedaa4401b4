"""One asynchronous client per cluster and event loop: a thousand waiting triggers share a few connections."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from airflow_provider_streams.systems.backoff import Backoff
from airflow_provider_streams.systems.pulsar.admin.client import AsyncAdminClient
from airflow_provider_streams.systems.pulsar.endpoint import Endpoint


@dataclass(slots=True)
class _Shared:
    client: AsyncAdminClient
    users: int = 0


_BY_LOOP: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Endpoint, _Shared]] = WeakKeyDictionary()


def acquire(endpoint: Endpoint) -> AsyncAdminClient:
    """The running loop's client of an endpoint, which sends each call once; pair it with `release`."""
    clients = _BY_LOOP.setdefault(asyncio.get_running_loop(), {})
    if endpoint not in clients:
        # whoever polls has a patience of its own
        clients[endpoint] = _Shared(AsyncAdminClient(endpoint, backoff=Backoff(attempts=1)))
    shared = clients[endpoint]
    shared.users += 1
    return shared.client


async def release(endpoint: Endpoint) -> None:
    """The last one to give it back closes its connections."""
    clients = _BY_LOOP.get(asyncio.get_running_loop(), {})
    shared = clients.get(endpoint)
    if shared is None:
        return
    shared.users -= 1
    if not shared.users:
        del clients[endpoint]
        await shared.client.close()
