"""A client is one loop's, and the same for all of its tasks."""

from __future__ import annotations

import asyncio

from airflow_provider_streams.connections.per_loop_client import PerLoopClient
from airflow_provider_streams.hooks.schema_registry import SchemaRegistryHook


class Client:
    is_closed = False

    async def close(self) -> None:
        self.is_closed = True


async def _made() -> Client:
    await asyncio.sleep(0)  # as where a connection is asked for
    return Client()


def test_tasks_at_once_share_one_client_and_another_loop_has_its_own():
    clients = PerLoopClient(_made)

    async def several():
        return await asyncio.gather(*(clients.get() for _ in range(3)))

    first, second = asyncio.run(several()), asyncio.run(several())
    assert len(set(first)) == len(set(second)) == 1
    assert first[0] is not second[0]


def test_what_was_closed_is_made_anew():
    clients = PerLoopClient(_made)

    async def twice():
        first = await clients.get()
        await clients.close()
        return first, await clients.get()

    first, second = asyncio.run(twice())
    assert first.is_closed
    assert first is not second
    assert not second.is_closed


def test_tasks_that_ask_a_registry_at_once_share_one_client():
    hook = SchemaRegistryHook(options={"url": "http://registry:9092"})

    async def several():
        found = await asyncio.gather(*(hook.aclient() for _ in range(3)))
        await hook.aclose()
        return found

    assert len(set(asyncio.run(several()))) == 1
