"""A broker of a few dozen lines, for what a real one does only when it fails."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import google_crc32c
import pytest

from airflow_provider_streams.errors import ProtocolError
from airflow_provider_streams.systems.pulsar.client.wire import commands_pb2 as pb
from airflow_provider_streams.systems.pulsar.client.wire.commands import Command, encode_command
from airflow_provider_streams.systems.pulsar.client.wire.frames import BrokerEntry, FrameBuffer, encode_frame
from tests.fuzz.writer import usual


def metadata(publish_ms: int = 1000, **more: int | bytes) -> bytes:
    """MessageMetadata with these fields by name."""
    numbers = {
        "sequence_id": 2,
        "compression": 8,
        "uncompressed_size": 9,
        "num_messages": 11,
        "event_ms": 12,
        "encryption": 13,
        "marker": 20,
        "uuid": 26,
        "num_chunks": 27,
        "total_size": 28,
        "chunk_id": 29,
    }
    return usual([(1, b"producer"), (3, publish_ms), *((numbers[name], value) for name, value in more.items())])


def batch(*values: bytes) -> bytes:
    """A batch's payload."""
    headers = [usual([(3, len(value))]) for value in values]
    return b"".join(struct.pack(">I", len(h)) + h + v for h, v in zip(headers, values, strict=True))


def message_frame(
    ledger: int,
    entry: int,
    header: bytes,
    payload: bytes,
    *,
    consumer_id: int = 1,
    broker: BrokerEntry | None = None,
    checksum: bool = True,
    flip: bool = False,
) -> bytes:
    """A MESSAGE frame; `flip` changes a byte of the payload after the checksum was made."""
    command = encode_command(pb.CommandMessage(consumer_id=consumer_id, message_id=message_id(ledger, entry)))
    body = struct.pack(">I", len(header)) + header + payload
    crc = google_crc32c.value(body)
    if flip:
        body = body[:-1] + bytes([body[-1] ^ 1])
    noted = broker_entry(broker) if broker else b""
    frame = struct.pack(">I", len(command)) + command
    frame += struct.pack(">HI", 0x0E02, len(noted)) + noted if broker else b""
    frame += (struct.pack(">HI", 0x0E01, crc) if checksum else b"") + body
    return struct.pack(">I", len(frame)) + frame


def message_id(ledger: int, entry: int) -> pb.MessageIdData:
    """An entry's id."""
    return pb.MessageIdData(ledgerId=ledger, entryId=entry)


def _start(subscribe: pb.CommandSubscribe) -> tuple[int, int]:
    return subscribe.start_message_id.ledgerId, subscribe.start_message_id.entryId


def broker_entry(noted: BrokerEntry) -> bytes:
    """What a broker notes, as it sends it."""
    return pb.BrokerEntryMetadata(broker_timestamp=noted.timestamp_ms, index=noted.message_index).SerializeToString()


@dataclass(frozen=True)
class Stored:
    ledger: int
    entry: int
    header: bytes
    payload: bytes
    broker: BrokerEntry | None = None

    @property
    def place(self) -> tuple[int, int]:
        return self.ledger, self.entry


@dataclass(frozen=True)
class Fault:
    """What happens after so many entries: `close`, `close_consumer`, `flip`, `silence` or `again` (from the start)."""

    after: int
    what: str


@dataclass
class FakeBroker:
    """Holds entries of any topic; `faults` are used up, one per subscription that is fed."""

    entries: list[Stored] = field(default_factory=list)
    faults: deque[Fault] = field(default_factory=deque)
    tail: tuple[int, int] | str | None = "last"
    mark_delete: tuple[int, int] | None = None
    answers: dict[type, Callable[[Command], list[Command]]] = field(default_factory=dict)
    """Instead of the usual answers."""
    heard: list[Command] = field(default_factory=list)
    raw: bytes = b""
    """Sent instead of any answer."""
    tls: ssl.SSLContext | None = None
    falls_back: bool = False
    """Feeds every consumer from the first entry."""

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"pulsar://127.0.0.1:{self.port}"
        self.url_tls = f"pulsar+ssl://localhost:{self.port}"
        self._sockets = [self._listener]
        self._starts: dict[tuple[int, int], tuple[int, int]] = {}
        threading.Thread(target=self._accept, daemon=True).start()

    def subscriptions(self) -> list[tuple[int, int]]:
        return [_start(command) for command in self.of(pb.CommandSubscribe)]

    def of(self, kind: type) -> list[Command]:
        return [command for command in self.heard if isinstance(command, kind)]

    def close(self) -> None:
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock = self._listener.accept()[0]
                self._sockets.append(sock)
                threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        buffer = FrameBuffer()
        with contextlib.suppress(OSError, ProtocolError):
            if self.tls:
                sock = self.tls.wrap_socket(sock, server_side=True)
                self._sockets.append(sock)
            while count := sock.recv_into(buffer.space()):
                if self.raw:
                    sock.sendall(self.raw)
                    break
                for frame in buffer.received(count):
                    command = buffer.command(frame)
                    self.heard.append(command)
                    self._answer(sock, command)
        sock.close()

    def _answer(self, sock: socket.socket, command: Command) -> None:
        if type(command) in self.answers:
            for answer in self.answers[type(command)](command):
                sock.sendall(encode_frame(answer))
            return
        match command:
            case pb.CommandFlow():
                self._feed(sock, command.consumer_id, self._starts[id(sock), command.consumer_id])
            case pb.CommandSubscribe():
                self._starts[id(sock), command.consumer_id] = _start(command)
                sock.sendall(encode_frame(pb.CommandSuccess(request_id=command.request_id)))
            case pb.CommandGetLastMessageId():
                sock.sendall(encode_frame(self._tail_answer(command)))
            case _ if type(command) in USUAL:
                sock.sendall(encode_frame(USUAL[type(command)](self, command)))

    def _tail_answer(self, command: pb.CommandGetLastMessageId) -> pb.CommandGetLastMessageIdResponse:
        tail = self.tail
        if tail == "last":
            tail = self.entries[-1].place if self.entries else None
        return pb.CommandGetLastMessageIdResponse(
            last_message_id=message_id(*tail or (-1, -1)),
            request_id=command.request_id,
            consumer_mark_delete_position=message_id(*self.mark_delete) if self.mark_delete else None,
        )

    def _feed(self, sock: socket.socket, consumer_id: int, start: tuple[int, int]) -> None:
        fault = self.faults.popleft() if self.faults else None
        rest = [entry for entry in self.entries if entry.place >= start or self.falls_back]
        if fault and fault.what == "again":
            rest = rest[: fault.after] + rest
        for number, stored in enumerate(rest):
            hit = fault is not None and number == fault.after
            if hit and fault.what == "silence":
                return
            if hit and fault.what == "close":
                sock.shutdown(socket.SHUT_RDWR)
                return
            if hit and fault.what == "close_consumer":
                sock.sendall(encode_frame(pb.CommandCloseConsumer(consumer_id=consumer_id)))
                return
            flip = hit and fault.what == "flip"
            sock.sendall(
                message_frame(
                    *stored.place,
                    stored.header,
                    stored.payload,
                    consumer_id=consumer_id,
                    broker=stored.broker,
                    flip=flip,
                )
            )


USUAL: dict[type, Callable[[FakeBroker, Command], Command]] = {
    pb.CommandConnect: lambda _, __: pb.CommandConnected(max_message_size=5 << 20),
    pb.CommandLookupTopic: lambda broker, asked: pb.CommandLookupTopicResponse(
        brokerServiceUrl=broker.url.encode(), brokerServiceUrlTls=broker.url_tls.encode(), request_id=asked.request_id
    ),
    pb.CommandCloseConsumer: lambda _, asked: pb.CommandSuccess(request_id=asked.request_id),
}


@pytest.fixture
def fake_broker() -> Iterator[FakeBroker]:
    broker = FakeBroker()
    yield broker
    broker.close()


@pytest.fixture
def fake_brokers() -> Iterator[Callable[..., FakeBroker]]:
    made: list[FakeBroker] = []

    def make(**settings: object) -> FakeBroker:
        made.append(FakeBroker(**settings))
        return made[-1]

    yield make
    for broker in made:
        broker.close()


@dataclass(frozen=True)
class Build:
    """What tests of bytes need, without imports between test files."""

    metadata = staticmethod(metadata)
    batch = staticmethod(batch)
    message_frame = staticmethod(message_frame)
    message_id = staticmethod(message_id)
    broker_entry = staticmethod(broker_entry)
    Stored = Stored
    Fault = Fault


@pytest.fixture(scope="session")
def build() -> Build:
    return Build()
