"""Collects the chunks of messages that are larger than a frame, and reads the first chunks of a message again.

Chunks of one message share a uuid and arrive in order, interleaved with chunks of other producers. A producer that lost
its connection begins again at the first chunk, or sends chunks twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.client.protobuf import Malformed
from airflow_provider_streams.systems.pulsar.client.wire.broker_client import BrokerClient
from airflow_provider_streams.systems.pulsar.client.wire.commands import Place
from airflow_provider_streams.systems.pulsar.reading.decode.headers.message_metadata import EntryMetadata
from airflow_provider_streams.systems.pulsar.reading.entry_fetcher import Feed
from airflow_provider_streams.systems.pulsar.reading.entry_limits import Limits, TooLarge

MEMORY_BYTES: Final = 128 * 1024 * 1024
"""The limit of all unfinished messages. A message that does not fit is read again after its last chunk."""
CHUNK_BYTES: Final = 256
"""The cost of a chunk in addition to its payload."""
FINISHED: Final = 10_000
"""The collector remembers so many whole messages; a producer only repeats recent chunks."""
FARTHEST_ENTRIES: Final = 100_000
FARTHEST_BYTES: Final = 4 * 1024 * 1024 * 1024
"""How far back a recovery reads. Chunks of one message are close together; Pulsar's own consumers give up earlier."""


@dataclass(slots=True)
class PartialMessage:
    """Chunks of one message from `first_id` up to `next_id`, without a hole."""

    first_id: int = 0
    next_id: int = 0
    payloads: list[bytes] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    payload_bytes: int = 0
    cost: int = 0
    """Bytes in memory."""
    wrong: Malformed | None = None
    """Why the message cannot be read; then its payloads are dropped."""

    def take(self, metadata: EntryMetadata, place: Place, payload: bytes | memoryview, limits: Limits) -> None:
        """Keep the next chunk, unless the message cannot be read with it."""
        self.next_id += 1
        if self.wrong is None:
            self.payload_bytes += len(payload)
            self.wrong = _wrong(metadata, self.next_id - self.first_id, self.payload_bytes, limits)
        if self.wrong is None:
            self.payloads.append(bytes(payload))
            self.places.append(place)
            self.cost += len(payload) + CHUNK_BYTES
        else:
            self.payloads.clear()
            self.places[1:] = [place]
            self.cost = 2 * CHUNK_BYTES


@dataclass(frozen=True, slots=True)
class AssembledMessage:
    """A message whose last chunk has arrived."""

    places: tuple[Place, ...]
    """The chunks that were seen, in order; of a wrong message, the first and the last one."""
    payload: bytes | None
    """None: its first chunks are missing, or it is wrong."""
    wrong: Malformed | None = None
    """Why it cannot be read."""
    has_begun: bool = False
    """Its first chunk was seen, and perhaps dropped since."""
    is_repeat: bool = False
    """The message was whole before: its last chunks were sent twice."""


class ChunkCollector:
    """Takes chunks in reading order, and gives each message after its last chunk."""

    def __init__(self, limits: Limits, *, memory_bytes: int = MEMORY_BYTES) -> None:
        self._limits, self._memory = limits, memory_bytes
        self._held: dict[bytes, PartialMessage] = {}
        self._begun: set[int] = set()
        """Digests of the uuids of unfinished messages whose first chunk was seen."""
        self._finished: dict[int, None] = {}
        """Digests of the uuids of messages that were whole, the newest last."""
        self._bytes = 0

    def has_finished(self, uuid: bytes | None) -> bool:
        """Whether a message was whole, so that its further chunks are repeats."""
        return hash(uuid or b"") in self._finished

    @property
    def held_bytes(self) -> int:
        """Bytes of all unfinished messages."""
        return self._bytes

    def add(self, metadata: EntryMetadata, place: Place, payload: bytes | memoryview) -> AssembledMessage | None:
        """The message, if this was its last chunk."""
        if not 0 <= metadata.chunk_id < metadata.num_chunks:
            numbers = f"it states to be chunk {metadata.chunk_id} of {metadata.num_chunks}"
            return AssembledMessage((place,), None, Malformed(numbers))
        uuid = metadata.uuid or b""
        if metadata.chunk_id == 0:
            self._begun.add(hash(uuid))
            self._finished.pop(hash(uuid), None)
        elif self.has_finished(uuid):
            return None
        parts = self._parts(uuid, metadata.chunk_id)
        if metadata.chunk_id < parts.next_id:  # sent twice
            return None
        before = parts.cost
        parts.take(metadata, place, payload, self._limits)
        self._bytes += parts.cost - before
        if metadata.chunk_id == metadata.num_chunks - 1:
            self._drop(uuid)
            has_begun = hash(uuid) in self._begun
            self._begun.discard(hash(uuid))
            if not parts.first_id:
                self._finished[hash(uuid)] = None
                if len(self._finished) > FINISHED:
                    del self._finished[next(iter(self._finished))]
            return replace(_whole(parts, metadata), has_begun=has_begun)
        while self._bytes > self._memory and len(self._held) > 1:  # drop the oldest, but not this one
            self._drop(next(other for other in self._held if other != uuid))
        return None

    def _parts(self, uuid: bytes, chunk_id: int) -> PartialMessage:
        """The chunks that this one continues; a new list for a first chunk, or after a hole."""
        parts = self._held.get(uuid)
        if parts is None or chunk_id == 0 or chunk_id > parts.next_id:
            self._drop(uuid)
            parts = self._held[uuid] = PartialMessage(chunk_id, chunk_id, cost=len(uuid) + CHUNK_BYTES)
            self._bytes += parts.cost
        return parts

    def _drop(self, uuid: bytes) -> None:
        parts = self._held.pop(uuid, None)
        self._bytes -= parts.cost if parts else 0


def _whole(parts: PartialMessage, metadata: EntryMetadata) -> AssembledMessage:
    places = tuple(parts.places)
    if parts.first_id or parts.wrong:
        return AssembledMessage(places, None, parts.wrong)
    if metadata.total_size and parts.payload_bytes != metadata.total_size:
        return AssembledMessage(places, None, _not_as_stated(parts.payload_bytes, metadata))
    return AssembledMessage(places, b"".join(parts.payloads))


def _wrong(metadata: EntryMetadata, chunks: int, size: int, limits: Limits) -> Malformed | None:
    """Why a message with so many chunks of so many bytes cannot be read."""
    if metadata.total_size and size > metadata.total_size:
        return _not_as_stated(size, metadata)
    try:
        limits.check_bytes(size)
        limits.check_rows(chunks, "chunks")
    except TooLarge as error:
        return error
    return None


def _not_as_stated(size: int, metadata: EntryMetadata) -> Malformed:
    return Malformed(f"the chunks up to it hold {size} bytes, their message {metadata.total_size}")


class ChunkRecovery:
    """Reads a topic again from earlier and earlier entries, on behalf of one split.

    After a search in vain, it searches only for messages whose first chunk was seen in that search. So a producer that
    writes only last chunks does not cause a search for each of them.
    """

    def __init__(self, endpoint: Endpoint, topic: str) -> None:
        self._endpoint, self._topic = endpoint, topic
        self._begun: set[int] | None = None
        """Digests of the uuids whose first chunk a search in vain has seen; None: every search succeeded."""

    def find(self, metadata: EntryMetadata, whole: AssembledMessage, last: Place) -> AssembledMessage | None:
        """The whole message whose last chunk, with this metadata, is at `last`; None: its first chunk is not near."""
        if self._begun is not None and not whole.has_begun and hash(metadata.uuid) not in self._begun:
            return None
        looked = step = min(metadata.num_chunks, FARTHEST_ENTRIES)
        start = self._earlier(whole.places[0], step)
        begun: set[int] = set()
        while start is not None:
            begun = set()
            found, is_far = self._read(metadata.uuid, start, last, begun)
            if found is not None:
                return found
            if is_far or looked >= FARTHEST_ENTRIES:
                break
            step = min(2 * step, FARTHEST_ENTRIES - looked)
            looked += step
            start = self._earlier(start, step)
        self._begun = (self._begun or set()) | begun
        return None

    def _read(
        self, uuid: bytes | None, start: Place, last: Place, begun: set[int]
    ) -> tuple[AssembledMessage | None, bool]:
        """The message, if it begins at or after `start`, and whether `start` is too far away; fills `begun`."""
        # it collects only this message, whose size bounds the memory
        collector = ChunkCollector(self._endpoint.limits)
        feed = Feed(self._endpoint, self._topic, start, Position.of(*last, -1))
        size = 0
        try:
            for deliveries in feed:
                for entry, metadata in deliveries:
                    place = (entry.ledger, entry.entry)
                    size += len(entry.payload)
                    if metadata.num_chunks > 1 and metadata.chunk_id == 0:
                        begun.add(hash(metadata.uuid))
                    whole = collector.add(metadata, place, entry.payload) if metadata.uuid == uuid else None
                    if size > FARTHEST_BYTES:
                        return None, True
                    if place >= last:
                        if whole is None and collector.has_finished(uuid):
                            return AssembledMessage((last,), None, is_repeat=True), False
                        is_found = whole is not None and (whole.payload is not None or whole.wrong is not None)
                        return (whole if is_found else None), False
        finally:
            feed.close()
        return None, False

    def _earlier(self, start: Place, step: int) -> Place | None:
        """About `step` entries earlier, at most a ledger's first entry; None: nothing is stored before."""
        ledger, entry = start
        if entry == 0:
            with BrokerClient(self._endpoint) as client:
                before = client.entry_before(self._topic, start)
            if before is None:
                return None
            ledger, entry = before[0], before[1] + 1
        return ledger, max(0, entry - step)
