"""Looking at what readers are sent: consumers that are fed a few entries each, side by side on one connection."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from airflow_provider_streams.errors import CorruptFrame, ReadStalled, SystemUnavailable
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.systems.pulsar.decode.metadata import EntryMetadata, parse_metadata
from airflow_provider_streams.systems.pulsar.looks import Head, Look, Place
from airflow_provider_streams.systems.pulsar.wire.commands import (
    MESSAGE,
    CloseConsumer,
    Command,
    EndOfTopic,
    Error,
    Flow,
    LastMessageId,
    LastMessageIdAnswer,
    MessageHeader,
    MessageIdData,
)
from airflow_provider_streams.systems.pulsar.wire.connection import PING_SECONDS, Connection
from airflow_provider_streams.systems.pulsar.wire.failures import server_error
from airflow_provider_streams.systems.pulsar.wire.frames import Frame

IDLE_SECONDS: Final = 1.0
"""After so much silence the broker is asked again where the topic ends."""


@dataclass(slots=True)
class Looking:
    """One consumer's look under way. Pure."""

    place: Place
    heads: list[Head] = field(default_factory=list)
    last: tuple[int, int] | None = None
    is_over: bool = False
    """The topic has no more to send."""
    _permits: int = 0
    _is_told: bool = False

    def __post_init__(self) -> None:
        self._permits = self.place.wanted

    @property
    def is_done(self) -> bool:
        """Enough has come, or nothing more does; and the topic's end was told."""
        return self._is_told and (len(self.heads) == self.place.wanted or self.is_over)

    def permits(self) -> int:
        """How many messages more the broker may send now, so that one entry comes; 0: it may still send some."""
        if self._permits > 0 or len(self.heads) == self.place.wanted:
            return 0
        # batches are sent whole, and use up more than there is
        missing, self._permits = 1 - self._permits, 1
        return missing

    def meet(self, head: Head) -> None:
        """An entry came."""
        self._permits -= (head.metadata.num_messages or 1) if head.metadata else 1
        place = (head.ledger, head.entry)
        if place >= self._next and len(self.heads) < self.place.wanted:
            self.heads.append(head)

    def hear(self, answer: LastMessageIdAnswer, *, idle: bool) -> None:
        """Where the topic ends; `idle`: told after a silence."""
        self._is_told = True
        self.last = _place(answer.last)
        if self.last is None or self.last < self._next:
            self.is_over = True
        elif idle and (behind := _place(answer.mark_delete)) is not None and behind >= self.last:
            # trimmed meanwhile: the broker moved our cursor over all that is left, and will not send it
            self.is_over = True

    def stalled(self, seconds: float) -> ReadStalled:
        """Nothing came for so long, and more was to come."""
        end = f"its last entry {Position.of(*self.last)}" if self.last else "its end, which the broker does not tell"
        return ReadStalled(self.place.topic, Position.of(*self._next), end, seconds)

    def look(self) -> Look:
        """What was met."""
        return Look(tuple(self.heads), self.last)

    @property
    def _next(self) -> tuple[int, int]:
        """The first entry that has not come."""
        if self.heads:
            return self.heads[-1].ledger, self.heads[-1].entry + 1
        return self.place.ledger, self.place.entry


def look_all(connection: Connection, consumers: Mapping[int, Place], timeout_seconds: float) -> dict[int, Look]:
    """Feed consumers that stand at their places, by their numbers, until each has looked.

    Raises:
        SystemUnavailable: the connection or an owner is lost.
        ReadStalled: nothing comes for so long, and a topic's end is not reached.
    """
    round_ = _Round(connection, {number: Looking(place) for number, place in consumers.items()})
    connection.send(*(Flow(number, place.wanted) for number, place in consumers.items()))
    round_.ask(idle=False)
    heard_at = asked_at = time.monotonic()
    while round_.pending:
        if round_.receive():
            heard_at = asked_at = time.monotonic()
        elif time.monotonic() - heard_at > timeout_seconds:
            raise round_.pending[0].stalled(time.monotonic() - heard_at)
        elif time.monotonic() - asked_at >= IDLE_SECONDS:
            round_.ask(idle=True)
            asked_at = time.monotonic()
    return {number: looking.look() for number, looking in round_.lookings.items()}


@dataclass(slots=True)
class _Round:
    """Many looks on one connection."""

    connection: Connection
    lookings: dict[int, Looking]
    questions: dict[int, tuple[int, bool]] = field(default_factory=dict)
    """Request to consumer, and whether it was asked after a silence."""

    @property
    def pending(self) -> Sequence[Looking]:
        return [looking for looking in self.lookings.values() if not looking.is_done]

    def ask(self, *, idle: bool) -> None:
        """Where do the topics end that are still looked at?"""
        asked = {self.connection.next_id(): number for number, one in self.lookings.items() if not one.is_done}
        self.questions |= {request: (number, idle) for request, number in asked.items()}
        self.connection.send(*(LastMessageId(number, request) for request, number in asked.items()))

    def receive(self) -> bool:
        """Take what comes within a moment; False: no entry, for answers to our own questions are no progress."""
        entries = 0
        frames = self.connection.receive(min(IDLE_SECONDS, PING_SECONDS))
        for frame in frames:
            if self.connection.buffer.kind(frame) == MESSAGE:
                self._meet(frame)
                entries += 1
            elif (command := self.connection.command(frame)) is not None:
                self._hear(command)
        more = [Flow(number, count) for number, one in self.lookings.items() if (count := one.permits())]
        if more:
            self.connection.send(*more)
        return entries > 0

    def _meet(self, frame: Frame) -> None:
        header = self.connection.buffer.command(frame)
        if not isinstance(header, MessageHeader) or header.message_id is None:
            return
        if (looking := self.lookings.get(header.consumer_id)) is not None:
            looking.meet(Head(header.message_id.ledger, header.message_id.entry, self._metadata(frame)))

    def _metadata(self, frame: Frame) -> EntryMetadata | None:
        try:
            return parse_metadata(self.connection.buffer.entry(frame).metadata)
        except CorruptFrame:
            return None

    def _hear(self, command: Command) -> None:
        where = self.connection.where
        if isinstance(command, LastMessageIdAnswer) and command.request_id in self.questions:
            number, idle = self.questions.pop(command.request_id)
            self.lookings[number].hear(command, idle=idle)
        elif isinstance(command, EndOfTopic) and command.consumer_id in self.lookings:
            self.lookings[command.consumer_id].is_over = True
        elif isinstance(command, CloseConsumer) and command.consumer_id in self.lookings:
            topic = self.lookings[command.consumer_id].place.topic
            raise SystemUnavailable(where, f"it gives {topic} to another broker")
        elif isinstance(command, Error) and command.request_id in self.questions:
            if _UNREADABLE in command.message:
                return  # it never will: as little as when it keeps silent, which it does as often
            topic = self.lookings[self.questions[command.request_id][0]].place.topic
            raise server_error(command.error, command.message, where=where, topic=topic, action=f"look at {topic}")


_UNREADABLE = "Failed to get batch size for entry"
"""What a broker says that cannot read the metadata of a topic's last entry."""


def _place(message_id: MessageIdData | None) -> tuple[int, int] | None:
    """Ledger and entry; None: there is no such message."""
    if message_id is None or message_id.entry < 0:
        return None
    return message_id.ledger, message_id.entry
