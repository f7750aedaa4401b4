"""An entry on its way through a decoder."""

from __future__ import annotations

from typing import Final, NamedTuple

from airflow_provider_streams.systems.pulsar.decode.compression import Payload
from airflow_provider_streams.systems.pulsar.decode.metadata import EntryMetadata
from airflow_provider_streams.systems.pulsar.decode.protobuf import Malformed

_SHORTEST_MESSAGE: Final = 6
_INT32_END: Final = 1 << 31


class Entry(NamedTuple):
    """One stored unit, decompressed: a batch, or a single message (which a chunked one has become)."""

    ledger: int
    entry: int
    broker: tuple[int, int] | None
    """Broker time (ms) and index."""
    metadata: EntryMetadata
    payload: Payload
    stored: int
    """Messages in the payload."""
    first: int
    end: int
    """The messages asked for: those with `first <= batch index < end`; a single message counts as index 0."""
    first_chunk: tuple[int, int] | None

    @property
    def is_batch(self) -> bool:
        """Whether its messages have headers of their own."""
        return self.metadata.num_messages is not None

    @property
    def messages(self) -> int:
        """How many it held before any compaction."""
        return 1 if self.metadata.num_messages is None else self.metadata.num_messages

    @property
    def asked(self) -> int:
        """How many of those are asked for."""
        return self.end - self.first

    @property
    def is_whole(self) -> bool:
        """Whether every message that is stored is asked for."""
        return self.asked == self.messages


def stored_messages(metadata: EntryMetadata, size: int) -> int:
    """How many messages a payload of `size` bytes must hold.

    Raises:
        Malformed: it cannot hold as many, or the metadata contradict themselves.
    """
    count, kept = metadata.num_messages, metadata.compacted_batch_indexes
    if count is None:
        return 1
    if kept and not all(a < b for a, b in zip((-1, *kept), (*kept, count), strict=True)):
        raise Malformed(f"it states {count} messages, of which compaction kept {kept[:5]}..")
    stored = len(kept) or count
    if stored * _SHORTEST_MESSAGE > size or count >= _INT32_END:
        raise Malformed(f"{size} bytes cannot hold {stored} messages")
    return stored
