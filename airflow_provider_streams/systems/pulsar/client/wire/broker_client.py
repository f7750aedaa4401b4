"""Questions to a cluster's brokers: who owns a topic, where it ends, and what a reader is sent from a place on."""

from __future__ import annotations

import logging
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple, Self, TypeVar

from airflow_provider_streams.errors import InvalidRequest, ProtocolError, StreamsError, SystemUnavailable, as_clause
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.connection.backoff import Backoff
from airflow_provider_streams.systems.pulsar.client.endpoint import Address, Endpoint, parse_service_url
from airflow_provider_streams.systems.pulsar.client.wire import commands_pb2 as pb
from airflow_provider_streams.systems.pulsar.client.wire.commands import (
    Command,
    Place,
    as_text,
    lookup_error,
    place_of,
    server_error,
)
from airflow_provider_streams.systems.pulsar.client.wire.connection import Connection
from airflow_provider_streams.systems.pulsar.client.wire.probe_consumers import probe_all
from airflow_provider_streams.systems.pulsar.planning.entry_probe import EntryProbe, ProbePoint

log = logging.getLogger(__name__)

LATEST: Final = ((1 << 63) - 1, (1 << 63) - 1)
"""The place after a topic's last entry."""
MOST_HOPS = 10
TOGETHER = 100
"""Topics that one round of requests covers."""
TOGETHER_PER_TOPIC = 8
"""Probes of one topic in one round: each is a consumer, and topics may limit those."""
PATIENCE = Backoff(attempts=6, first_seconds=0.1, longest_seconds=5.0, chance=0.0)
"""How often a question is repeated after a passing failure: for about three seconds."""

T = TypeVar("T")
Expected = TypeVar("Expected", bound=Command)


class Target(NamedTuple):
    """How to reach a topic's owner: at `address`, or the `broker` that the proxy at `address` forwards to."""

    address: Address
    broker: Address | None = None


class Consumer(NamedTuple):
    """A subscription of ours on a connection."""

    connection: Connection
    id: int


class BrokerClient:
    """Asks a cluster's brokers, over one connection to each, opened when needed. It creates and leaves nothing.

    Not for several threads, and not to be kept over a fork. All questions raise SourceNotFound if a topic does not
    exist, and AccessError or SystemUnavailable if a broker refuses or does not answer.
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

    def last_message_ids(self, topics: Iterable[str]) -> dict[str, Position | None]:
        """The last message that can be sent of each topic, which is one partition; None: it is empty.

        The batch index is -1 outside a batch. The message may lie in a ledger that is deleted.
        """
        return {topic: _position(answer.last_message_id) for topic, answer in self._ends(topics, LATEST).items()}

    def entry_before(self, topic: str, entry: Place) -> Place | None:
        """The stored entry before this one, across ledgers; None: there is none."""
        return place_of(self._ends([topic], entry)[topic].consumer_mark_delete_position)

    def probe(self, places: Sequence[ProbePoint]) -> list[EntryProbe]:
        """What a reader is sent from each of these places on."""
        found: dict[int, EntryProbe] = {}
        for some in _groups(places):
            found |= self._patiently(partial(self._probe, some))
        return [found[index] for index in range(len(places))]

    def subscribe(self, topic: str, start: Place) -> Consumer:
        """A consumer at the topic's owner, which sends entries from `start` on after a FLOW. Tries once."""
        target = self._owners([topic])[topic]
        (consumer,) = self._subscribe(self._connection(target), [(topic, start)])
        return consumer

    def _ends(self, topics: Iterable[str], start: Place) -> dict[str, pb.CommandGetLastMessageIdResponse]:
        """The ends of topics, as consumers that begin at `start` see them."""
        names = list(dict.fromkeys(topics))
        found: dict[str, pb.CommandGetLastMessageIdResponse] = {}
        for first in range(0, len(names), TOGETHER):
            found |= self._patiently(partial(self._ends_of, names[first : first + TOGETHER], start))
        return found

    def _ends_of(self, topics: list[str], start: Place) -> dict[str, pb.CommandGetLastMessageIdResponse]:
        ends: dict[str, pb.CommandGetLastMessageIdResponse] = {}
        for connection, owned in self._by_owner(topics):
            consumers = self._subscribe(connection, [(topic, start) for topic in owned])
            requests = [
                pb.CommandGetLastMessageId(consumer_id=consumer.id, request_id=connection.next_id())
                for consumer in consumers
            ]
            answers = self._ask_all(connection, owned, requests, pb.CommandGetLastMessageIdResponse)
            self._close_consumers(connection, consumers)
            ends |= zip(owned, answers, strict=True)
        return ends

    def _probe(self, places: Mapping[int, ProbePoint]) -> dict[int, EntryProbe]:
        probes: dict[int, EntryProbe] = {}
        for connection, owned in self._by_owner([place.topic for place in places.values()]):
            ours = {index: place for index, place in places.items() if place.topic in owned}
            starts = [(place.topic, (place.ledger, place.entry)) for place in ours.values()]
            consumers = self._subscribe(connection, starts)
            ids = [consumer.id for consumer in consumers]
            met = probe_all(
                connection, dict(zip(ids, ours.values(), strict=True)), self.endpoint.request_timeout_seconds
            )
            self._close_consumers(connection, consumers)
            probes |= {index: met[number] for index, number in zip(ours, ids, strict=True)}
        return probes

    def _by_owner(self, topics: Iterable[str]) -> Iterator[tuple[Connection, list[str]]]:
        """A connection to each owner, with the topics it owns."""
        owners = self._owners(list(dict.fromkeys(topics)))
        for target in dict.fromkeys(owners.values()):
            yield self._connection(target), [topic for topic in owners if owners[topic] == target]

    def _subscribe(self, connection: Connection, starts: Sequence[tuple[str, Place]]) -> list[Consumer]:
        """A consumer at the start of each of these topics."""
        consumers = [Consumer(connection, connection.next_id()) for _ in starts]
        requests = [
            pb.CommandSubscribe(
                topic=topic,
                subscription=f"airflow-streams-{secrets.token_hex(8)}",
                subType=pb.CommandSubscribe.Exclusive,
                consumer_id=consumer.id,
                request_id=connection.next_id(),
                durable=False,
                start_message_id=_message_id(*start),
                read_compacted=False,
                force_topic_creation=False,
            )
            for consumer, (topic, start) in zip(consumers, starts, strict=True)
        ]
        self._ask_all(connection, [topic for topic, _ in starts], requests, pb.CommandSuccess)
        return consumers

    @staticmethod
    def _close_consumers(connection: Connection, consumers: Iterable[Consumer]) -> None:
        requests = [
            pb.CommandCloseConsumer(consumer_id=consumer.id, request_id=connection.next_id()) for consumer in consumers
        ]
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
                    if answer.response == pb.CommandLookupTopicResponse.Connect:
                        owners[topic] = target
                    else:
                        pending[topic] = (target, answer.authoritative)
        raise SystemUnavailable(str(service.address), f"no owner of {next(iter(pending))} after {MOST_HOPS} redirects")

    def _look_up(
        self, connection: Connection, topics: list[str], *, authoritative: bool
    ) -> dict[str, pb.CommandLookupTopicResponse]:
        requests = [
            pb.CommandLookupTopic(
                topic=topic,
                request_id=connection.next_id(),
                authoritative=authoritative,
                advertised_listener_name=self.endpoint.listener_name or None,
            )
            for topic in topics
        ]
        answers = self._ask_all(connection, topics, requests, pb.CommandLookupTopicResponse)
        for topic, answer in zip(topics, answers, strict=True):
            if answer.response not in {answer.Connect, answer.Redirect}:
                listener = self.endpoint.listener_name
                raise lookup_error(answer, where=connection.where, topic=topic, listener=listener)
        return dict(zip(topics, answers, strict=True))

    def _named(self, answer: pb.CommandLookupTopicResponse, service: Target) -> Target:
        """The broker that a lookup's answer names."""
        url = as_text(answer.brokerServiceUrlTls if self.endpoint.tls else answer.brokerServiceUrl)
        try:
            broker = parse_service_url(url)[0]
        except InvalidRequest as error:
            raise ProtocolError(f"{service.address} names a broker without a usable address: {error}") from error
        if answer.proxy_through_service_url:
            return Target(service.address, broker)
        if self.endpoint.rewrite_redirects:
            broker = replace(broker, host=service.address.host)
        self.endpoint.check_led_to(str(service.address), broker)
        return Target(broker)

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
        raise SystemUnavailable(
            self.endpoint.service_url, "; ".join(f"{one.where}: {as_clause(one.detail)}" for one in failures)
        )

    def _connection(self, target: Target) -> Connection:
        if target not in self._connections:
            self._connections[target] = Connection(target.address, self.endpoint, behind_proxy=target.broker)
        return self._connections[target]

    def _ask_all(
        self, connection: Connection, topics: Sequence[str], requests: Sequence[Command], expected: type[Expected]
    ) -> list[Expected]:
        """The answers to requests about these topics, in their order; raises the first refusal."""
        numbers: list[int] = [request.request_id for request in requests]  # type: ignore[attr-defined]
        answers = connection.exchange(dict(zip(numbers, requests, strict=True)))
        found: list[Expected] = []
        for topic, number in zip(topics, numbers, strict=True):
            answer = answers[number]
            if isinstance(answer, pb.CommandError):
                raise server_error(answer, where=connection.where, topic=topic, action=f"read {topic}")
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


def _groups(places: Sequence[ProbePoint]) -> Iterator[dict[int, ProbePoint]]:
    """The places by their index, at most `TOGETHER` at a time, and at most `TOGETHER_PER_TOPIC` of one topic."""
    left = dict(enumerate(places))
    while left:
        counts: Counter[str] = Counter()
        group: dict[int, ProbePoint] = {}
        for index, place in left.items():
            counts[place.topic] += 1
            if counts[place.topic] <= TOGETHER_PER_TOPIC:
                group[index] = place
            if len(group) == TOGETHER:
                break
        yield group
        left = {index: place for index, place in left.items() if index not in group}


def _message_id(ledger: int, entry: int) -> pb.MessageIdData:
    try:
        return pb.MessageIdData(ledgerId=ledger, entryId=entry)
    except ValueError as error:
        raise InvalidRequest(f"no message id has the ledger {ledger} and the entry {entry}") from error


def _position(found: pb.MessageIdData) -> Position | None:
    return Position.of(found.ledgerId, found.entryId, found.batch_index) if found.entryId >= 0 else None
