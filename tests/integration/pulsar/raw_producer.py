"""A producer that writes any bytes as an entry: brokers look at little of what they store."""

from __future__ import annotations

import struct
import time
from collections import deque
from contextlib import ExitStack
from typing import Any, Self

import google_crc32c

from airflow_provider_streams.errors import SystemUnavailable
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.client.protobuf import BYTES, tokens, write_varint
from airflow_provider_streams.systems.pulsar.client.wire import commands_pb2 as pb
from airflow_provider_streams.systems.pulsar.client.wire.broker_client import BrokerClient
from stream_servers.waiting import wait_until
from tests.fuzz.writer import Value, usual

PRODUCER, SEND, PRODUCER_SUCCESS, SEND_RECEIPT, SEND_ERROR, CLOSE_PRODUCER = 5, 6, 17, 7, 8, 15
ANSWER_SECONDS = 300


class _ClosedByBroker(Exception):
    """The broker closed the topic under its producer."""


class RawProducer:
    """Writes to one partition.

    A broker may close a topic that it has just made, for example if it cannot read which transactions there were in a
    namespace of this name before. As clients do, this one then opens it again.

    Args:
        endpoint: the cluster.
        topic: its full name; it must exist.
    """

    def __init__(self, endpoint: Endpoint, topic: str) -> None:
        self._endpoint, self._topic = endpoint, topic
        self._sequence = 0
        try:
            self._open()
        except _ClosedByBroker:
            wait_until(self._is_open_again, "the topic")

    def _open(self) -> None:
        self._client = BrokerClient(self._endpoint)
        with ExitStack() as refused:
            refused.callback(self._client.close)
            self._connection = self._client._connection(self._client._owners([self._topic])[self._topic])
            self._unread: deque[bytes] = deque()
            self._send(PRODUCER, [(1, self._topic.encode()), (2, 1), (3, self._connection.next_id())])
            self._answer(PRODUCER_SUCCESS)
            refused.pop_all()

    def _is_open_again(self) -> bool:
        self._client.close()
        try:
            self._open()
        except (AssertionError, SystemUnavailable, _ClosedByBroker):  # not yet
            return False
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def send(self, metadata: bytes, payload: bytes, *, messages: int = 1) -> tuple[int, int]:
        """Ledger and entry of an entry with these bytes, of so many messages as we say."""
        fields = [(1, 1), (2, self._sequence), (3, messages)]
        body = struct.pack(">I", len(metadata)) + metadata + payload
        entry = struct.pack(">HI", 0x0E01, google_crc32c.value(body)) + body
        self._send(SEND, fields, entry)
        try:
            receipt = self._answer(SEND_RECEIPT)
        except _ClosedByBroker:
            assert not self._sequence, "of a later entry, it is not known whether it was stored"
            wait_until(self._is_open_again, "the topic")
            self._send(SEND, fields, entry)
            receipt = self._answer(SEND_RECEIPT)
        self._sequence += 1
        place = pb.MessageIdData.FromString(_fields(receipt)[3])
        return place.ledgerId, place.entryId

    def _send(self, number: int, fields: list[tuple[int, Value]], rest: bytes = b"") -> None:
        command = usual([(1, number), (number, fields)])
        frame = struct.pack(">I", len(command)) + command + rest
        self._connection._socket.sendall(struct.pack(">I", len(frame)) + frame)

    def _answer(self, wanted: int) -> bytes:
        """The body of the answer.

        Frames that arrive with it are kept: the broker may close a producer in the moment that it has made it.
        """
        waited_until = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < waited_until:
            if not self._unread:
                frames = self._connection.receive(10)  # which may replace the buffer
                self._unread += [bytes(self._connection.buffer.view[begin + 8 : end]) for begin, end in frames]
            while self._unread:
                frame = self._unread.popleft()
                fields = _fields(frame)
                if wanted in fields:
                    return fields[wanted]
                if fields[1] == CLOSE_PRODUCER:
                    raise _ClosedByBroker
                if fields[1] in {SEND_ERROR, pb.BaseCommand.ERROR_FIELD_NUMBER}:
                    raise AssertionError(f"the broker refuses: {frame!r}")
        raise AssertionError(f"{self._topic}: no answer from the broker for {ANSWER_SECONDS} s")


def _fields(data: bytes) -> dict[int, Any]:
    """The values of a message's fields by their numbers."""
    found = tokens(data, 0, len(data))
    return {tag >> 3: data[value:stop] if tag & 7 == BYTES else value for tag, value, stop in found}


def metadata(publish_ms: int = 1_763_700_000_000, **more: int | bytes) -> bytes:
    """A MessageMetadata as clients write it, with these fields by name."""
    numbers = {
        "properties": 4,
        "replicated_from": 5,
        "key": 6,
        "compression": 8,
        "uncompressed_size": 9,
        "num_messages": 11,
        "event_ms": 12,
        "uuid": 26,
        "schema_version": 16,
        "key_is_base64": 17,
        "num_chunks": 27,
        "total_size": 28,
        "chunk_id": 29,
        "sequence_id": 2,
    }
    return usual([(1, b"raw"), (2, 0), (3, publish_ms), *((numbers[name], value) for name, value in more.items())])


def batch(*values: bytes) -> bytes:
    """A batch's payload."""
    headers = [b"\x18" + write_varint(len(value)) for value in values]
    return b"".join(struct.pack(">I", len(h)) + h + v for h, v in zip(headers, values, strict=True))
