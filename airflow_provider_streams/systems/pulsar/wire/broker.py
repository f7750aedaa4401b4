"""Questions to a cluster's brokers: who owns a topic, how many partitions has it, where does it end."""

from __future__ import annotations

import logging
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Self, TypeVar

from airflow_provider_streams.errors import InvalidRequest, ProtocolError, StreamsError, SystemUnavailable
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.systems.backoff import Backoff
from airflow_provider_streams.systems.pulsar.endpoint import Address, Endpoint, parse_service_url
from airflow_provider_streams.systems.pulsar.looks import Look, Place
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
    MessageIdData,
    Partitions,
    PartitionsAnswer,
    Subscribe,
    TopicsOfNamespace,
    TopicsOfNamespaceAnswer,
)
from airflow_provider_streams.systems.pulsar.wire.connection import Connection
from airflow_provider_streams.systems.pulsar.wire.failures import server_error
from airflow_provider_streams.systems.pulsar.wire.looking import look_all

log = logging.getLogger(__name__)

MOST_HOPS = 10
TOGETHER = 100
"""Topics asked for, or looked at, in one go."""
TOGETHER_PER_TOPIC = 8
"""Looks at one topic in one go: each is a consumer, and topics may have limits of those."""
MOST_PARTITIONS = 1_000_000
"""More than any cluster could hold: who says so is no broker."""

T = TypeVar("T")
Expected = TypeVar("Expected", bound=Command)


PATIENCE = Backoff(attempts=6, first_seconds=0.1, longest_seconds=5.0, chance=0.0)
"""How often a question is asked while the answer is a passing failure: for about three seconds."""


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
        self._known_owners: dict[str, Target] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections, and forget who owns which topic."""
        self._known_owners.clear()
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
        start = MessageIdData(*entry.parts[:2])
        before = self.tails([topic], start=start)[topic].mark_delete
        return before if before and before.parts[1] >= 0 else None

    def tails(
        self, topics: Iterable[str], *, start: MessageIdData = LATEST, read_compacted: bool = False
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

    def look(self, places: Sequence[Place]) -> list[Look]:
        """What a reader is sent who begins at each of these places; looked at together.

        Raises:
            SourceNotFound: one of the topics does not exist; it is not created.
            AccessError, SystemUnavailable: a broker refuses or does not answer.
        """
        found: dict[int, Look] = {}
        for some in _groups(places):
            found |= self._patiently(lambda some=some: self._look(some))  # type: ignore[misc]
        return [found[index] for index in range(len(places))]

    def subscribe(self, topic: str, start: MessageIdData) -> Consumer:
        """A consumer at the topic's owner that will be fed from the entry `start` on, after a FLOW.

        One try: whoever reads decides how often to come back.

        Raises:
            SourceNotFound: there is no such topic; it is not created.
            AccessError, SystemUnavailable: the broker refuses or does not answer.
        """
        target = self._owners([topic])[topic]
        (consumer,) = self._subscribe(self._connection(target), [(topic, start)])
        return consumer

    def _tails(self, topics: list[str], start: MessageIdData, read_compacted: bool) -> dict[str, Tail]:  # noqa: FBT001
        tails: dict[str, Tail] = {}
        for connection, owned in self._by_owner(topics):
            consumers = self._subscribe(connection, [(topic, start) for topic in owned], read_compacted=read_compacted)
            requests = [LastMessageId(consumer.id, connection.next_id()) for consumer in consumers]
            answers = self._ask_all(connection, owned, requests, LastMessageIdAnswer)
            self._close_consumers(connection, consumers)
            tails |= {
                topic: Tail(_position(answer.last), _position(answer.mark_delete, empty=True))
                for topic, answer in zip(owned, answers, strict=True)
            }
        return tails

    def _look(self, places: Mapping[int, Place]) -> dict[int, Look]:
        looks: dict[int, Look] = {}
        for connection, owned in self._by_owner([place.topic for place in places.values()]):
            ours = {index: place for index, place in places.items() if place.topic in owned}
            starts = [(place.topic, MessageIdData(place.ledger, place.entry)) for place in ours.values()]
            consumers = self._subscribe(connection, starts)
            at = dict(zip((consumer.id for consumer in consumers), ours.items(), strict=True))
            ours_by_number = {number: place for number, (_, place) in at.items()}
            met = look_all(connection, ours_by_number, self.endpoint.request_timeout_seconds)
            self._close_consumers(connection, consumers)
            looks |= {at[number][0]: look for number, look in met.items()}
        return looks

    def _by_owner(self, topics: Iterable[str]) -> Iterator[tuple[Connection, list[str]]]:
        """A connection to each owner, with the topics it owns."""
        owners = self._owners(list(dict.fromkeys(topics)))
        for target in dict.fromkeys(owners.values()):
            yield self._connection(target), [topic for topic in owners if owners[topic] == target]

    def _subscribe(
        self, connection: Connection, starts: Sequence[tuple[str, MessageIdData]], *, read_compacted: bool = False
    ) -> list[Consumer]:
        """A consumer at each of these starts of topics."""
        consumers = [Consumer(connection, connection.next_id()) for _ in starts]
        requests = [
            Subscribe(
                topic,
                f"airflow-streams-{secrets.token_hex(8)}",
                consumer_id=consumer.id,
                request_id=connection.next_id(),
                start=start,
                read_compacted=read_compacted,
            )
            for consumer, (topic, start) in zip(consumers, starts, strict=True)
        ]
        self._ask_all(connection, [topic for topic, _ in starts], requests, Command)
        return consumers

    @staticmethod
    def _close_consumers(connection: Connection, consumers: Iterable[Consumer]) -> None:
        requests = [CloseConsumer(consumer.id, connection.next_id()) for consumer in consumers]
        connection.exchange({request.request_id: request for request in requests})

    def _owners(self, topics: list[str]) -> dict[str, Target]:
        """Who owns which topic: ask the service, follow its redirects."""
        owners = {topic: self._known_owners[topic] for topic in topics if topic in self._known_owners}
        if len(owners) == len(topics):
            return owners
        service = self._service_target()
        pending = {topic: (service, False) for topic in topics if topic not in owners}
        for _ in range(MOST_HOPS):
            if not pending:
                self._known_owners |= owners
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
        requests = [Lookup(topic, connection.next_id(), authoritative, listener) for topic in topics]
        answers = dict(zip(topics, self._ask_all(connection, topics, requests, LookupAnswer), strict=True))
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
        return self._ask_all(connection, [topic], [request], expected)[0]

    def _ask_all(
        self, connection: Connection, topics: Sequence[str], requests: Sequence[Command], expected: type[Expected]
    ) -> list[Expected]:
        """The answers to requests about these topics, in their order; the first refusal is raised."""
        numbers: list[int] = [request.request_id for request in requests]  # type: ignore[attr-defined]
        answers = connection.exchange(dict(zip(numbers, requests, strict=True)))
        found: list[Expected] = []
        for topic, number in zip(topics, numbers, strict=True):
            answer = answers[number]
            if isinstance(answer, Error):
                action = f"read {topic}"
                raise server_error(answer.error, answer.message, where=connection.where, topic=topic, action=action)
            if not isinstance(answer, expected):
                raise ProtocolError(f"{connection.where} answers with {type(answer).__name__}")
            found.append(answer)
        return found

    def _patiently(self, ask: Callable[[], T]) -> T:
        """Ask again, over new connections, while the failure is a passing one."""
        for tries in range(PATIENCE.attempts - 1):
            try:
                return ask()
            except StreamsError as error:
                self.close()
                if not error.retryable:
                    raise
                log.info("asking again: %s", error)
            time.sleep(PATIENCE.seconds(tries))
        return ask()


def _groups(places: Sequence[Place]) -> Iterator[dict[int, Place]]:
    """The places by their index, so many at a time, and of one topic no more than few."""
    left = dict(enumerate(places))
    while left:
        counts: Counter[str] = Counter()
        group: dict[int, Place] = {}
        for index, place in left.items():
            counts[place.topic] += 1
            if counts[place.topic] <= TOGETHER_PER_TOPIC:
                group[index] = place
            if len(group) == TOGETHER:
                break
        yield group
        left = {index: place for index, place in left.items() if index not in group}


def _position(message_id: MessageIdData | None, *, empty: bool = False) -> Position | None:
    """As a position; None for the id of an empty topic, unless asked for."""
    if message_id is None or (message_id.entry < 0 and not empty):
        return None
    return Position.of(message_id.ledger, message_id.entry, message_id.batch_index)
