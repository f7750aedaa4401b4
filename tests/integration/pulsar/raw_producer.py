"""A producer that writes any bytes as an entry: brokers look at little of what they store."""

from __future__ import annotations

import struct
from typing import Any, Self

import google_crc32c

from airflow_provider_streams.systems.pulsar.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.protobuf import encode_field, write_varint
from airflow_provider_streams.systems.pulsar.wire import commands as c
from airflow_provider_streams.systems.pulsar.wire.broker import BrokerClient
from airflow_provider_streams.systems.pulsar.wire.schema import read_fields

PRODUCER, SEND, PRODUCER_SUCCESS, SEND_RECEIPT, SEND_ERROR = 5, 6, 17, 7, 8


class RawProducer:
    """Writes to one partition.

    Args:
        endpoint: the cluster.
        topic: its full name; it must exist.
    """

    def __init__(self, endpoint: Endpoint, topic: str) -> None:
        self._client = BrokerClient(endpoint)
        self._connection = self._client._connection(self._client._owners([topic])[topic])
        self._sequence = 0
        fields = encode_field(1, topic.encode()) + encode_field(2, 1) + encode_field(3, self._connection.next_id())
        self._send(PRODUCER, fields)
        self._answer(PRODUCER_SUCCESS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def send(self, metadata: bytes, payload: bytes, *, messages: int = 1) -> tuple[int, int]:
        """Ledger and entry of an entry with these bytes, of so many messages as we say."""
        fields = encode_field(1, 1) + encode_field(2, self._sequence) + encode_field(3, messages)
        body = struct.pack(">I", len(metadata)) + metadata + payload
        self._send(SEND, fields, struct.pack(">HI", 0x0E01, google_crc32c.value(body)) + body)
        self._sequence += 1
        place = dict(read_fields(dict(read_fields(self._answer(SEND_RECEIPT)))[3]))
        return place[1], place[2]

    def _send(self, number: int, fields: bytes, rest: bytes = b"") -> None:
        command = encode_field(1, number) + encode_field(number, fields)
        frame = struct.pack(">I", len(command)) + command + rest
        self._connection._socket.sendall(struct.pack(">I", len(frame)) + frame)

    def _answer(self, wanted: int) -> bytes:
        """The body of the answer."""
        while True:
            for begin, end in self._connection.receive(10):
                frame = bytes(self._connection.buffer.view[begin + 8 : end])
                fields: dict[int, Any] = dict(read_fields(frame))
                if wanted in fields:
                    return fields[wanted]
                if fields[1] in {SEND_ERROR, c.Error.type}:
                    raise AssertionError(f"the broker refuses: {frame!r}")


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
        "num_chunks": 27,
        "total_size": 28,
        "chunk_id": 29,
        "sequence_id": 2,
    }
    head = encode_field(1, b"raw") + encode_field(2, 0) + encode_field(3, publish_ms)
    return head + b"".join(encode_field(numbers[name], value) for name, value in more.items())


def batch(*values: bytes) -> bytes:
    """A batch's payload."""
    headers = [b"\x18" + write_varint(len(value)) for value in values]
    return b"".join(struct.pack(">I", len(h)) + h + v for h, v in zip(headers, values, strict=True))
