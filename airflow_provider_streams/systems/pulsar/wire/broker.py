"""Questions to a cluster's brokers: who owns a topic, how many partitions has it, where does it end."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, Self, TypeVar

from airflow_provider_streams.errors import InvalidRequest, ProtocolError, StreamsError, SystemUnavailable
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.systems.pulsar.auth import Address, Endpoint, parse_service_url
from airflow_provider_streams.systems.pulsar.wire.commands import (
    LATEST,
    LOOKUP_CONNECT,
    LOOKUP_REDIRECT,
    CloseConsumer,
    Command,
    Error,
    LastMessageId,
    LastMessageIdAnswer,
    Lookup,
    LookupAnswer,
    MessageId,
    Partitions,
    PartitionsAnswer,
    Subscribe,
    TopicsOfNamespace,
    TopicsOfNamespaceAnswer,
)
from airflow_provider_streams.systems.pulsar.wire.connection import Connection
from airflow_provider_streams.systems.pulsar.wire.failures import server_error

log = logging.getLogger(__name__)

MOST_HOPS = 10
TOGETHER = 100
"""Topics asked for in one go."""
MOST_PARTITIONS = 1_000_000
"""More than any cluster could hold: who says so is no broker."""

T = TypeVar("T")
Expected = TypeVar("Expected", bound=Command)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits between tries, each `factor` times the one before, none longer than `longest_seconds`."""

    first_seconds: float = 0.1
    factor: float = 2.0
    longest_seconds: float = 5.0

    def waits(self) -> Iterator[float]:
        """The waits in seconds, without end."""
        wait = self.first_seconds
        while True:
            yield wait
            wait = min(wait * self.factor, self.longest_seconds)


TRIES = 6
"""How often a question is asked while the answer is a passing failure: about three seconds."""


class Target(NamedTuple):
    """Where a topic's owner is called: at `address`, as `broker` behind it if that is a proxy."""

    address: Address
    broker: Address | None = None


class Tail(NamedTuple):
    """The end of a topic, as a consumer sees it."""

    last: Position | None
    """The last message that can be sent (Pulsar's ids; batch index -1 outside a batch); None: there is none.
    It may lie in a ledger that is deleted."""
    mark_delete: Position | None
    """The entry before the consumer's first one; entries up to it will not be sent to it. (ledger, entry, -1)"""


class Consumer(NamedTuple):
    """A subscription of ours on a connection."""

    connection: Connection
    id: int


class BrokerClient:
    """Asks a cluster's brokers, over one connection to each, opened when needed. Leaves nothing behind.

    Not for several threads, and not to be kept over a fork.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._connections: dict[Target, Connection] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        while self._connections:
            self._connections.popitem()[1].close()

    def partitions(self, topic: str) -> int:
        """How many partitions the topic has; 0: it is not partitioned, or does not exist. Creates nothing.

        Raises:
            AccessError, SystemUnavailable: the broker refuses or does not answer.
        """

        def ask() -> int:
            connection = self._service()
            request = Partitions(topic, connection.next_id())
            answer = self._ask(connection, request, PartitionsAnswer, topic)
            if answer.error is not None:
                raise server_error(
                    answer.error, answer.message, where=connection.where, topic=topic, action=f"look at {topic}"
                )
            if answer.partitions > MOST_PARTITIONS:
                raise ProtocolError(f"{connection.where}: {topic} cannot have {answer.partitions} partitions")
            return answer.partitions

        return self._patiently(ask)

    def topics(self, namespace: str) -> tuple[str, ...]:
        """The persistent topics of `tenant/namespace`, partitions one by one, sorted.

        Raises:
            AccessError, SystemUnavailable: the broker refuses or does not answer.
        """

        def ask() -> tuple[str, ...]:
            connection = self._service()
            request = TopicsOfNamespace(connection.next_id(), namespace)
            answer = self._ask(connection, request, TopicsOfNamespaceAnswer, namespace)
            return tuple(sorted(answer.topics))

        return self._patiently(ask)

    def last_message_id(self, topic: str, *, read_compacted: bool = False) -> Position | None:
        """The last message that can be sent; None: the topic is empty. A topic is one partition.

        Raises:
            SourceNotFound: there is no such topic; it is not created.
            AccessError, SystemUnavailable: the broker refuses or does not answer.
        """
        return self.tails([topic], read_compacted=read_compacted)[topic].last

    def last_message_ids(self, topics: Iterable[str], *, read_compacted: bool = False) -> dict[str, Position | None]:
        """`last_message_id` of many topics, asked together.

        Raises:
            SourceNotFound: one of them does not exist.
            AccessError, SystemUnavailable: a broker refuses or does not answer.
        """
        tails = self.tails(topics, read_compacted=read_compacted)
        return {topic: tail.last for topic, tail in tails.items()}

    def entry_before(self, topic: str, entry: Position) -> Position | None:
        """The stored entry before this one, across ledgers, as (ledger, entry, -1); None: there is none.

        Raises:
            SourceNotFound: there is no such topic; it is not created.
            AccessError, SystemUnavailable: the broker refuses or does not answer.
        """
        start = MessageId(*entry.parts[:2])
        before = self.tails([topic], start=start)[topic].mark_delete
        return before if before and before.parts[1] >= 0 else None

    def tails(
        self, topics: Iterable[str], *, start: MessageId = LATEST, read_compacted: bool = False
    ) -> dict[str, Tail]:
        """The ends of topics, as consumers that begin at `start` see them; asked together.

        Raises:
            SourceNotFound: one of them does not exist.
            AccessError, SystemUnavailable: a broker refuses or does not answer.
        """
        names = list(dict.fromkeys(topics))
        found: dict[str, Tail] = {}
        for first in range(0, len(names), TOGETHER):
            some = names[first : first + TOGETHER]
            found |= self._patiently(lambda some=some: self._tails(some, start, read_compacted))  # type: ignore[misc]
        return found

    def subscribe(self, topic: str, start: MessageId) -> Consumer:
        """A consumer at the topic's owner that will be fed from the entry `start` on, after a FLOW.

        One try: whoever reads decides how often to come back.

        Raises:
            SourceNotFound: there is no such topic; it is not created.
            AccessError, SystemUnavailable: the broker refuses or does not answer.
        """
        target = self._owners([topic])[topic]
        return self._subscribe(self._connection(target), [topic], start, read_compacted=False)[topic]

    def _tails(self, topics: list[str], start: MessageId, read_compacted: bool) -> dict[str, Tail]:  # noqa: FBT001
        owners = self._owners(topics)
        tails: dict[str, Tail] = {}
        for target in dict.fromkeys(owners.values()):
            connection = self._connection(target)
            owned = [topic for topic in topics if owners[topic] == target]
            consumers = self._subscribe(connection, owned, start, read_compacted=read_compacted)
            requests = {
                topic: LastMessageId(consumer.id, connection.next_id()) for topic, consumer in consumers.items()
            }
            answers = self._ask_all(connection, requests, LastMessageIdAnswer)
            connection.exchange(
                {
                    number: CloseConsumer(consumer.id, number)
                    for consumer, number in ((consumer, connection.next_id()) for consumer in consumers.values())
                }
            )
            tails |= {
                topic: Tail(_position(answer.last), _position(answer.mark_delete, empty=True))
                for topic, answer in answers.items()
            }
        return tails

    def _subscribe(
        self, connection: Connection, topics: list[str], start: MessageId, *, read_compacted: bool
    ) -> dict[str, Consumer]:
        consumers = {topic: Consumer(connection, connection.next_id()) for topic in topics}
        requests = {
            topic: Subscribe(
                topic,
                f"airflow-streams-{secrets.token_hex(8)}",
                consumer_id=consumer.id,
                request_id=connection.next_id(),
                start=start,
                read_compacted=read_compacted,
            )
            for topic, consumer in consumers.items()
        }
        self._ask_all(connection, requests, Command)
        return consumers

    def _owners(self, topics: list[str]) -> dict[str, Target]:
        """Who owns which topic: ask the service, follow its redirects."""
        owners: dict[str, Target] = {}
        service = self._service_target()
        pending = dict.fromkeys(topics, (service, False))
        for _ in range(MOST_HOPS):
            if not pending:
                return owners
            asked, pending = pending, {}
            for step in dict.fromkeys(asked.values()):
                connection = self._connection(step[0])
                some = [topic for topic in asked if asked[topic] == step]
                for topic, answer in self._look_up(connection, some, authoritative=step[1]).items():
                    target = self._named(answer, service)
                    if answer.response == LOOKUP_CONNECT:
                        owners[topic] = target
                    else:
                        pending[topic] = (target, answer.authoritative)
        raise SystemUnavailable(str(service.address), f"no owner of {next(iter(pending))} after {MOST_HOPS} redirects")

    def _look_up(self, connection: Connection, topics: list[str], *, authoritative: bool) -> dict[str, LookupAnswer]:
        listener = self.endpoint.listener_name or None
        requests = {topic: Lookup(topic, connection.next_id(), authoritative, listener) for topic in topics}
        answers = self._ask_all(connection, requests, LookupAnswer)
        for topic, answer in answers.items():
            if answer.response not in {LOOKUP_CONNECT, LOOKUP_REDIRECT}:
                raise server_error(
                    answer.error or 0, answer.message, where=connection.where, topic=topic, action=f"look up {topic}"
                )
        return answers

    def _named(self, answer: LookupAnswer, service: Target) -> Target:
        """Where a lookup's answer sends us."""
        url = answer.broker_url_tls if self.endpoint.tls else answer.broker_url
        try:
            broker = parse_service_url(url)[0]
        except InvalidRequest as error:
            raise ProtocolError(f"{service.address} names a broker without a usable address: {error}") from error
        if answer.proxy_through_service_url:
            return Target(service.address, broker)
        if self.endpoint.rewrite_redirects:
            broker = replace(broker, host=service.address.host)
        self.endpoint.check_led_to(str(service.address), broker)
        # the very connection that was asked, under whatever name the broker calls itself
        return service if broker == service.address else Target(broker)

    def _service_target(self) -> Target:
        """The first of the given hosts that we can talk to."""
        failures = []
        for address in self.endpoint.addresses:
            try:
                self._connection(Target(address))
            except SystemUnavailable as error:
                failures.append(error)
            else:
                return Target(address)
        if len(failures) == 1:
            raise failures[0]
        raise SystemUnavailable(self.endpoint.service_url, "; ".join(map(str, failures)))

    def _service(self) -> Connection:
        return self._connection(self._service_target())

    def _connection(self, target: Target) -> Connection:
        if target not in self._connections:
            self._connections[target] = Connection(target.address, self.endpoint, behind_proxy=target.broker)
        return self._connections[target]

    def _ask(self, connection: Connection, request: Command, expected: type[Expected], topic: str) -> Expected:
        return self._ask_all(connection, {topic: request}, expected)[topic]

    def _ask_all(
        self, connection: Connection, requests: Mapping[str, Command], expected: type[Expected]
    ) -> dict[str, Expected]:
        """The answers by topic; the first refusal is raised."""
        by_number = {request.request_id: topic for topic, request in requests.items()}  # type: ignore[attr-defined]
        answers = connection.exchange({number: requests[topic] for number, topic in by_number.items()})
        found: dict[str, Expected] = {}
        for number, topic in by_number.items():
            answer = answers[number]
            if isinstance(answer, Error):
                action = f"read {topic}"
                raise server_error(answer.error, answer.message, where=connection.where, topic=topic, action=action)
            if not isinstance(answer, expected):
                raise ProtocolError(f"{connection.where} answers with {type(answer).__name__}")
            found[topic] = answer
        return found

    def _patiently(self, ask: Callable[[], T]) -> T:
        """Ask again, over new connections, while the failure is a passing one."""
        waits = Backoff().waits()
        for _ in range(TRIES - 1):
            try:
                return ask()
            except StreamsError as error:
                self.close()
                if not error.retryable:
                    raise
                log.info("asking again: %s", error)
            time.sleep(next(waits))
        return ask()


def _position(message_id: MessageId | None, *, empty: bool = False) -> Position | None:
    """As a position; None for the id of an empty topic, unless asked for."""
    if message_id is None or (message_id.entry < 0 and not empty):
        return None
    return Position.of(message_id.ledger, message_id.entry, message_id.batch_index)
