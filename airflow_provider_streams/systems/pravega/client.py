"""A client made of small questions: what a controller and the segment stores say, blocking or asynchronous.

Rules that need several answers are generators of questions (`Steps`): each edge runs them, so that operators,
sensors and triggers share one rule.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from airflow_provider_streams.errors import NotAuthorized, ProtocolError, SystemUnavailable
from airflow_provider_streams.systems.pravega import calls, wire
from airflow_provider_streams.systems.pravega.auth import Endpoint
from airflow_provider_streams.systems.pravega.calls import Call
from airflow_provider_streams.systems.pravega.connection import Address, AsyncConnection, Connection, ConnectionLost
from airflow_provider_streams.systems.pravega.controller import AsyncController, Controller
from airflow_provider_streams.systems.pravega.credentials import Credentials, DelegationToken
from airflow_provider_streams.systems.pravega.names import Segment
from airflow_provider_streams.systems.pravega.small_read import BytesQuery, SmallRead

T = TypeVar("T")

_TRIES = 4


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """Where a segment starts and ends, in bytes; both ends are event boundaries."""

    start_offset: int
    write_offset: int
    is_sealed: bool
    last_modified_ms: int


@dataclass(frozen=True, slots=True)
class SegmentQuery:
    """Asks for the infos of a stream's segments; those that do not exist are left out of the answer."""

    stream: str
    segment_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pause:
    """Asks nothing, for a while: for rules that wait until what they began has ended."""

    seconds: float


Question: TypeAlias = Call[Any] | SegmentQuery | BytesQuery | Pause
Steps: TypeAlias = Generator[Question, Any, T]
"""A rule that asks questions, gets their answers, and returns a value."""


def ask(call: Call[T]) -> Steps[T]:
    """A call as a step of a rule, with its answer's type."""
    answer: T = yield call
    return answer


def infos(stream: str, segment_ids: Sequence[int]) -> Steps[Mapping[int, SegmentInfo]]:
    """A segment query as a step of a rule."""
    answer: Mapping[int, SegmentInfo] = yield SegmentQuery(stream, tuple(segment_ids))
    return answer


class Tokens:
    """Delegation tokens by stream, renewed before they end."""

    def __init__(self) -> None:
        self._tokens: dict[str, tuple[DelegationToken, float]] = {}

    def known(self, stream: str) -> str | None:
        """The token, unless it is about to end."""
        token, renew_at = self._tokens.get(stream, (DelegationToken(""), 0.0))
        return token.value if time.time() < renew_at else None

    def learn(self, stream: str, value: str) -> str:
        """Remember a token."""
        token = DelegationToken(value)
        self._tokens[stream] = (token, token.renew_at())
        return value

    def forget(self, stream: str) -> None:
        """Ask for a new one next time: a store refused it."""
        self._tokens.pop(stream, None)


class _Answers:
    """The answers to a `SegmentQuery` so far, and when to ask again for the rest."""

    def __init__(self, query: SegmentQuery) -> None:
        self.found: dict[int, SegmentInfo] = {}
        self.left = query.segment_ids
        self._query = query
        self._gone: set[int] = set()
        self._tries = 0
        self._refused: wire.AuthTokenCheckFailed | None = None

    def requests(self, keys: Sequence[int], token: str) -> list[wire.Message]:
        """What to send to one store; an answer's request id is the place of its segment in `keys`."""
        names = (Segment(self._query.stream, key).name for key in keys)
        return [wire.GetStreamSegmentInfo(number, name, token) for number, name in enumerate(names)]

    def take(self, keys: Sequence[int], message: wire.Message) -> None:
        """Sort one answer.

        Raises:
            ProtocolError: it is none.
        """
        match message:
            case wire.StreamSegmentInfo(number, _, True, sealed, _, modified, end, start):
                self.found[keys[number]] = SegmentInfo(start, end, sealed, modified)
            case wire.StreamSegmentInfo(number) | wire.NoSuchSegment(number):
                self._gone.add(keys[number])
            case wire.AuthTokenCheckFailed():
                self._refused = message
            case wire.WrongHost():
                pass
            case _:
                raise ProtocolError(f"a segment store answers with {type(message).__name__} when asked for an end")

    def pause(self, tokens: Tokens) -> float:
        """Ends a try: how many seconds to wait before the next one, if one is needed.

        Raises:
            NotAuthorized: a fresh token was refused.
            SystemUnavailable: too many tries.
        """
        self.left = tuple(key for key in self._query.segment_ids if key not in self.found and key not in self._gone)
        self._tries += 1
        refused, self._refused = self._refused, None
        if refused is not None:
            tokens.forget(self._query.stream)
            if self._tries > 1 and refused.code != wire.TOKEN_EXPIRED:
                raise NotAuthorized("Pravega's segment store", f"read {self._query.stream}")
        if self.left and self._tries >= _TRIES:
            raise SystemUnavailable(self._query.stream, f"{len(self.left)} segments were not found on any store")
        return 0.1 * 2**self._tries if self.left and refused is None else 0.0


def _by_store(addresses: Mapping[int, Address]) -> dict[Address, list[int]]:
    stores: dict[Address, list[int]] = {}
    for key, address in addresses.items():
        stores.setdefault(address, []).append(key)
    return stores


class Client:
    """The blocking edge. Connects when used; several threads may ask."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.tokens = Tokens()
        self._controller = Controller(endpoint, Credentials(endpoint))
        self._stores: dict[Address, Connection] = {}
        self._lock = threading.Lock()

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
        answers = _Answers(query)
        while answers.left:
            token = self.token(query.stream)
            addresses = {key: self.call(calls.store_of(query.stream, key)) for key in answers.left}
            with self._lock:
                for address, keys in _by_store(addresses).items():
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

    def _ask_store(self, answers: _Answers, address: Address, keys: list[int], token: str) -> None:
        try:
            connection = self._stores.get(address) or Connection(self.endpoint, address)
            self._stores[address] = connection
            connection.send(*answers.requests(keys, token))
            for _ in keys:
                answers.take(keys, connection.receive(self.endpoint.request_timeout_seconds))
        except ConnectionLost:
            self._drop(address)
        except ProtocolError:
            self._drop(address)
            raise

    def _drop(self, address: Address) -> None:
        connection = self._stores.pop(address, None)
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Close what was opened; a later question opens it again."""
        for address in list(self._stores):
            self._drop(address)
        self._controller.close()


class AsyncClient:
    """The asynchronous edge: the same questions and rules. Belongs to one event loop."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.tokens = Tokens()
        self._controller = AsyncController(endpoint, Credentials(endpoint))
        self._stores: dict[Address, AsyncConnection] = {}

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
        answers = _Answers(query)
        while answers.left:
            token = await self.token(query.stream)
            addresses = {key: await self.call(calls.store_of(query.stream, key)) for key in answers.left}
            for address, keys in _by_store(addresses).items():
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
                    await connection.close()
            except ConnectionLost:
                reading.lost()
            await asyncio.sleep(reading.pause(self.tokens))
        return bytes(reading.data)

    async def _ask_store(self, answers: _Answers, address: Address, keys: list[int], token: str) -> None:
        try:
            connection = self._stores.get(address) or await AsyncConnection.open(self.endpoint, address)
            self._stores[address] = connection
            await connection.send(*answers.requests(keys, token))
            for _ in keys:
                answers.take(keys, await connection.receive(self.endpoint.request_timeout_seconds))
        except ConnectionLost:
            await self._drop(address)
        except (ProtocolError, asyncio.CancelledError):
            await self._drop(address)
            raise

    async def _drop(self, address: Address) -> None:
        connection = self._stores.pop(address, None)
        if connection is not None:
            await connection.close()

    async def close(self) -> None:
        """Close what was opened."""
        for address in list(self._stores):
            await self._drop(address)
        await self._controller.close()
