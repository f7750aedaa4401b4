"""A segment store of one segment that answers reads as it likes, without sockets: the bytes it gives are true."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from airflow_provider_streams.errors import ConnectionLost
from airflow_provider_streams.systems.pravega.client import wire_protocol
from airflow_provider_streams.systems.pravega.metadata.segment_bounds import SegmentInfo
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment

Dice = random.Random


class HostileStore:
    """What `Client` is to a reader: it knows where the segment ends, connects, and gives tokens.

    After some answers of its own mind it answers as it should, or is gone.
    """

    def __init__(self, segment: Segment, data: bytes, dice: Dice) -> None:
        self.segment, self.data, self.dice = segment, data, dice
        self.start = 0
        self.moods = dice.choice([0, 1, 3, 10])
        self.tokens = SimpleNamespace(forget=lambda _: None)
        self.endpoint = SimpleNamespace(
            stall_seconds=0.3, request_timeout_seconds=0.3, read_ahead=dice.choice([1, 2, 5]), max_event_bytes=1 << 20
        )

    def run(self, steps: Any) -> Any:
        """The segment as it is now."""
        next(steps)
        try:
            steps.send({self.segment.id: SegmentInfo(self.start, len(self.data), True, 5)})
        except StopIteration as done:
            return done.value
        raise AssertionError

    def token(self, _: str) -> str:
        return ""

    def connect(self, _: Segment) -> HostileConnection:
        return HostileConnection(self)

    def answer(self, asked: wire_protocol.ReadSegment) -> wire_protocol.Message | None:
        """None: nothing comes."""
        if self.moods:
            self.moods -= 1
            return self.dice.choice(_MOODS)(self, asked)
        return self.true(asked)

    def true(self, asked: wire_protocol.ReadSegment) -> wire_protocol.Message:
        """As a real one answers."""
        if asked.offset < self.start:
            return wire_protocol.SegmentIsTruncated(asked.request_id, asked.segment, self.start, "", asked.offset)
        data = self.data[asked.offset : asked.offset + max(8, asked.length)]
        return wire_protocol.SegmentRead(asked.segment, asked.offset, False, False, data, asked.request_id)


def _short(store: HostileStore, asked: wire_protocol.ReadSegment) -> wire_protocol.Message:
    data = store.data[asked.offset : asked.offset + store.dice.choice([0, 1, 9])]
    return wire_protocol.SegmentRead(asked.segment, asked.offset, False, False, data, asked.request_id)


def _long(store: HostileStore, asked: wire_protocol.ReadSegment) -> wire_protocol.Message:
    data = store.data[asked.offset :] + b"more"
    return wire_protocol.SegmentRead(asked.segment, asked.offset, False, False, data, asked.request_id)


def _elsewhere(store: HostileStore, asked: wire_protocol.ReadSegment) -> wire_protocol.Message:
    offset = store.dice.choice([-1, 0, asked.offset + 8, 1 << 62])
    name = store.dice.choice([asked.segment, "other/stream/0.#epoch.0", ""])
    number = store.dice.choice([asked.request_id, 0, -1, asked.request_id + 1])
    return wire_protocol.SegmentRead(name, offset, False, False, store.data[:9], number)


def _truncated(store: HostileStore, asked: wire_protocol.ReadSegment) -> wire_protocol.Message:
    """Truly, at an event; or only said so."""
    if store.dice.random() < 0.5:
        store.start = max(store.start, store.dice.choice([0, len(store.data)]))
        return wire_protocol.SegmentIsTruncated(asked.request_id, asked.segment, store.start, "", asked.offset)
    claimed = store.dice.choice([-1, 0, asked.offset])
    return wire_protocol.SegmentIsTruncated(asked.request_id, asked.segment, claimed, "", asked.offset)


def _refusal(store: HostileStore, asked: wire_protocol.ReadSegment) -> wire_protocol.Message:
    number, name = asked.request_id, asked.segment
    return store.dice.choice(
        [
            wire_protocol.WrongHost(number, name),
            wire_protocol.SegmentIsSealed(number, name),
            wire_protocol.AuthTokenCheckFailed(0, "Java stack", wire_protocol.TOKEN_EXPIRED),
            wire_protocol.AuthTokenCheckFailed(number, "Java stack", 7),
            wire_protocol.ErrorMessage(number, name, "x" * 5000),
            wire_protocol.Hello(),
            wire_protocol.StreamSegmentInfo(number, name, True, False, False, 0, 5, 0),
        ]
    )


_MOODS: tuple[Callable[[HostileStore, wire_protocol.ReadSegment], wire_protocol.Message | None], ...] = (
    _short,
    _short,
    _long,
    _elsewhere,
    _truncated,
    _refusal,
    lambda _store, _asked: None,
    HostileStore.true,
    HostileStore.true,
)


class HostileConnection:
    """What `Connection` is to a reader."""

    def __init__(self, store: HostileStore) -> None:
        self._store = store
        self._asked: list[wire_protocol.ReadSegment] = []

    def send(self, *messages: wire_protocol.Message) -> None:
        self._asked += [one for one in messages if isinstance(one, wire_protocol.ReadSegment)]

    def receive(self, _seconds: float, allocate: Callable[[int], memoryview]) -> wire_protocol.Message:
        if not self._asked:
            raise ConnectionLost("the store", "nothing came in time")
        asked = self._asked.pop(self._store.dice.randrange(len(self._asked)))
        answer = self._store.answer(asked)
        if answer is None:
            raise ConnectionLost("the store", "it closed the connection")
        frame = wire_protocol.encode(answer)
        payload = allocate(len(frame) - wire_protocol.HEADER.size)
        payload[:] = frame[wire_protocol.HEADER.size :]
        message = wire_protocol.decode(answer.TYPE, payload)
        assert message is not None
        return message

    def abort(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nothing is open."""
