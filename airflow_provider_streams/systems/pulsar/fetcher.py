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
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.systems.pulsar.chunks import Place
from airflow_provider_streams.systems.pulsar.decode.metadata import EntryMetadata, parse_metadata
from airflow_provider_streams.systems.pulsar.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.protobuf import as_int32
from airflow_provider_streams.systems.pulsar.wire.broker import PATIENCE, BrokerClient, Consumer
from airflow_provider_streams.systems.pulsar.wire.commands import (
    MESSAGE,
    CloseConsumer,
    Command,
    EndOfTopic,
    Error,
    Flow,
    LastMessageId,
    LastMessageIdAnswer,
    MessageIdData,
    TopicMigrated,
)
from airflow_provider_streams.systems.pulsar.wire.failures import server_error
from airflow_provider_streams.systems.pulsar.wire.frames import LIMIT_OPTION, Frame, FrameBuffer, RawEntry

log = logging.getLogger(__name__)

PERMITS: Final = 1_000_000_000
"""Messages asked for at once: back-pressure is TCP's. Small permits cost half of the throughput."""
IDLE_SECONDS: Final = 1.0
"""After so much silence the broker is asked where the topic ends."""
CORRUPT_TRIES: Final = 3

Delivery = tuple[RawEntry, EntryMetadata]


class Feed:
    """Iterate over it for lists of deliveries; it ends where the topic does at that moment, and never by silence.

    The topic's end is a position the broker names (the last message it can send lies before the next entry), or its
    word that a terminated topic has no more. Lost connections, unloads and passing failures are answered by a new
    subscription at the next entry; entries that come again are dropped and counted.

    Args:
        endpoint: The cluster.
        topic: One partition, by its full name.
        start: Ledger and entry to begin at.
        end: Where the reader wants to come, for messages.

    Raises (while iterating):
        SourceNotFound, NotAuthorized, AuthenticationFailed: at once.
        ReadStalled, SystemUnavailable: no progress for the endpoint's `stall_seconds`.
        MalformedEntry, EntryTooLarge: at once.
        CorruptFrame: the same entry came damaged several times.
    """

    def __init__(self, endpoint: Endpoint, topic: str, start: Place, end: object) -> None:
        self.topic = topic
        self.duplicates = 0
        """Messages that came again after a reconnect."""
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
        consumer = self._client.subscribe(self.topic, MessageIdData(*self._next))
        connection = consumer.connection
        self._asked, self._tail, self._permits = 0, None, PERMITS
        connection.send(Flow(consumer.id, PERMITS))
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
        """What is due between two receives."""
        while self._permits < PERMITS // 2:
            more = min(PERMITS - self._permits, PERMITS)  # a broker counts with 32 bits
            consumer.connection.send(Flow(consumer.id, more))
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
        """The new entries in these frames, and the failure that ended them, if one did."""
        connection = consumer.connection
        buffer = connection.buffer
        deliveries: list[Delivery] = []
        try:
            for frame in frames:
                if buffer.kind(frame) != MESSAGE:
                    command = connection.command(frame)
                    if command is not None:
                        self._hear(consumer, command)
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

    def _hear(self, consumer: Consumer, command: Command) -> None:
        if isinstance(command, LastMessageIdAnswer):
            self._hear_tail(command)
        elif isinstance(command, EndOfTopic):
            self._over = True
        elif isinstance(command, CloseConsumer):
            raise SystemUnavailable(consumer.connection.where, f"it gives {self.topic} to another broker")
        elif isinstance(command, TopicMigrated):
            raise AccessError(
                f"{self.topic} has moved to another cluster, {command.broker_url}: its positions differ there. "
                "Connect to that cluster and plan the window anew."
            )
        elif isinstance(command, Error):
            raise server_error(
                command.error,
                command.message,
                where=consumer.connection.where,
                topic=self.topic,
                action=f"read {self.topic}",
            )

    def _hear_tail(self, answer: LastMessageIdAnswer) -> None:
        """Is there anything from `_next` on that can still come?"""
        self._asked = 0
        last = _place(answer.last)
        self._tail = last
        if last is None or last < self._next:
            self._over = True
        elif self._asked_idle and (behind := _place(answer.mark_delete)) is not None and behind >= last:
            # trimmed while we read: the broker moved our cursor over all that is left, and will not send it
            self._over = True

    def _ask(self, consumer: Consumer, *, idle: bool) -> None:
        """Where does the topic end? One question at a time."""
        if not self._asked:
            self._asked = consumer.connection.next_id()
            self._asked_idle = idle
            consumer.connection.send(LastMessageId(consumer.id, self._asked))

    def _progressed(self) -> None:
        self._moved_at = time.monotonic()
        self._nudged = False

    def _interrupted(self, error: StreamsError) -> None:
        """Come back, unless it took too long."""
        self._client.close()
        self.reconnects += 1
        log.info("%s: reading on at %s:%s after: %s", self.topic, *self._next, error)
        if time.monotonic() - self._moved_at > self._stall_seconds:
            raise self._stalled() from error

    def _stalled(self) -> ReadStalled:
        return ReadStalled(self.topic, Position.of(*self._next), self._end, time.monotonic() - self._moved_at)


def _place(message_id: MessageIdData | None) -> Place | None:
    """Ledger and entry; None: there is no such message."""
    if message_id is None or message_id.entry < 0:
        return None
    return message_id.ledger, message_id.entry
