"""A small writer of Pravega events, for tests and demos: every call returns when its events are acknowledged.

Not for production: it neither batches over calls nor resumes after a lost connection.
"""

from __future__ import annotations

import struct
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Self
from uuid import UUID, uuid4

from airflow_provider_streams.errors import ProtocolError
from airflow_provider_streams.systems.pravega.client import wire_protocol
from airflow_provider_streams.systems.pravega.client.controller import controller_pb2 as pb
from airflow_provider_streams.systems.pravega.client.controller import segment_calls, transaction_calls
from airflow_provider_streams.systems.pravega.client.controller.call import KeyedSegment
from airflow_provider_streams.systems.pravega.client.controller.transaction_calls import TransactionState
from airflow_provider_streams.systems.pravega.client.endpoint import Endpoint
from airflow_provider_streams.systems.pravega.client.segment_store_connection import Connection
from airflow_provider_streams.systems.pravega.client.stream_client import Client
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment

Event = tuple[str, bytes]
"""Routing key and payload."""

_BLOCK_BYTES = 1 << 20
_LEASE_MS = 60_000


class PravegaWriter:
    """Appends events to a stream, also across scalings, and commits transactions. For one thread.

    Args:
        endpoint: where the cluster is.
        stream: `scope/stream`, which must exist.
    """

    def __init__(self, endpoint: Endpoint, stream: str) -> None:
        self._client, self._stream = Client(endpoint), stream
        self._name = str(uuid4())
        self._segments: dict[int, _Appender] = {}
        self._current: tuple[KeyedSegment, ...] = ()

    def write(self, events: Iterable[Event]) -> None:
        """Append events; those of one key in this order.

        Raises:
            Sealed: the stream is.
        """
        left = list(events)
        while left:
            self._current = self._current or self._client.call(segment_calls.current_segments(self._stream))
            if not self._current:
                raise Sealed(f"{self._stream} takes no more events")
            refused: list[Event] = []
            for key, part in _routed(left, self._current):
                refused += self._append(key, part)
            if refused:  # a segment was sealed: others have its keys now
                self._current = ()
            left = refused

    def transaction(
        self,
        events: Iterable[Event],
        before_commit: Callable[[], object] = lambda: None,
        *,
        noted_time: int = transaction_calls.NO_TIME,
    ) -> None:
        """Write events in a transaction, and return when it is committed.

        Args:
            events: its events.
            before_commit: done when all are written, and before they count.
            noted_time: the time that the writer notes with it, for watermarks.
        """
        made = self._client.call(transaction_calls.begin_transaction(self._stream, _LEASE_MS))
        for key, part in _routed(list(events), made.segments):
            parent = Segment(self._stream, key)
            with _Appender(self._client, parent, parent.transaction(made.high, made.low)) as appender:
                for block in _blocks(part):
                    appender.append(block)
        before_commit()
        self._client.call(
            transaction_calls.commit_transaction(self._stream, made.high, made.low, self._name, noted_time)
        )
        while self._state(made.high, made.low) is not TransactionState.COMMITTED:
            time.sleep(0.02)

    def _state(self, high: int, low: int) -> TransactionState:
        state = self._client.call(transaction_calls.transaction_state(self._stream, high, low))
        if state in (TransactionState.ABORTING, TransactionState.ABORTED, TransactionState.UNKNOWN):
            raise ProtocolError(f"{self._stream}: the transaction was not committed, it is {state.name}")
        return state

    def _append(self, key: int, events: Sequence[Event]) -> list[Event]:
        """Append to a segment; the events that it did not take, as it was sealed."""
        blocks = list(_blocks(events))
        for number, block in enumerate(blocks):
            try:
                self._appender(key).append(block)
            except Sealed:
                if appender := self._segments.pop(key, None):
                    appender.close()
                return [event for rest in blocks[number:] for event in rest]
        return []

    def _appender(self, key: int) -> _Appender:
        if key not in self._segments:
            segment = Segment(self._stream, key)
            self._segments[key] = _Appender(self._client, segment, segment.name)
        return self._segments[key]

    def close(self) -> None:
        """Close the connections."""
        for appender in self._segments.values():
            appender.close()
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Sealed(RuntimeError):
    """A segment, or the stream, takes no more events."""


class _Appender:
    """One segment's connection; a block is stored as a whole or not at all.

    Raises:
        Sealed: the segment is.
    """

    def __init__(self, client: Client, segment: Segment, name: str) -> None:
        self._name, self._timeout = name, client.endpoint.request_timeout_seconds
        self._writer: UUID = uuid4()
        self._number = 0
        token = client.call(segment_calls.delegation_token(segment.stream, pb.ACCESS_READ_WRITE))
        with ExitStack() as failed:
            self._connection: Connection = client.connect(segment)
            failed.callback(self._connection.close)
            self._connection.send(wire_protocol.SetupAppend(1, self._writer, name, token))
            self._expect(wire_protocol.AppendSetup)
            failed.pop_all()

    def append(self, block: Sequence[Event]) -> None:
        """Append events as one block.

        Raises:
            Sealed: none of them was stored.
        """
        data = b"".join(struct.pack(">ii", 0, len(payload)) + payload for _, payload in block)
        self._number += len(block)
        end = wire_protocol.AppendBlockEnd(self._writer, len(data), b"", len(block), self._number, self._number)
        self._connection.send(wire_protocol.AppendBlock(self._writer, data), end)
        self._expect(wire_protocol.DataAppended)

    def _expect(self, kind: type[wire_protocol.Message]) -> None:
        answer = self._connection.receive(self._timeout)
        if isinstance(answer, wire_protocol.SegmentIsSealed | wire_protocol.NoSuchSegment):
            raise Sealed(f"{self._name} takes no more events")
        if not isinstance(answer, kind):
            raise ProtocolError(f"{self._name}: {type(answer).__name__} instead of {kind.__name__}")

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _routed(events: Sequence[Event], segments: Sequence[KeyedSegment]) -> Iterator[tuple[int, list[Event]]]:
    """Events by the segment that owns their keys."""
    for one in segments:
        part = [event for event in events if one.low <= _place(event[0]) < one.high]
        if part:
            yield one.segment_id, part


def _place(key: str) -> float:
    """A key's place in the key space; any rule does that is the same for all writers of a stream."""
    return zlib.crc32(key.encode()) / (1 << 32)


def _blocks(events: Sequence[Event]) -> Iterator[list[Event]]:
    block: list[Event] = []
    size = 0
    for event in events:
        if block and size + len(event[1]) + 8 > _BLOCK_BYTES:
            yield block
            block, size = [], 0
        block.append(event)
        size += len(event[1]) + 8
    if block:
        yield block
