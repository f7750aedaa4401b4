"""A stream in memory that answers a rule's questions, and a segment store that can misbehave."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from airflow_provider_streams.errors import SourceNotFound, UnknownServerError
from airflow_provider_streams.systems.connection.backoff import Pause
from airflow_provider_streams.systems.pravega.client import wire_protocol
from airflow_provider_streams.systems.pravega.client.controller import controller_pb2 as pb
from airflow_provider_streams.systems.pravega.client.controller.call import KeyedSegment
from airflow_provider_streams.systems.pravega.client.endpoint import Endpoint
from airflow_provider_streams.systems.pravega.client.stream_client import Client
from airflow_provider_streams.systems.pravega.metadata.segment_bounds import SegmentInfo, SegmentQuery
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment, segment_id

STREAM = "scope/stream"


@dataclass
class Stored:
    """One segment of the stream in memory."""

    low: float
    high: float
    end: int = 0
    start: int = 0
    sealed: bool = False
    successors: list[int] = field(default_factory=list)


class World:
    """A stream and its history; `answer` is what a controller and its stores would say."""

    def __init__(self) -> None:
        self.segments: dict[int, Stored] = {segment_id(0, 0): Stored(0.0, 1.0)}
        self.gone: set[int] = set()
        self.head: dict[int, int] = {0: 0}
        self.sealed = self.missing = False
        self.epoch = 0
        self.made_ms: int | None = 1_795_000_000_000
        self.exists = True
        self.number = 1
        self.asked: list[str] = []

    @property
    def open(self) -> list[int]:
        return [key for key, one in self.segments.items() if not one.sealed]

    def write(self, key: int, size: int) -> None:
        assert not self.segments[key].sealed
        self.segments[key].end += size

    def replace(self, keys: list[int], parts: int) -> list[int]:
        """Seal segments and give their keys to so many new ones."""
        self.epoch += 1
        low, high = min(self.segments[k].low for k in keys), max(self.segments[k].high for k in keys)
        made = []
        for part in range(parts):
            key = segment_id(self.number, self.epoch)
            self.number += 1
            width = (high - low) / parts
            self.segments[key] = Stored(low + part * width, low + (part + 1) * width)
            made.append(key)
        for key in keys:
            self.segments[key].sealed = True
            self.segments[key].successors = made
        return made

    def seal(self) -> None:
        self.sealed = True
        for one in self.segments.values():
            one.sealed = True

    def truncate(self, head: dict[int, int]) -> None:
        """Drop everything before a cut."""
        self.head = head
        after = set(self.between(head, {}))
        self.gone |= set(self.segments) - after
        for key, offset in head.items():
            self.segments[key].start = offset

    def tail(self) -> dict[int, int]:
        return {key: self.segments[key].end for key in self.open}

    def between(self, start: dict[int, int], end: dict[int, int]) -> tuple[int, ...]:
        after = self._reach(start or {min(self.segments): 0}, lambda key: self.segments[key].successors)
        if not end:
            return tuple(sorted(after))
        before = self._reach(end, lambda key: [k for k, one in self.segments.items() if key in one.successors])
        if not set(end) <= after or any(start.get(key, 0) > offset for key, offset in end.items()):
            raise UnknownServerError("the controller", "UNKNOWN")
        return tuple(sorted(after & before))

    @staticmethod
    def _reach(first: dict[int, int], following: Callable[[int], list[int]]) -> set[int]:
        found: set[int] = set()
        todo = list(first)
        while todo:
            key = todo.pop()
            if key not in found:
                found.add(key)
                todo += following(key)
        return found

    def answer(self, question: Any) -> Any:
        if isinstance(question, Pause):
            return None
        if isinstance(question, SegmentQuery):
            return {
                key: SegmentInfo(one.start, one.end, one.sealed, self.made_ms and self.made_ms + key % 1000)
                for key in question.segment_ids
                if (one := self.segments.get(key)) is not None and key not in self.gone
            }
        self.asked.append(question.method)
        if self.missing:
            raise SourceNotFound(question.about)
        if question.method == "getSegmentsImmediatelyFollowing":
            return question.parse(self._successors(question.message.segment_id))
        return self.calls[question.method](question.message)

    @property
    def calls(self) -> dict[str, Callable[[Any], Any]]:
        """What the controller says, by method and from the message."""
        return {
            "checkStreamExists": lambda _: self.exists,
            "checkScopeExists": lambda _: True,
            "getSegments": lambda _: self.head,
            "getCurrentSegments": lambda _: self._current(),
            "isStreamCutValid": lambda message: self._covers(message.offsets),
            "getSegmentsBetween": lambda message: self.between(dict(message.start), dict(message.end)),
        }

    def _successors(self, key: int) -> pb.Successors:
        after = [(one, self.segments[one]) for one in self.segments[key].successors]
        ranges = [
            pb.OwnedRange(segment=pb.SegmentKey(segment_id=one), low=stored.low, high=stored.high)
            for one, stored in after
        ]
        return pb.Successors(entries=[pb.Successor(segment=each) for each in ranges])

    def _current(self) -> list[KeyedSegment]:
        if self.sealed:
            return []
        return [KeyedSegment(key, self.segments[key].low, self.segments[key].high) for key in self.open]

    def _covers(self, keys: Iterable[int]) -> bool:
        owned = sorted((self.segments[k].low, self.segments[k].high) for k in keys)
        edges = [0.0, *(edge for pair in owned for edge in pair), 1.0]
        return all(a == b for a, b in zip(edges[::2], edges[1::2], strict=True))

    def run(self, steps: Any) -> Any:
        """Run a rule against this world."""
        answer, failure = None, None
        while True:
            try:
                question = steps.throw(failure) if failure else steps.send(answer)
            except StopIteration as done:
                return done.value
            answer = failure = None
            try:
                answer = self.answer(question)
            except Exception as error:  # noqa: BLE001 - as the client does
                failure = error


@pytest.fixture
def world() -> World:
    return World()


class Store:
    """A segment store on a socket that serves one segment, and does what `script` says first.

    A step of the script takes the request and the connection, and returns whether it answered.
    """

    def __init__(self, data: bytes, *, start: int = 0, sealed: bool = True) -> None:
        self.data, self.start, self.sealed, self.exists = data, start, sealed, True
        self.made_ms = 1_795_000_000_000
        self.script: list[Callable[[wire_protocol.Message, socket.socket], bool]] = []
        self.info_script: list[Callable[[wire_protocol.Message, socket.socket], bool]] = []
        self.requests: list[wire_protocol.Message] = []
        self.connections = 0
        self.on_keep_alive: Callable[[], wire_protocol.Message] = wire_protocol.KeepAlive
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = self._listener.getsockname()
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection = self._listener.accept()[0]
                self.connections += 1
                self._open.append(connection)
                thread = threading.Thread(target=self._serve, args=(connection,))
                self._threads.append(thread)
                thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection.makefile("rb") as stream:
            while header := stream.read(8):
                kind, length = wire_protocol.frame_size(header)
                message = wire_protocol.decode(kind, memoryview(stream.read(length)))
                assert message is not None
                if isinstance(message, wire_protocol.Hello):
                    connection.sendall(wire_protocol.encode(wire_protocol.Hello()))
                    continue
                self.requests.append(message)
                if isinstance(message, wire_protocol.KeepAlive):
                    connection.sendall(wire_protocol.encode(self.on_keep_alive()))
                    continue
                script = self.script if isinstance(message, wire_protocol.ReadSegment) else self.info_script
                if not (script and script.pop(0)(message, connection)):
                    connection.sendall(wire_protocol.encode(self.answer(message)))

    def answer(self, message: wire_protocol.Message, most: int = 1 << 21) -> wire_protocol.Message:
        """As a real store answers."""
        assert isinstance(
            message, wire_protocol.GetStreamSegmentInfo | wire_protocol.GetSegmentAttribute | wire_protocol.ReadSegment
        )
        if not self.exists:
            return wire_protocol.NoSuchSegment(
                message.request_id, message.segment, "Java stack", getattr(message, "offset", -1)
            )
        if isinstance(message, wire_protocol.GetStreamSegmentInfo):
            end = len(self.data)
            return wire_protocol.StreamSegmentInfo(
                message.request_id, message.segment, True, self.sealed, False, 0, end, self.start
            )
        if isinstance(message, wire_protocol.GetSegmentAttribute):
            return wire_protocol.SegmentAttribute(message.request_id, self.made_ms)
        number, name, at = message.request_id, message.segment, message.offset
        if at < self.start:
            return wire_protocol.SegmentIsTruncated(number, name, self.start, "", at)
        data = self.data[at : at + max(8, min(message.length, most))]
        return wire_protocol.SegmentRead(name, at, False, False, data, number)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        for thread in self._threads:
            thread.join()


class LocalClient(Client):
    """A client whose controller is this test."""

    def __init__(self, store: Store, **settings: Any) -> None:
        super().__init__(
            Endpoint("tcp://127.0.0.1:1", **{"request_timeout_seconds": 2, "stall_seconds": 3, **settings})
        )
        self.store = store
        self.given = ["first token", "second token", "third token", "fourth token"]
        self.asked: list[str] = []

    def call(self, call: Any) -> Any:
        self.asked.append(call.method)
        if call.method == "getURI":
            return self.store.address
        assert call.method == "getDelegationToken"
        return self.given.pop(0)


@pytest.fixture
def serve() -> Iterator[Callable[..., LocalClient]]:
    """Makes a store with these bytes, and a client of it."""
    with contextlib.ExitStack() as stack:

        def make(data: bytes, *, start: int = 0, sealed: bool = True, **settings: Any) -> LocalClient:
            store = Store(data, start=start, sealed=sealed)
            stack.callback(store.close)
            client = LocalClient(store, **settings)
            stack.callback(client.close)
            return client

        yield make


SEGMENT = Segment(STREAM, 0)
