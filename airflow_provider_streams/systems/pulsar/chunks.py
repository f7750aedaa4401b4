"""Messages larger than a frame: their chunks collected until they are whole. Pure.

Chunks of one message share a uuid and come in order, those of several producers between each other. A producer that
lost its connection begins again at the first chunk, or sends chunks twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from airflow_provider_streams.systems.pulsar.decode.metadata import EntryMetadata

MEMORY_BYTES: Final = 128 * 1024 * 1024
"""Of unfinished messages together. One that does not fit is read again when its last chunk has come."""

Place = tuple[int, int]
"""Ledger and entry."""


@dataclass(slots=True)
class Parts:
    """What is held of one message: chunks `first_id` to `first_id + len(payloads)`, without a hole."""

    first_id: int = 0
    payloads: list[bytes] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)

    @property
    def next_id(self) -> int:
        """The chunk that must come next."""
        return self.first_id + len(self.payloads)

    @property
    def bytes(self) -> int:
        """Bytes held."""
        return sum(map(len, self.payloads))


@dataclass(frozen=True, slots=True)
class Whole:
    """A message whose last chunk has come."""

    places: tuple[Place, ...]
    """Of the chunks that were seen, in order."""
    payload: bytes | None
    """None: its first chunks are not held."""


class ChunkCollector:
    """Takes chunks in reading order, gives each message when its last chunk has come."""

    def __init__(self, memory_bytes: int = MEMORY_BYTES) -> None:
        self._memory = memory_bytes
        self._held: dict[bytes, Parts] = {}
        self._bytes = 0

    @property
    def held_bytes(self) -> int:
        """Bytes of all unfinished messages."""
        return self._bytes

    def add(self, metadata: EntryMetadata, place: Place, payload: bytes | memoryview) -> Whole | None:
        """The message, if this was its last chunk."""
        uuid = metadata.uuid or b""
        parts = self._parts(uuid, metadata.chunk_id)
        if metadata.chunk_id < parts.next_id:  # sent twice
            return None
        parts.payloads.append(bytes(payload))
        parts.places.append(place)
        self._bytes += len(payload)
        if metadata.chunk_id == metadata.num_chunks - 1:
            self._drop(uuid)
            whole = parts.first_id == 0 and len(parts.payloads) == metadata.num_chunks
            return Whole(tuple(parts.places), b"".join(parts.payloads) if whole else None)
        self._make_room(uuid)
        return None

    def _parts(self, uuid: bytes, chunk_id: int) -> Parts:
        """Those that this chunk continues; new ones for a first chunk, or after a hole."""
        parts = self._held.get(uuid)
        if parts is None or chunk_id == 0 or chunk_id > parts.next_id:
            self._drop(uuid)
            parts = self._held[uuid] = Parts(first_id=chunk_id)
        return parts

    def _drop(self, uuid: bytes) -> None:
        parts = self._held.pop(uuid, None)
        self._bytes -= parts.bytes if parts else 0

    def _make_room(self, newest: bytes) -> None:
        """Forget the oldest unfinished messages, not the one just added to."""
        while self._bytes > self._memory and len(self._held) > 1:
            self._drop(next(uuid for uuid in self._held if uuid != newest))
