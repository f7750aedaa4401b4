"""The two edges that ask controllers and segment stores, blocking and asynchronous.

What they ask is data (`calls`, `segment_infos`, `small_read`), and rules of several questions are `steps`, so that
operators, sensors and triggers share them.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, TypeVar

from airflow_provider_streams.systems import rules
from airflow_provider_streams.systems.backoff import Pause
from airflow_provider_streams.systems.pravega import calls
from airflow_provider_streams.systems.pravega.calls import Call
from airflow_provider_streams.systems.pravega.connection import Address, AsyncConnection, Connection
from airflow_provider_streams.systems.pravega.controller import AsyncController, Controller
from airflow_provider_streams.systems.pravega.credentials import Credentials, Tokens
from airflow_provider_streams.systems.pravega.endpoint import Endpoint
from airflow_provider_streams.systems.pravega.names import Segment
from airflow_provider_streams.systems.pravega.read_bytes import BytesQuery, read_bytes
from airflow_provider_streams.systems.pravega.segment_infos import SegmentQuery, find
from airflow_provider_streams.systems.pravega.steps import Question, Steps
from airflow_provider_streams.systems.pravega.talk import Talk, token_for

T = TypeVar("T")


class Client:
    """The blocking edge. Connects when used; several threads may ask, each on a connection of its own."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.tokens = Tokens()
        self._controller = Controller(endpoint, Credentials(endpoint))
        self._idle: dict[Address, Connection] = {}
        """Connections that nobody uses now: whoever asks takes one out, so that no answer goes to another."""

    def call(self, call: Call[T]) -> T:
        """See `Controller.call`."""
        return self._controller.call(call)

    def run(self, steps: Steps[T]) -> T:
        """Answer a rule's questions until it has its value."""
        return rules.run(steps, self._answer)

    def token(self, stream: str) -> str:
        """See `token_for`."""
        return rules.run(token_for(stream, self.tokens), self.call)

    def connect(self, segment: Segment) -> Connection:
        """A new connection to the store that serves a segment now; the caller closes it.

        Raises:
            SystemUnavailable: controller or store do not answer.
        """
        return Connection(self.endpoint, self.call(calls.store_of(segment.stream, segment.id)))

    def _answer(self, question: Question | Talk) -> Any:
        match question:
            case SegmentQuery():
                return rules.run(find(question, self.tokens), self._answer)
            case BytesQuery():
                return rules.run(read_bytes(question, self.tokens), self._answer)
            case Talk():
                return self._talk(question)
            case Pause(seconds):
                return time.sleep(seconds)
            case _:
                return self.call(question)

    def _talk(self, talk: Talk) -> None:
        connection = self._idle.pop(talk.address, None) or Connection(self.endpoint, talk.address)
        try:
            connection.send(*talk.requests)
            for _ in talk.requests:
                talk.take(connection.receive(self.endpoint.request_timeout_seconds))
        except BaseException:
            connection.close()
            raise
        self._keep(connection)

    def _keep(self, connection: Connection) -> None:
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
        self._controller = AsyncController(endpoint, Credentials(endpoint))
        self._idle: dict[Address, AsyncConnection] = {}

    async def call(self, call: Call[T]) -> T:
        """See `Controller.call`."""
        return await self._controller.call(call)

    async def run(self, steps: Steps[T]) -> T:
        """See `Client.run`."""
        return await rules.arun(steps, self._answer)

    async def _answer(self, question: Question | Talk) -> Any:
        match question:
            case SegmentQuery():
                return await rules.arun(find(question, self.tokens), self._answer)
            case BytesQuery():
                return await rules.arun(read_bytes(question, self.tokens), self._answer)
            case Talk():
                return await self._talk(question)
            case Pause(seconds):
                return await asyncio.sleep(seconds)
            case _:
                return await self.call(question)

    async def _talk(self, talk: Talk) -> None:
        connection = self._idle.pop(talk.address, None) or await AsyncConnection.open(self.endpoint, talk.address)
        try:
            await connection.send(*talk.requests)
            for _ in talk.requests:
                talk.take(await connection.receive(self.endpoint.request_timeout_seconds))
        except BaseException:
            connection.abort()
            raise
        self._keep(connection)

    def _keep(self, connection: AsyncConnection) -> None:
        if self._idle.setdefault(connection.address, connection) is not connection:
            connection.abort()

    async def close(self) -> None:
        """Close what was opened."""
        while self._idle:
            await self._idle.popitem()[1].close()
        await self._controller.close()
