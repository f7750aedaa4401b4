"""Reads one range of a segment to Arrow batches. It ends because its end was reached, and never asks beyond it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from airflow_provider_streams.errors import (
    CorruptFrame,
    NotAuthorized,
    ProtocolError,
    ReadStalled,
    SourceNotFound,
    StreamsError,
    SystemUnavailable,
)
from airflow_provider_streams.model.plan.plan import Span, Split
from airflow_provider_streams.model.plan.receipt import SplitReceipt
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.redaction import redact
from airflow_provider_streams.systems.connection.backoff import Backoff
from airflow_provider_streams.systems.pravega.client import wire_protocol
from airflow_provider_streams.systems.pravega.client.multi_step_queries import infos
from airflow_provider_streams.systems.pravega.client.segment_store_connection import Connection
from airflow_provider_streams.systems.pravega.client.stream_client import Client
from airflow_provider_streams.systems.pravega.metadata.incarnation import difference
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment
from airflow_provider_streams.systems.pravega.reading.columns import MAX_ROWS, BatchMaker
from airflow_provider_streams.systems.pravega.reading.event_decoder import HEADER_BYTES, EventParser, Events
from airflow_provider_streams.systems.pravega.reading.prefetch_thread import Prefetched

_log = logging.getLogger(__name__)

REQUEST_BYTES = 2 * 1024 * 1024
"""What one request asks for: the most a server answers with."""

_BACKOFF = Backoff(first_seconds=0.05, longest_seconds=2.0, chance=0.0)
_HOPELESS_TRIES = 2
_BLOCKS_AHEAD = 1
_ROOM = 64 * 1024
"""Free memory in front of a block, for the start of the event whose end is in it."""


@dataclass(frozen=True, slots=True)
class Block:
    """Bytes of a segment: `memory` from `start` on. The memory in front of them is free."""

    memory: memoryview
    start: int

    def __len__(self) -> int:
        return len(self.memory) - self.start


class RemovedRange(NamedTuple):
    """Bytes that are gone; reading can continue at `start`."""

    start: int


class Retry(NamedTuple):
    """A failure that may pass; the connection is useless."""

    cause: str
    error: StreamsError | None = None
    """Raised if it does not pass."""
    hopeful: bool = True
    """Whether waiting may help; otherwise a few tries are enough."""


class RangeReader:
    """The bytes of `[start, end)` of one segment, in order, over as many connections as it takes.

    Keeps several requests on their way. Gives blocks, and `RemovedRange` where bytes are missing.

    Args:
        client: sends the requests.
        segment: to read.
        start: the first byte's offset.
        end: the offset after the last byte.
        made: when the segment was made, see `incarnation`; empty: unknown.
    """

    def __init__(self, client: Client, segment: Segment, start: int, end: int, made: str = "") -> None:
        self._client, self._segment, self._made = client, segment, made
        self._at, self._end = start, end
        self._connection: Connection | None = None
        self._sent: dict[int, tuple[int, int]] = {}
        """Requests on their way: offset and length, by request id."""
        self._early: dict[int, Block] = {}
        """Answers to later requests, by offset, that wait for the rest of an earlier one."""
        self._memory = memoryview(b"")
        """Where the last answer was received to."""
        self._asked = start
        self._requests = 0
        self._cancelled = threading.Event()

    def __iter__(self) -> Iterator[Block | RemovedRange]:
        patience = _Patience(self._segment, self._client.endpoint.stall_seconds, self._cancelled)
        try:
            while self._at < self._end and not self._cancelled.is_set():
                answer = self._next(patience.deadline)
                if isinstance(answer, Retry):
                    self.close()
                    patience.wait(answer, self._at, self._end)
                    continue
                if isinstance(answer, RemovedRange):
                    self.close()
                    self._at = answer.start
                yield answer
                patience.renew()
        finally:
            self.close()

    def cancel(self) -> None:
        """End an iteration that another thread runs, soon."""
        self._cancelled.set()
        connection = self._connection
        if connection is not None:
            connection.abort()

    def close(self) -> None:
        """Drop the connection and what was asked on it; a later block is asked again."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        self._sent.clear()
        self._early.clear()

    def _next(self, deadline: float) -> Block | RemovedRange | Retry:
        try:
            if self._connection is None:
                missing = self._open()
                if missing is not None:
                    return missing
            while self._at not in self._early:
                refusal = self._receive(deadline)
                if refusal is not None:
                    return refusal
            self._ask()
        except SourceNotFound:
            return RemovedRange(self._end)
        except (SystemUnavailable, CorruptFrame) as error:
            return Retry(f"{type(error).__name__}", error)
        block = self._early.pop(self._at)
        self._at += len(block)
        return block

    def _open(self) -> RemovedRange | None:
        """Connect, and see whether the range is still there: beyond a segment's end a store would wait for data."""
        name = self._segment
        found = self._client.run(infos(name.stream, [name.id])).get(name.id)
        if other := difference(name, self._made, found):
            raise other
        if found is None or found.write_offset < self._end:
            return RemovedRange(self._end)  # a shorter segment is another one of that name
        if found.start_offset > self._at:
            return RemovedRange(min(found.start_offset, self._end))
        self._connection = self._client.connect(name)
        self._asked = self._at
        self._ask()
        return None

    def _ask(self) -> None:
        while self._asked < self._end and len(self._sent) < self._client.endpoint.read_ahead:
            length = min(REQUEST_BYTES, self._end - self._asked)
            self._send(self._asked, length)
            self._asked += length

    def _send(self, offset: int, length: int) -> None:
        self._requests += 1
        token = self._client.token(self._segment.stream)
        message = wire_protocol.ReadSegment(self._segment.name, offset, length, token, self._requests)
        connection = self._connection
        if connection is not None:
            connection.send(message)
            self._sent[self._requests] = (offset, length)

    def _receive(self, deadline: float) -> RemovedRange | Retry | None:
        connection = self._connection
        if connection is None or self._cancelled.is_set():
            return Retry("no connection")
        wait = min(deadline - time.monotonic(), self._client.endpoint.request_timeout_seconds)
        message = connection.receive(max(wait, 0.0), self._allocate)
        if isinstance(message, wire_protocol.SegmentRead):
            return self._take(message)
        return self._refused(message)

    def _allocate(self, size: int) -> memoryview:
        # Arrow's allocator gives the same memory again; fresh memory of this size costs more than filling it
        self._memory = memoryview(pa.allocate_buffer(_ROOM + size)).cast("B")
        return self._memory[_ROOM:]

    def _take(self, message: wire_protocol.SegmentRead) -> Retry | None:
        offset, length = self._sent.pop(message.request_id, (-1, 0))
        if message.offset != offset or message.segment != self._segment.name:
            raise ProtocolError(
                f"{self._segment.name}: an answer of {message.segment[:300]} at offset {message.offset}, which was not "
                "asked for"
            )
        data = memoryview(message.data)[:length]  # a store gives 8 bytes at least, if need be of the next event
        if not data:
            return Retry("an empty answer")
        start = pa.py_buffer(data).address - pa.py_buffer(self._memory).address
        self._early[offset] = Block(self._memory[: start + len(data)], start)
        if len(data) < length:
            self._send(offset + len(data), length - len(data))
        return None

    def _refused(self, message: wire_protocol.Message) -> RemovedRange | Retry:
        name = self._segment.name
        answer: RemovedRange | Retry
        match message:
            case wire_protocol.SegmentIsTruncated(_, _, start) if start > self._at:
                answer = RemovedRange(min(start, self._end))
            case wire_protocol.NoSuchSegment():
                answer = RemovedRange(self._end)
            case wire_protocol.WrongHost():
                answer = Retry("the segment moved to another store")
            case wire_protocol.AuthTokenCheckFailed(_, _, wire_protocol.TOKEN_EXPIRED):
                self._client.tokens.forget(self._segment.stream)
                answer = Retry("the delegation token expired")
            case wire_protocol.AuthTokenCheckFailed():
                self._client.tokens.forget(self._segment.stream)
                refused = NotAuthorized("Pravega's segment store", f"read {name}")
                answer = Retry("the token was refused", refused, hopeful=False)
            case wire_protocol.ErrorMessage(_, _, text):
                error = ProtocolError(f"{name}: the segment store refuses to read: {redact(text)[:200]}")
                answer = Retry("the read was refused", error, hopeful=False)
            case _:
                error = ProtocolError(f"{name}: {type(message).__name__} is no answer to a read")
                answer = Retry("an answer to something else", error, hopeful=False)
        return answer


class _Patience:
    """How long a read without progress is repeated."""

    def __init__(self, segment: Segment, stall_seconds: float, cancelled: threading.Event) -> None:
        self._segment, self._stall, self._cancelled = segment, stall_seconds, cancelled
        self.renew()

    @property
    def deadline(self) -> float:
        """The monotonic time at which a read without progress has stalled."""
        return self._since + self._stall

    def renew(self) -> None:
        """There was progress."""
        self._since, self._waits, self._hopeless = time.monotonic(), _BACKOFF.waits(), 0

    def wait(self, why: Retry, at: int, end: int) -> None:
        """Wait before the next try.

        Raises:
            StreamsError: the error of `why`, after a few tries that waiting does not help.
            ReadStalled: there was no progress for `stall_seconds`.
        """
        self._hopeless += not why.hopeful
        if why.error is not None and self._hopeless >= _HOPELESS_TRIES:
            raise why.error
        now, pause = time.monotonic(), next(self._waits)
        if now + pause > self.deadline:
            raise ReadStalled(self._segment.name, at, end, now - self._since) from why.error
        _log.info("%s: %s at offset %d, trying again", self._segment.name, why.cause, at)
        self._cancelled.wait(pause)


class PravegaSplitReader:
    """Reads one split to Arrow batches, once; see `systems.base.SplitReader`.

    Bytes that are no longer there become gaps of the receipt, which `PravegaSystem.explain` turns into `EventsLost`
    or, when loss is accepted, into a count.
    """

    def __init__(self, client: Client, split: Split, columns: Sequence[str] | None, *, made: str = "") -> None:
        segment = Segment.parse(split.shard)
        start, end = split.start.parts[0], split.end.parts[0]
        self._segment, self._index = segment, split.index
        self._maker = BatchMaker(segment, columns)
        self._bytes = RangeReader(client, segment, start, end, made)
        self._ahead = Prefetched(self._bytes, _BLOCKS_AHEAD)
        self._parser = EventParser(segment.name, start, end, client.endpoint.max_event_bytes)
        self._rows = self._payload = 0
        self._first: int | None = None
        self._last: int | None = None
        self._gaps: list[Span] = []

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Batches of whole events, in the order of the segment.

        Raises:
            CutNotAtEventBoundary: the stored bytes are no events, or the range does not end between two.
            EventTooLarge: an event has more than `max_event_bytes`, or a wrong header.
            SourceReplaced: the segment is not the one that the plan was made of.
            ReadStalled: no progress for `stall_seconds`.
            AccessError: the system refuses us.
        """
        try:
            for block in self._ahead:
                yield from self._batches(block)
        finally:
            self.close()
        self._parser.finish()

    def _batches(self, block: Block | RemovedRange) -> Iterator[pa.RecordBatch]:
        if isinstance(block, RemovedRange):
            self._gaps.append(Span(self._segment.id, self._parser.at, block.start))
            self._parser.restart(block.start)
            return
        events = self._parser.feed(block.memory, block.start)
        if events is not None:
            for part in events.slices(MAX_ROWS):
                yield self._maker.batch(part)
                self._count(part)

    def _count(self, events: Events) -> None:
        """Count the events that were given, so that lost ones are missing."""
        if self._first is None:
            self._first = int(events.offsets[0])
        self._last = int(events.offsets[-1])
        self._rows += len(events.payloads)
        self._payload += events.payloads.total_values_length

    @property
    def receipt(self) -> SplitReceipt:
        """What was read so far; `entries` are stored bytes, headers included."""
        return SplitReceipt(
            self._index,
            rows=self._rows,
            bytes=self._payload,
            entries=self._payload + HEADER_BYTES * self._rows,
            first=None if self._first is None else Position.of(self._first),
            last=None if self._last is None else Position.of(self._last),
            gaps=tuple(self._gaps),
        )

    def close(self) -> None:
        """End the read, even in the middle, and close its connection."""
        self._bytes.cancel()
        self._ahead.close()
