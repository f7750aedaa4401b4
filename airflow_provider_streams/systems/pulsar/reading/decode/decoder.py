"""Entries in, Arrow record batches out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
import pyarrow as pa

from airflow_provider_streams.errors import EntryTooLarge, InvalidRequest, MalformedEntry
from airflow_provider_streams.formats.arrow.arrays import numbers
from airflow_provider_streams.model.stream.key_selection import Selection
from airflow_provider_streams.systems.pulsar.client.protobuf import Malformed
from airflow_provider_streams.systems.pulsar.reading.decode import arrays
from airflow_provider_streams.systems.pulsar.reading.decode.columns import arrow_schema
from airflow_provider_streams.systems.pulsar.reading.decode.compression import Payload, decompress
from airflow_provider_streams.systems.pulsar.reading.decode.entry import (
    OF_EVERY_ROW,
    BadEntry,
    Broker,
    Entry,
    Group,
    stored_messages,
    text_bytes,
)
from airflow_provider_streams.systems.pulsar.reading.decode.group import Chosen, Decoded, Span, decode_group
from airflow_provider_streams.systems.pulsar.reading.decode.headers.message_metadata import EntryMetadata
from airflow_provider_streams.systems.pulsar.reading.decode.key_filter import KeyFilter
from airflow_provider_streams.systems.pulsar.reading.decode.memory import keep_freed_memory
from airflow_provider_streams.systems.pulsar.reading.decode.unaligned import Ints
from airflow_provider_streams.systems.pulsar.reading.entry_limits import Limits, TooLarge
from airflow_provider_streams.systems.time_bounds import TimeBounds, Times

BATCH_ROWS: Final = 20_000
BATCH_BYTES: Final = 4 << 20
"""Limits of one record batch; a single message may be larger."""

GROUP_BYTES: Final = 64 << 20
"""Entries decoded together; a flush needs about three times as much memory."""

MILLISECOND: Final = Fraction(1000)

Place = tuple[int, int, int]


@dataclass(slots=True)
class Totals:
    """What a decoder's flushes have given so far."""

    rows: int = 0
    bytes: int = 0
    """Of the values, decompressed."""
    outside: int = 0
    """Messages left out because of their batch index, event time or key."""
    compacted: int = 0
    """Messages that compaction took out of a batch."""
    untimed: int = 0
    """Rows that have no event time, and were kept by their publish time."""
    first: Place | None = None
    last: Place | None = None
    """(ledger, entry, batch index) of the first and the last row."""


class Decoder:
    """Collects entries of one shard, in reading order, and decodes many of them at a time.

    Flush at about 16 MiB of `pending_bytes`, as many entries side by side are faster. Flush also before payloads of
    another array: the payloads of one array are read in place. `totals` and `paths` (how many entries were decoded in
    which way) add up over all flushes.

    Args:
        columns: names of `COLUMNS`; None: the default ones.
        topic: the parent's full name.
        partition: -1 for a topic without partitions.
        limits: bounds of one entry.
        event_times: only messages with these event times; the publish time stands in for a missing one.
        selection: only messages with these keys.
        time_bounds: notes the times that are compared with `event_times`.
    """

    def __init__(
        self,
        columns: Sequence[str] | None,
        topic: str,
        partition: int,
        limits: Limits | None = None,
        *,
        event_times: Span | None = None,
        selection: Selection | None = None,
        time_bounds: TimeBounds | None = None,
    ) -> None:
        self.schema = arrow_schema(columns)
        self.totals = Totals()
        self.paths: Counter[str] = Counter()
        self.pending_rows = 0
        self.pending_bytes = 0
        self._topic, self._partition, self._limits = topic, partition, limits or Limits()
        self._time_bounds = time_bounds
        keys = KeyFilter(selection) if selection else None
        needed = {"key"} if "key_bytes" in self.schema.names else set()
        needed |= ({"event_time"} if event_times else set()) | (keys.columns if keys else set())
        self._chosen = Chosen(frozenset({*self.schema.names, *needed}), event_times, keys)
        self._repeated = [name for name in OF_EVERY_ROW if name in self._chosen.columns]
        self._views = False
        self._pending: list[Entry] = []
        keep_freed_memory()
        self._constants = {
            "topic": arrays.taken(pa.string(), [topic.encode()], np.zeros(BATCH_ROWS, np.int64)),
            "partition": numbers(pa.int32(), np.full(BATCH_ROWS, partition, np.int32)),
        }

    def lend(self) -> None:
        """From now on, give values as views of the payloads, and keep the payloads alive."""
        if "value" in self.schema.names:
            place = self.schema.get_field_index("value")
            self.schema = self.schema.set(place, self.schema.field(place).with_type(pa.binary_view()))
            self._views = True

    def add(
        self,
        ledger: int,
        entry: int,
        broker: Broker,
        metadata: EntryMetadata,
        payload: Payload,
        *,
        first_batch_index: int = 0,
        end_batch_index: int | None = None,
        first_chunk: tuple[int, int] | None = None,
    ) -> None:
        """Take one entry: a batch, a single message, or a chunked message whose payloads the caller has joined.

        `payload` is still compressed. An uncompressed payload is not copied and must not change before the next flush.
        Of a batch, only messages with `first_batch_index <= index < end_batch_index` become rows. A chunked message has
        the position of its last chunk; `first_chunk` is (ledger, entry) of its first.

        Raises:
            MalformedEntry: the payload contradicts the metadata.
            EntryTooLarge: it is beyond a limit.
            InvalidRequest: a marker, a lone chunk or an encrypted entry, which has no row.
        """
        if metadata.encrypted or metadata.marker_type is not None or (metadata.num_chunks > 1 and not first_chunk):
            raise InvalidRequest(f"{ledger}:{entry} is a marker, a lone chunk or encrypted: it has no row to decode")
        try:
            data, stored, size = self._open(metadata, payload)
        except Malformed as error:
            raise self.refusal(ledger, entry, error) from error
        first, end, is_batch = 0, 1, metadata.num_messages is not None
        if metadata.num_messages is not None:
            end = metadata.num_messages if end_batch_index is None else min(end_batch_index, metadata.num_messages)
            first = min(max(first_batch_index, 0), end)
        self._pending.append(
            Entry(ledger, entry, broker, metadata, data, size, is_batch, stored, first, end, first_chunk)
        )
        self.pending_rows += stored
        self.pending_bytes += size

    def _open(self, metadata: EntryMetadata, payload: Payload) -> tuple[Payload, int, int]:
        """The payload decompressed, how many messages it holds, and how many bytes their columns will."""
        data = payload
        if metadata.compression:
            data = decompress(payload, metadata.compression, metadata.uncompressed_size, self._limits)
        stored = stored_messages(metadata, len(data))
        size = len(data) + text_bytes(metadata, stored, self._repeated)
        self._limits.check(size, stored)
        return data, stored, size

    def flush(self) -> list[pa.RecordBatch]:
        """Decode and release what was added; as `decode` does."""
        return self.decode(self.take())

    def take(self) -> list[Entry]:
        """Release what was added, for `decode` on this or another thread; more may be added meanwhile."""
        pending, self._pending = self._pending, []
        self.pending_rows = self.pending_bytes = 0
        return pending

    def decode(self, taken: Sequence[Entry]) -> list[pa.RecordBatch]:
        """Batches of at most `BATCH_ROWS` rows and about 4 MiB, in the entries' order. One call at a time.

        Raises:
            MalformedEntry: a payload is not a batch of as many messages as its metadata state, or no column can hold a
                time.
            EntryTooLarge: it has more properties than the limits allow.
        """
        batches: list[pa.RecordBatch] = []
        for entries in _groups(taken):
            group = Group.of(entries)
            try:
                decoded = decode_group(group, self._partition, self._limits, self._chosen, views=self._views)
                batches += self._batches(decoded)
            except BadEntry as error:
                raise self.refusal(error.entry.ledger, error.entry.entry, error.why) from error
            self._count(group, decoded)
        return batches

    def refusal(self, ledger: int, entry: int, why: Malformed | None) -> MalformedEntry | EntryTooLarge:
        """The error for an entry that cannot be decoded."""
        where = f"{self._topic} (partition {self._partition})"
        if isinstance(why, TooLarge):
            return EntryTooLarge(where, ledger, entry, what=why.what, option=why.option, limit=why.limit)
        return MalformedEntry(where, ledger, entry, str(why))

    def _count(self, group: Group, decoded: Decoded) -> None:
        totals, owner, index = self.totals, decoded.origin.owner, decoded.origin.index
        asked = int(group.asked.sum())
        totals.rows += len(owner)
        totals.bytes += decoded.value_bytes
        totals.outside += int(group.messages.sum()) - asked + decoded.left_out
        totals.compacted += asked - len(owner) - decoded.left_out
        totals.untimed += decoded.untimed
        self.paths += decoded.paths
        if decoded.times is not None and self._time_bounds is not None:
            of, times_ms = decoded.times
            self._time_bounds.add_all(group.ledgers[of], group.numbers[of], Times(times_ms, MILLISECOND))
        if len(owner):
            first, last = ((*group.entries[owner[row]][:2], int(index[row])) for row in (0, -1))
            totals.first, totals.last = totals.first or first, last

    def _batches(self, decoded: Decoded) -> Iterator[pa.RecordBatch]:
        columns = {**decoded.message_columns}
        for name in self._chosen.columns - columns.keys() - self._constants.keys():
            columns[name] = decoded.origin.column(name)
        for begin, end in _slices(decoded.stored_bytes):
            yield pa.RecordBatch.from_arrays(
                [
                    self._constants[name][: end - begin] if name in self._constants else columns[name][begin:end]
                    for name in self.schema.names
                ],
                schema=self.schema,
            )


def _groups(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    """Cut entries into groups of about `GROUP_BYTES`; a larger entry is a group of its own."""
    begin = size = 0
    for number, entry in enumerate(entries):
        size += entry.size
        if size > GROUP_BYTES and number > begin:
            yield entries[begin:number]
            begin, size = number, entry.size
    if entries:
        yield entries[begin:]


def _slices(stored_bytes: Ints) -> Iterator[tuple[int, int]]:
    """Cut rows of these sizes into batches, `[begin, end)`."""
    ends = np.cumsum(stored_bytes)
    begin, before = 0, 0
    while begin < len(ends):
        fitting = int(np.searchsorted(ends, before + BATCH_BYTES, side="right"))
        end = min(max(fitting, begin + 1), begin + BATCH_ROWS)
        yield begin, end
        begin, before = end, int(ends[end - 1])
