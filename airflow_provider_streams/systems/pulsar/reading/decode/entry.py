"""One entry in a decoder, and a group of entries in columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

import numpy as np

from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.systems.pulsar.client.protobuf import Malformed
from airflow_provider_streams.systems.pulsar.reading.decode.compression import Payload
from airflow_provider_streams.systems.pulsar.reading.decode.headers.message_metadata import EntryMetadata
from airflow_provider_streams.systems.pulsar.reading.decode.unaligned import Flags, Ints

_SHORTEST_MESSAGE: Final = 6

OF_EVERY_ROW: Final = ("producer", "schema_version", "replicated_from")
"""Columns that repeat a text of the entry's metadata in each of its rows."""

Broker = tuple[int | None, int | None] | None
"""The broker's time (ms) and the entry's index; None: not noted."""


class Entry(NamedTuple):
    """One decompressed stored unit: a batch, or a single message, perhaps joined of chunks."""

    ledger: int
    entry: int
    broker: Broker
    metadata: EntryMetadata
    payload: Payload
    size: int
    """Bytes of its columns, including texts of its metadata."""
    is_batch: bool
    """Whether its messages have headers of their own."""
    stored: int
    """Messages in the payload: fewer than the batch had, if compaction took some out."""
    first: int
    end: int
    """The messages asked for, `first <= batch index < end`; a single message counts as index 0."""
    first_chunk: tuple[int, int] | None


class BadEntry(Exception):
    """An entry that contradicts its metadata, or is too large."""

    def __init__(self, entry: Entry, why: Malformed) -> None:
        self.entry, self.why = entry, why
        super().__init__(str(why))


@dataclass(frozen=True, slots=True)
class Group:
    """Entries decoded together, in columns: `ledgers[i]` belongs to entry number i."""

    entries: Sequence[Entry]
    metadata: Sequence[EntryMetadata]
    payloads: Sequence[Payload]
    ledgers: Ints
    numbers: Ints
    is_batch: Flags
    messages: Ints
    """How many messages each had before any compaction."""
    stored: Ints
    first: Ints
    end: Ints

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Self:
        """From at least one entry."""
        ledgers, numbers, _, metadata, payloads, _, is_batch, stored, first, end, _ = zip(*entries, strict=True)
        return cls(
            entries,
            metadata,
            payloads,
            _ints(ledgers),
            _ints(numbers),
            np.array(is_batch, np.bool_),
            np.array([1 if each.num_messages is None else each.num_messages for each in metadata]),
            _ints(stored),
            _ints(first),
            _ints(end),
        )

    @property
    def asked(self) -> Ints:
        """How many messages of each entry are asked for."""
        return self.end - self.first

    @property
    def first_row(self) -> Ints:
        """The number of each entry's first message among all stored ones."""
        return np.cumsum(self.stored) - self.stored


def stored_messages(metadata: EntryMetadata, size: int) -> int:
    """How many messages a payload of `size` bytes must hold.

    Raises:
        Malformed: it cannot hold as many, or the metadata contradict themselves.
    """
    count, kept = metadata.num_messages, metadata.compacted_batch_indexes
    if count is None:
        return 1
    if kept is not None:
        indexes = np.array(kept)
        if not (indexes[0] >= 0 and indexes[-1] < count and (indexes[1:] > indexes[:-1]).all()):
            raise Malformed(f"it states {counted(count, 'message')}, of which compaction kept {list(kept[:5])}..")
    stored = count if kept is None else len(kept)
    if not 0 <= stored * _SHORTEST_MESSAGE <= size:
        raise Malformed(f"{counted(size, 'byte')} cannot hold {counted(stored, 'message')}")
    return stored


def text_bytes(metadata: EntryMetadata, stored: int, repeated: Iterable[str]) -> int:
    """Bytes of metadata texts in the rows of an entry; each of `stored` rows has the `repeated` ones."""
    size = len(metadata.properties)
    if metadata.key is not None:
        size += len(metadata.key)
    if metadata.ordering_key is not None:
        size += len(metadata.ordering_key)
    for name in repeated:
        size += stored * len(getattr(metadata, name) or b"")
    return size


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, np.int64)
