"""The two edges that ask controllers and segment stores, blocking and asynchronous.

What they ask is data (`calls`, `segment_infos`, `small_read`), and rules of several questions are `steps`, so that
operators, sensors and triggers share them.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any, TypeVar

from airflow_provider_streams.errors import ConnectionLost
from airflow_provider_streams.systems.pravega import calls
from airflow_provider_streams.systems.pravega.calls import Call
from airflow_provider_streams.systems.pravega.connection import Address, AsyncConnection, Connection
from airflow_provider_streams.systems.pravega.controller import AsyncController, Controller
from airflow_provider_streams.systems.pravega.credentials import Credentials, Tokens
from airflow_provider_streams.systems.pravega.endpoint import Endpoint
from airflow_provider_streams.systems.pravega.names import Segment
from airflow_provider_streams.systems.pravega.read_bytes import BytesQuery, SmallRead
from airflow_provider_streams.systems.pravega.segment_infos import Answers, SegmentInfo, SegmentQuery, by_store
from airflow_provider_streams.systems.pravega.steps import Pause, Question, Steps

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
        answer: Any = None
        failure: Exception | None = None
        while True:
            try:
                question = steps.throw(failure) if failure else steps.send(answer)
            except StopIteration as done:
                value: T = done.value
                return value
            answer = failure = None
            try:
                answer = self._answer(question)
            except Exception as error:  # noqa: BLE001 - the rule decides what a failure means
                failure = error

    def token(self, stream: str) -> str:
        """A delegation token to read a stream, fresh enough to use now."""
        known = self.tokens.known(stream)
        return self.tokens.learn(stream, self.call(calls.delegation_token(stream))) if known is None else known

    def connect(self, segment: Segment) -> Connection:
        """A new connection to the store that serves a segment now; the caller closes it.

        Raises:
            SystemUnavailable: controller or store do not answer.
        """
        return Connection(self.endpoint, self.call(calls.store_of(segment.stream, segment.id)))

    def _answer(self, question: Question) -> Any:
        match question:
            case SegmentQuery():
                return self._infos(question)
            case BytesQuery():
                return self._bytes(question)
            case Pause(seconds):
                return time.sleep(seconds)
            case _:
                return self.call(question)

    def _infos(self, query: SegmentQuery) -> dict[int, SegmentInfo]:
        answers = Answers(query)
        while answers.left:
            token = self.token(query.stream)
            addresses = {key: self.call(calls.store_of(query.stream, key)) for key in answers.left}
            for address, keys in by_store(addresses).items():
                self._ask_store(answers, address, keys, token)
            time.sleep(answers.pause(self.tokens))
        return answers.found

    def _bytes(self, query: BytesQuery) -> bytes:
        reading = SmallRead(query)
        while reading.left:
            token = self.token(query.segment.stream)
            address = self.call(calls.store_of(query.segment.stream, query.segment.id))
            try:
                with Connection(self.endpoint, address) as connection:
                    connection.send(reading.request(token))
                    reading.take(connection.receive(self.endpoint.request_timeout_seconds))
            except ConnectionLost:
                reading.lost()
            time.sleep(reading.pause(self.tokens))
        return bytes(reading.data)

    def _ask_store(self, answers: Answers, address: Address, keys: list[int], token: str) -> None:
        with contextlib.suppress(ConnectionLost):
            connection = self._idle.pop(address, None) or Connection(self.endpoint, address)
            try:
                requests = answers.requests(keys, token)
                connection.send(*requests)
                for _ in requests:
                    answers.take(connection.receive(self.endpoint.request_timeout_seconds))
            except BaseException:
                connection.close()  # an answer that is still to come would be the next one's
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
        answer: Any = None
        failure: Exception | None = None
        while True:
            try:
                question = steps.throw(failure) if failure else steps.send(answer)
            except StopIteration as done:
                value: T = done.value
                return value
            answer = failure = None
            try:
                answer = await self._answer(question)
            except Exception as error:  # noqa: BLE001 - the rule decides what a failure means
                failure = error

    async def token(self, stream: str) -> str:
        """See `Client.token`."""
        known = self.tokens.known(stream)
        return self.tokens.learn(stream, await self.call(calls.delegation_token(stream))) if known is None else known

    async def _answer(self, question: Question) -> Any:
        match question:
            case SegmentQuery():
                return await self._infos(question)
            case BytesQuery():
                return await self._bytes(question)
            case Pause(seconds):
                return await asyncio.sleep(seconds)
            case _:
                return await self.call(question)

    async def _infos(self, query: SegmentQuery) -> dict[int, SegmentInfo]:
        answers = Answers(query)
        while answers.left:
            token = await self.token(query.stream)
            addresses = {key: await self.call(calls.store_of(query.stream, key)) for key in answers.left}
            for address, keys in by_store(addresses).items():
                await self._ask_store(answers, address, keys, token)
            await asyncio.sleep(answers.pause(self.tokens))
        return answers.found

    async def _bytes(self, query: BytesQuery) -> bytes:
        reading = SmallRead(query)
        while reading.left:
            token = await self.token(query.segment.stream)
            address = await self.call(calls.store_of(query.segment.stream, query.segment.id))
            try:
                connection = await AsyncConnection.open(self.endpoint, address)
                try:
                    await connection.send(reading.request(token))
                    reading.take(await connection.receive(self.endpoint.request_timeout_seconds))
                finally:
                    connection.abort()
            except ConnectionLost:
                reading.lost()
            await asyncio.sleep(reading.pause(self.tokens))
        return bytes(reading.data)

    async def _ask_store(self, answers: Answers, address: Address, keys: list[int], token: str) -> None:
        with contextlib.suppress(ConnectionLost):
            connection = self._idle.pop(address, None) or await AsyncConnection.open(self.endpoint, address)
            try:
                requests = answers.requests(keys, token)
                await connection.send(*requests)
                for _ in requests:
                    answers.take(await connection.receive(self.endpoint.request_timeout_seconds))
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
