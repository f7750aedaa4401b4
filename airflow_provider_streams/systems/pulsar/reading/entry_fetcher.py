"""The entries of one topic from a place on, each once and in order, whatever happens to the connection."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Final

from airflow_provider_streams.errors import (
    AccessError,
    CorruptFrame,
    EntryTooLarge,
    FrameTooLong,
    MalformedEntry,
    ReadStalled,
    StreamsError,
    SystemUnavailable,
)
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.client.protobuf import as_int32
from airflow_provider_streams.systems.pulsar.client.wire import commands_pb2 as pb
from airflow_provider_streams.systems.pulsar.client.wire.broker_client import PATIENCE, BrokerClient, Consumer
from airflow_provider_streams.systems.pulsar.client.wire.commands import (
    MESSAGE,
    Command,
    Place,
    as_text,
    ends_before,
    place_of,
    server_error,
)
from airflow_provider_streams.systems.pulsar.client.wire.frames import LIMIT_OPTION, Frame, FrameBuffer, RawEntry
from airflow_provider_streams.systems.pulsar.reading.decode.headers.message_metadata import (
    EntryMetadata,
    parse_metadata,
)

log = logging.getLogger(__name__)

PERMITS: Final = 1_000_000_000
"""Messages that the broker may send at once: TCP gives the back-pressure. Small permits cost half of the throughput."""
IDLE_SECONDS: Final = 1.0
"""After so much silence, the feed asks the broker where the topic ends."""
CORRUPT_TRIES: Final = 3

Delivery = tuple[RawEntry, EntryMetadata]


class Feed:
    """Iterates over lists of deliveries up to the topic's end at that moment; silence never ends it.

    The broker names the end: the last message it can send is before the next entry, or a terminated topic has no more.
    After lost connections, unloads and passing failures, a new subscription begins at the next entry. Entries that
    arrive again are dropped and counted.

    Args:
        endpoint: The cluster.
        topic: One partition, by its full name.
        start: Ledger and entry to begin at.
        end: Where the reader stops, for error messages.

    Raises (while iterating):
        SourceNotFound, NotAuthorized, AuthenticationFailed: at once.
        ReadStalled, SystemUnavailable: no progress for the endpoint's `stall_seconds`.
        MalformedEntry, EntryTooLarge: at once.
        CorruptFrame: the same entry arrived damaged several times.
    """

    def __init__(self, endpoint: Endpoint, topic: str, start: Place, end: object) -> None:
        self.topic = topic
        self.duplicates = 0
        """Messages that arrived again after a reconnect."""
        self.reconnects = 0
        self._client = BrokerClient(endpoint)
        self._stall_seconds = endpoint.stall_seconds
        self._start = self._next = start
        self._end = end
        self._closed = False
        self._tail: Place | None = None
        self._asked = 0
        self._asked_idle = False
        self._over = False
        self._permits = 0
        self._moved_at = 0.0
        self._nudged = False

    def close(self) -> None:
        """Close the connections; an iteration ends at its next step."""
        self._closed = True
        self._client.close()

    def __iter__(self) -> Iterator[list[Delivery]]:
        self._progressed()
        waits = PATIENCE.waits()
        corrupt: Place | None = None
        corrupt_tries = 0
        while not (self._over or self._closed):
            before = self._next
            try:
                yield from self._session()
            except CorruptFrame as error:
                corrupt_tries = corrupt_tries + 1 if corrupt == self._next else 1
                corrupt = self._next
                if corrupt_tries >= CORRUPT_TRIES or not error.retryable:
                    raise
                self._interrupted(error)
            except FrameTooLong as error:
                what = f"it comes in a frame of {error.size} bytes"
                place = error.place or self._next
                raise EntryTooLarge(self.topic, *place, what=what, option=LIMIT_OPTION, limit=error.limit) from error
            except SystemUnavailable as error:
                if not self._closed:
                    self._interrupted(error)
            if self._next != before:
                waits = PATIENCE.waits()
            if not (self._over or self._closed):
                time.sleep(next(waits))

    def _session(self) -> Iterator[list[Delivery]]:
        """One subscription, until the topic's end or the first failure."""
        consumer = self._client.subscribe(self.topic, self._next)
        connection = consumer.connection
        self._asked, self._tail, self._permits = 0, None, PERMITS
        connection.send(pb.CommandFlow(consumer_id=consumer.id, messagePermits=PERMITS))
        self._ask(consumer, idle=False)
        while not (self._over or self._closed):
            frames = connection.receive(IDLE_SECONDS)
            deliveries, failure = self._take(consumer, frames)
            if deliveries:
                yield deliveries
                self._progressed()
            if failure is not None:
                raise failure
            self._after(consumer, idle=not frames)

    def _after(self, consumer: Consumer, *, idle: bool) -> None:
        """Send what is due between two receives."""
        while self._permits < PERMITS // 2:
            more = min(PERMITS - self._permits, PERMITS)  # a broker counts with 32 bits
            consumer.connection.send(pb.CommandFlow(consumer_id=consumer.id, messagePermits=more))
            self._permits += more
        if idle or (self._tail is not None and self._tail < self._next):
            self._ask(consumer, idle=idle)
        silent = time.monotonic() - self._moved_at
        if silent > self._stall_seconds:
            raise self._stalled()
        if silent > self._stall_seconds / 2 and not self._nudged:
            self._nudged = True
            raise SystemUnavailable(
                consumer.connection.where, f"it sends nothing of {self.topic}, but says there is more"
            )

    def _take(self, consumer: Consumer, frames: list[Frame]) -> tuple[list[Delivery], StreamsError | None]:
        """The new entries in these frames, and the failure that ended them."""
        connection = consumer.connection
        buffer = connection.buffer
        deliveries: list[Delivery] = []
        try:
            for frame in frames:
                if buffer.kind(frame) != MESSAGE:
                    command = connection.command(frame)
                    if command is not None:
                        self._handle(consumer, command)
                    continue
                entry, metadata = self._entry(buffer, frame)
                count = 1 if metadata.num_messages is None else metadata.num_messages
                self._permits = as_int32(self._permits - count)  # as a broker counts, whatever the producer stated
                place = (entry.ledger, entry.entry)
                if place >= self._next:
                    self._next = (entry.ledger, entry.entry + 1)
                    deliveries.append((entry, metadata))
                elif place >= self._start:
                    self.duplicates += max(count, 0)
        except StreamsError as error:
            return deliveries, error
        return deliveries, None

    def _entry(self, buffer: FrameBuffer, frame: Frame) -> Delivery:
        try:
            entry = buffer.entry(frame)
        except CorruptFrame as error:
            raise CorruptFrame(f"{self.topic}: {error}", error.place) from error
        try:
            return entry, parse_metadata(entry.metadata)
        except CorruptFrame as error:
            raise MalformedEntry(self.topic, entry.ledger, entry.entry, str(error)) from error

    def _handle(self, consumer: Consumer, command: Command) -> None:
        if isinstance(command, pb.CommandGetLastMessageIdResponse):
            self._asked, self._tail = 0, place_of(command.last_message_id)
            self._over = self._over or ends_before(command, self._next, idle=self._asked_idle)
        elif isinstance(command, pb.CommandReachedEndOfTopic):
            self._over = True
        elif isinstance(command, pb.CommandCloseConsumer):
            raise SystemUnavailable(consumer.connection.where, f"it gives {self.topic} to another broker")
        elif isinstance(command, pb.CommandTopicMigrated):
            url = as_text(command.brokerServiceUrl)
            raise AccessError(
                f"{self.topic} has moved to another cluster, {url}: its positions differ there. "
                "Connect to that cluster and plan the window again."
            )
        elif isinstance(command, pb.CommandError):
            where = consumer.connection.where
            raise server_error(command, where=where, topic=self.topic, action=f"read {self.topic}")

    def _ask(self, consumer: Consumer, *, idle: bool) -> None:
        """Ask where the topic ends, unless an answer is due."""
        if not self._asked:
            self._asked = consumer.connection.next_id()
            self._asked_idle = idle
            consumer.connection.send(pb.CommandGetLastMessageId(consumer_id=consumer.id, request_id=self._asked))

    def _progressed(self) -> None:
        self._moved_at = time.monotonic()
        self._nudged = False

    def _interrupted(self, error: StreamsError) -> None:
        """Connect again, unless there was no progress for too long."""
        self._client.close()
        self.reconnects += 1
        log.info("%s: reading on at %s:%s after: %s", self.topic, *self._next, error)
        if time.monotonic() - self._moved_at > self._stall_seconds:
            raise self._stalled() from error

    def _stalled(self) -> ReadStalled:
        return ReadStalled(self.topic, Position.of(*self._next), self._end, time.monotonic() - self._moved_at)
