"""Probes what readers are sent: consumers receive a few entries each, side by side on one connection."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from airflow_provider_streams.errors import CorruptFrame, ReadStalled, SystemUnavailable
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.pulsar.client.wire import commands_pb2 as pb
from airflow_provider_streams.systems.pulsar.client.wire.commands import (
    MESSAGE,
    Command,
    Place,
    ends_before,
    place_of,
    server_error,
)
from airflow_provider_streams.systems.pulsar.client.wire.connection import PING_SECONDS, Connection
from airflow_provider_streams.systems.pulsar.client.wire.frames import Frame
from airflow_provider_streams.systems.pulsar.planning.entry_probe import EntryHead, EntryProbe, ProbePoint
from airflow_provider_streams.systems.pulsar.reading.decode.headers.message_metadata import (
    EntryMetadata,
    parse_metadata,
)

IDLE_SECONDS: Final = 1.0
"""After so much silence, a probe asks the broker again where the topic ends."""


@dataclass(slots=True)
class RunningProbe:
    """The probe of one consumer. Pure."""

    place: ProbePoint
    heads: list[EntryHead] = field(default_factory=list)
    last: Place | None = None
    is_over: bool = False
    """The topic has no more to send."""
    _permits: int = 0
    _knows_end: bool = False

    def __post_init__(self) -> None:
        self._permits = self.place.wanted

    @property
    def is_done(self) -> bool:
        """It has enough entries, or there are no more, and it knows the topic's end."""
        return self._knows_end and (len(self.heads) == self.place.wanted or self.is_over)

    def permits(self) -> int:
        """How many more messages the broker may send now, to get one entry; 0: it may still send some."""
        if self._permits > 0 or len(self.heads) == self.place.wanted:
            return 0
        # the broker sends batches whole, and they use more permits than there are
        missing, self._permits = 1 - self._permits, 1
        return missing

    def note_entry(self, head: EntryHead) -> None:
        """Take an entry."""
        self._permits -= (head.metadata.num_messages or 1) if head.metadata else 1
        place = (head.ledger, head.entry)
        if place >= self._next and len(self.heads) < self.place.wanted:
            self.heads.append(head)

    def note_end(self, answer: pb.CommandGetLastMessageIdResponse, *, idle: bool) -> None:
        """Take the topic's end; `idle`: the question followed a silence."""
        self._knows_end = True
        self.last = place_of(answer.last_message_id)
        self.is_over = self.is_over or ends_before(answer, self._next, idle=idle)

    def stalled(self, seconds: float) -> ReadStalled:
        """The error after a silence, while the topic has more."""
        end = f"its last entry {Position.of(*self.last)}" if self.last else "its end, which the broker does not tell"
        return ReadStalled(self.place.topic, Position.of(*self._next), end, seconds)

    def probe(self) -> EntryProbe:
        """Its result."""
        return EntryProbe(tuple(self.heads), self.last)

    @property
    def _next(self) -> Place:
        """The first entry that has not arrived."""
        if self.heads:
            return self.heads[-1].ledger, self.heads[-1].entry + 1
        return self.place.ledger, self.place.entry


def probe_all(
    connection: Connection, consumers: Mapping[int, ProbePoint], timeout_seconds: float
) -> dict[int, EntryProbe]:
    """Finish the probes of these consumers, by their numbers, each of which was subscribed at its place.

    Raises:
        SystemUnavailable: the connection or an owner is lost.
        ReadStalled: nothing arrives for so long before a topic's end.
    """
    round_ = _ProbeRound(connection, {number: RunningProbe(place) for number, place in consumers.items()})
    connection.send(*(_flow(number, place.wanted) for number, place in consumers.items()))
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
    return {number: one.probe() for number, one in round_.probes.items()}


@dataclass(slots=True)
class _ProbeRound:
    """Many probes on one connection."""

    connection: Connection
    probes: dict[int, RunningProbe]
    questions: dict[int, tuple[int, bool]] = field(default_factory=dict)
    """The consumer that a request is about, and whether the request followed a silence."""

    @property
    def pending(self) -> Sequence[RunningProbe]:
        return [one for one in self.probes.values() if not one.is_done]

    def ask(self, *, idle: bool) -> None:
        """Ask where the topics of pending probes end."""
        asked = {self.connection.next_id(): number for number, one in self.probes.items() if not one.is_done}
        self.questions |= {request: (number, idle) for request, number in asked.items()}
        self.connection.send(
            *(pb.CommandGetLastMessageId(consumer_id=number, request_id=request) for request, number in asked.items())
        )

    def receive(self) -> bool:
        """Take what arrives within a moment; False: no entry, as answers to our own questions are no progress."""
        entries = 0
        frames = self.connection.receive(min(IDLE_SECONDS, PING_SECONDS))
        for frame in frames:
            if self.connection.buffer.kind(frame) == MESSAGE:
                self._note_entry(frame)
                entries += 1
            elif (command := self.connection.command(frame)) is not None:
                self._handle(command)
        more = [_flow(number, count) for number, one in self.probes.items() if (count := one.permits())]
        if more:
            self.connection.send(*more)
        return entries > 0

    def _note_entry(self, frame: Frame) -> None:
        header = self.connection.buffer.command(frame)
        if not isinstance(header, pb.CommandMessage) or not header.HasField("message_id"):
            return
        if (probe := self.probes.get(header.consumer_id)) is not None:
            probe.note_entry(EntryHead(header.message_id.ledgerId, header.message_id.entryId, self._metadata(frame)))

    def _metadata(self, frame: Frame) -> EntryMetadata | None:
        try:
            return parse_metadata(self.connection.buffer.entry(frame).metadata)
        except CorruptFrame:
            return None

    def _handle(self, command: Command) -> None:
        where = self.connection.where
        if isinstance(command, pb.CommandGetLastMessageIdResponse) and command.request_id in self.questions:
            number, idle = self.questions.pop(command.request_id)
            self.probes[number].note_end(command, idle=idle)
        elif isinstance(command, pb.CommandReachedEndOfTopic) and command.consumer_id in self.probes:
            self.probes[command.consumer_id].is_over = True
        elif isinstance(command, pb.CommandCloseConsumer) and command.consumer_id in self.probes:
            topic = self.probes[command.consumer_id].place.topic
            raise SystemUnavailable(where, f"it gives {topic} to another broker")
        elif isinstance(command, pb.CommandError) and command.request_id in self.questions:
            if _UNREADABLE in command.message:
                return  # it never will, as if it kept silent, which it does as often
            topic = self.probes[self.questions[command.request_id][0]].place.topic
            raise server_error(command, where=where, topic=topic, action=f"look at {topic}")


_UNREADABLE = b"Failed to get batch size for entry"
"""The words of a broker that cannot read the metadata of a topic's last entry."""


def _flow(consumer_id: int, messages: int) -> pb.CommandFlow:
    """The permission to send so many more messages; a broker counts with 32 bits."""
    return pb.CommandFlow(consumer_id=consumer_id, messagePermits=messages & 0xFFFF_FFFF)
