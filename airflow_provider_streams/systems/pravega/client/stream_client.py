"""The two edges that ask controllers and segment stores, blocking and asynchronous.

Their questions are data (calls of the `controller`, `segment_bounds`, `stored_bytes`). Rules of several questions are
`multi_step_queries`, so that operators, sensors and triggers share them.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, TypeVar

from airflow_provider_streams.systems import io_free_rules
from airflow_provider_streams.systems.connection.backoff import Pause
from airflow_provider_streams.systems.pravega.client.controller import segment_calls
from airflow_provider_streams.systems.pravega.client.controller.call import Call
from airflow_provider_streams.systems.pravega.client.controller.channels import AsyncController, Controller
from airflow_provider_streams.systems.pravega.client.credentials import Tokens
from airflow_provider_streams.systems.pravega.client.endpoint import Endpoint
from airflow_provider_streams.systems.pravega.client.multi_step_queries import Question, Steps
from airflow_provider_streams.systems.pravega.client.segment_requests import SegmentRequests, token_for
from airflow_provider_streams.systems.pravega.client.segment_store_connection import (
    Address,
    AsyncConnection,
    Connection,
)
from airflow_provider_streams.systems.pravega.client.stored_bytes import BytesQuery, read_bytes
from airflow_provider_streams.systems.pravega.metadata.segment_bounds import SegmentQuery, find
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment

T = TypeVar("T")


class Client:
    """The blocking edge. Connects when used; several threads may ask, each on a connection of its own."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.tokens = Tokens()
        self._controller = Controller(endpoint)
        self._idle: dict[Address, Connection] = {}
        """Unused connections. A task takes one out, so that no answer goes to another task."""

    def call(self, call: Call[T]) -> T:
        """See `Controller.call`."""
        return self._controller.call(call)

    def run(self, steps: Steps[T]) -> T:
        """Answer a rule's questions until it has its value."""
        return io_free_rules.run(steps, self._answer)

    def token(self, stream: str) -> str:
        """See `token_for`."""
        return io_free_rules.run(token_for(stream, self.tokens), self.call)

    def connect(self, segment: Segment) -> Connection:
        """A new connection to the store that serves a segment now; the caller closes it."""
        return Connection(self.endpoint, self.call(segment_calls.store_of(segment.stream, segment.id)))

    def _answer(self, question: Question | SegmentRequests) -> Any:
        match question:
            case SegmentQuery():
                return io_free_rules.run(find(question, self.tokens), self._answer)
            case BytesQuery():
                return io_free_rules.run(read_bytes(question, self.tokens), self._answer)
            case SegmentRequests():
                return self._talk(question)
            case Pause(seconds):
                return time.sleep(seconds)
            case _:
                return self.call(question)

    def _talk(self, talk: SegmentRequests) -> None:
        connection = self._idle.pop(talk.address, None) or Connection(self.endpoint, talk.address)
        try:
            connection.send(*talk.requests)
            for _ in talk.requests:
                talk.take(connection.receive(self.endpoint.request_timeout_seconds))
        except BaseException:
            connection.close()
            raise
        if self._idle.setdefault(connection.address, connection) is not connection:
            connection.close()

    def close(self) -> None:
        """Close what was opened; a later question opens it again."""
        while self._idle:
            self._idle.popitem()[1].close()
        self._controller.close()


class AsyncClient:
    """The asynchronous edge: the same questions and rules. Belongs to one event loop; several tasks may ask."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.tokens = Tokens()
        self._controller = AsyncController(endpoint)
        self._idle: dict[Address, AsyncConnection] = {}

    async def call(self, call: Call[T]) -> T:
        """See `Controller.call`."""
        return await self._controller.call(call)

    async def run(self, steps: Steps[T]) -> T:
        """See `Client.run`."""
        return await io_free_rules.arun(steps, self._answer)

    async def _answer(self, question: Question | SegmentRequests) -> Any:
        match question:
            case SegmentQuery():
                return await io_free_rules.arun(find(question, self.tokens), self._answer)
            case BytesQuery():
                return await io_free_rules.arun(read_bytes(question, self.tokens), self._answer)
            case SegmentRequests():
                return await self._talk(question)
            case Pause(seconds):
                return await asyncio.sleep(seconds)
            case _:
                return await self.call(question)

    async def _talk(self, talk: SegmentRequests) -> None:
        connection = self._idle.pop(talk.address, None) or await AsyncConnection.open(self.endpoint, talk.address)
        try:
            await connection.send(*talk.requests)
            for _ in talk.requests:
                talk.take(await connection.receive(self.endpoint.request_timeout_seconds))
        except BaseException:
            connection.abort()
            raise
        if self._idle.setdefault(connection.address, connection) is not connection:
            connection.abort()

    async def close(self) -> None:
        """Close what was opened."""
        while self._idle:
            await self._idle.popitem()[1].close()
        await self._controller.close()
