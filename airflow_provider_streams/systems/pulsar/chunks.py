"""Messages larger than a frame: their chunks collected until they are whole. Pure.

Chunks of one message share a uuid and come in order, those of several producers between each other. A producer that
lost its connection begins again at the first chunk, or sends chunks twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from airflow_provider_streams.systems.pulsar.decode.metadata import EntryMetadata
from airflow_provider_streams.systems.pulsar.limits import Limits, TooLarge
from airflow_provider_streams.systems.pulsar.protobuf import Malformed

MEMORY_BYTES: Final = 128 * 1024 * 1024
"""Of unfinished messages together. One that does not fit is read again when its last chunk has come."""
CHUNK_BYTES: Final = 256
"""What a chunk costs besides its payload."""
FINISHED: Final = 10_000
"""So many messages are known to have been whole; a producer sends twice what it just sent."""

Place = tuple[int, int]
"""Ledger and entry."""


@dataclass(slots=True)
class Parts:
    """What is held of one message: chunks from `first_id` up to `next_id`, without a hole."""

    first_id: int = 0
    next_id: int = 0
    payloads: list[bytes] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    payload_bytes: int = 0
    cost: int = 0
    """Bytes that all of it takes in memory."""
    wrong: Malformed | None = None
    """Why the message cannot be read: its payloads are not held."""

    def take(self, metadata: EntryMetadata, place: Place, payload: bytes | memoryview, limits: Limits) -> None:
        """Hold the next chunk, unless the message cannot be read with it."""
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
class Whole:
    """A message whose last chunk has come."""

    places: tuple[Place, ...]
    """Of the chunks that were seen, in order; of a wrong one, the first and the last."""
    payload: bytes | None
    """None: its first chunks are not held, or it is wrong."""
    wrong: Malformed | None = None
    """Why it cannot be read."""
    has_begun: bool = False
    """Its first chunk was seen, though it may not be held any more."""
    is_repeat: bool = False
    """The message was whole before: its last chunks were sent twice."""


class ChunkCollector:
    """Takes chunks in reading order, gives each message when its last chunk has come."""

    def __init__(self, limits: Limits, *, memory_bytes: int = MEMORY_BYTES) -> None:
        self._limits, self._memory = limits, memory_bytes
        self._held: dict[bytes, Parts] = {}
        self._begun: set[int] = set()
        """Digests of the uuids of unfinished messages whose first chunk was seen."""
        self._finished: dict[int, None] = {}
        """Digests of the uuids of messages that were whole, the newest last."""
        self._bytes = 0

    def has_finished(self, uuid: bytes | None) -> bool:
        """Whether a message was whole: what still comes of it was sent twice."""
        return hash(uuid or b"") in self._finished

    @property
    def held_bytes(self) -> int:
        """Bytes that all unfinished messages take."""
        return self._bytes

    def add(self, metadata: EntryMetadata, place: Place, payload: bytes | memoryview) -> Whole | None:
        """The message, if this was its last chunk."""
        if not 0 <= metadata.chunk_id < metadata.num_chunks:
            numbers = f"it states to be chunk {metadata.chunk_id} of {metadata.num_chunks}"
            return Whole((place,), None, Malformed(numbers))
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
                self._finish(uuid)
            return replace(_whole(parts, metadata), has_begun=has_begun)
        self._make_room(uuid)
        return None

    def _parts(self, uuid: bytes, chunk_id: int) -> Parts:
        """Those that this chunk continues; new ones for a first chunk, or after a hole."""
        parts = self._held.get(uuid)
        if parts is None or chunk_id == 0 or chunk_id > parts.next_id:
            self._drop(uuid)
            parts = self._held[uuid] = Parts(chunk_id, chunk_id, cost=len(uuid) + CHUNK_BYTES)
            self._bytes += parts.cost
        return parts

    def _finish(self, uuid: bytes) -> None:
        self._finished[hash(uuid)] = None
        if len(self._finished) > FINISHED:
            del self._finished[next(iter(self._finished))]

    def _drop(self, uuid: bytes) -> None:
        parts = self._held.pop(uuid, None)
        self._bytes -= parts.cost if parts else 0

    def _make_room(self, newest: bytes) -> None:
        """Forget the oldest unfinished messages, not the one just added to."""
        while self._bytes > self._memory and len(self._held) > 1:
            self._drop(next(uuid for uuid in self._held if uuid != newest))


def _whole(parts: Parts, metadata: EntryMetadata) -> Whole:
    places = tuple(parts.places)
    if parts.first_id or parts.wrong:
        return Whole(places, None, parts.wrong)
    if metadata.total_size and parts.payload_bytes != metadata.total_size:
        return Whole(places, None, _not_as_stated(parts.payload_bytes, metadata))
    return Whole(places, b"".join(parts.payloads))


def _wrong(metadata: EntryMetadata, chunks: int, size: int, limits: Limits) -> Malformed | None:
    """Why a message with so many chunks of so many bytes together cannot be read."""
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
