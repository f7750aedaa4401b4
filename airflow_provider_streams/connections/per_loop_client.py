"""A client that belongs to an event loop: what another loop has opened cannot be used in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar


class Closing(Protocol):
    """A client that can be closed."""

    async def close(self) -> None:
        """Close its connections."""


C = TypeVar("C", bound=Closing)


class PerLoopClient(Generic[C]):
    """The client of the running event loop.

    Args:
        make: makes one, in that loop.
    """

    def __init__(self, make: Callable[[], Awaitable[C]]) -> None:
        self._make = make
        self._client: C | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def get(self) -> C:
        """The same for all tasks of a loop."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            made = await self._make()
            if self._client is None or self._loop is not loop:  # no other task was quicker
                self._client, self._loop = made, loop
        return self._client

    async def close(self) -> None:
        """Close what is open."""
        if self._client is not None:
            await self._client.close()
            self._client = None
