"""Reads one split of a Pulsar topic: every message of `[start, end)`, once, and the receipt for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import pyarrow as pa

from airflow_provider_streams.background_work import BackgroundWork
from airflow_provider_streams.errors import EventsLost, InvalidRequest, SourceNotFound
from airflow_provider_streams.model.plan.plan import OnLoss, Plan, Split
from airflow_provider_streams.model.plan.receipt import SplitReceipt
from airflow_provider_streams.model.plan.row_filter import RowFilter
from airflow_provider_streams.model.plan.time_statistics import TimeStatistics
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.client.wire.frames import RawEntry
from airflow_provider_streams.systems.pulsar.metadata.names import parent_of, partition_of
from airflow_provider_streams.systems.pulsar.reading.chunked_messages import (
    AssembledMessage,
    ChunkCollector,
    ChunkRecovery,
)
from airflow_provider_streams.systems.pulsar.reading.decode.decoder import Decoder
from airflow_provider_streams.systems.pulsar.reading.decode.headers.message_metadata import EntryMetadata
from airflow_provider_streams.systems.pulsar.reading.entry_fetcher import Feed
from airflow_provider_streams.systems.pulsar.reading.entry_tracking import Seen, missing
from airflow_provider_streams.systems.time_bounds import TimeBounds

FLUSH_BYTES: Final = 16 * 1024 * 1024
FLUSH_ROWS: Final = 160_000
FLUSH_ENTRIES: Final = 4096
"""The limits of what is decoded together: enough entries side by side, in bounded memory, of one block.
While one group is decoded, the reader receives the next one."""

FILTERS: Final = ("publish_time", "broker_time", "event_time")


class PulsarSplitReader:
    """Reads one split, once, in one pass. Connects when iterated.

    It ends at a position: the last entry of the split's last span, an id at or after the split's end, or the end of
    what the broker can send. Silence never ends it. Planned entries that never arrived are the receipt's gaps.

    Args:
        endpoint: The cluster.
        plan: The plan; its filter decides which rows are kept.
        split: The part of it to read.
        columns: The columns, in this order; None: the default ones.
        on_loss: Whether the read fails if the topic is gone, or the first chunks of a large message.

    Raises:
        InvalidRequest: an unknown column, or a filter on a time that entries do not have.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        plan: Plan,
        split: Split,
        columns: Sequence[str] | None = None,
        *,
        on_loss: OnLoss = "fail",
    ) -> None:
        # the decoder of payloads applies filters by fields
        rows = plan.filter if isinstance(plan.filter, RowFilter) else None
        if rows and rows.column not in FILTERS:
            raise InvalidRequest(f"entries can be filtered by {' or '.join(FILTERS)}, not by {rows.column}")
        self._split, self._filter, self._on_loss = split, rows, on_loss
        # the decoder notes times on another thread
        self._bounds, self._batch_bounds = TimeBounds(split), TimeBounds(split)
        self._decoder = Decoder(
            columns,
            parent_of(split.shard),
            partition_of(split.shard),
            endpoint.limits,
            event_times=(rows.start_ms, rows.end_ms) if rows and rows.column == "event_time" else None,
            selection=plan.selection,
            time_bounds=self._batch_bounds,
        )
        self._start, self._end = split.start.parts, split.end.parts
        for ledger, entry, batch_index in (self._start, self._end):
            if batch_index >= 0:
                self._bounds.add_unknown(ledger, entry)  # only a part of its messages is read
        self._last_span = (split.spans[-1].run, split.spans[-1].end) if split.spans else None
        self._feed = Feed(endpoint, split.shard, self._start[:2], split.end)  # type: ignore[arg-type]  # three parts
        self._seen = Seen()
        self._chunks = ChunkCollector(endpoint.limits)
        self._recovery = ChunkRecovery(endpoint, split.shard)
        self._decoding: BackgroundWork[list[pa.RecordBatch]] | None = None
        self._block: object = None
        self._pending = self._filtered = self._lost = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            for deliveries in self._feed:
                block, self._block = self._block, deliveries[0][0].payload.obj
                if self._pending and block is not self._block:  # a block is decoded in place
                    yield from self._decode_ahead()
                if any(self._take(entry, metadata) for entry, metadata in deliveries):
                    break
                if self._is_full():
                    yield from self._decode_ahead()
            yield from self._finish()
        except SourceNotFound as error:
            if self._on_loss == "fail":
                split = self._split
                size = f"{split.bytes} bytes"
                raise EventsLost(
                    split.shard, split.start, split.end, size, "the topic does not exist any more"
                ) from error
            yield from self._finish()
        finally:
            self.close()

    @property
    def receipt(self) -> SplitReceipt:
        """What was read; complete once the iteration has ended."""
        totals = self._decoder.totals
        return SplitReceipt(
            index=self._split.index,
            rows=totals.rows,
            bytes=totals.bytes,
            entries=self._seen.entries - self._lost,
            filtered=self._filtered + totals.outside,
            untimed=totals.untimed,
            duplicates=self._feed.duplicates,
            first=Position.of(*totals.first) if totals.first else None,
            last=Position.of(*totals.last) if totals.last else None,
            gaps=missing(self._split.spans, self._seen.runs()),
            explained={"lost": self._lost} if self._lost else {},
            times=self._times(),
        )

    def _times(self) -> tuple[TimeStatistics, ...]:
        """The times of all events; if a field is the time, only the pieces with unknown times."""
        both = TimeBounds(self._split)
        both.merge(self._bounds)
        both.merge(self._batch_bounds)
        return tuple(one for one in both.seen() if self._filter is not None or one.unknown)

    def lend(self) -> None:
        """See `ZeroCopyReader`."""
        self._decoder.lend()

    @property
    def reconnects(self) -> int:
        """How often the connection or the topic's owner was lost."""
        return self._feed.reconnects

    def close(self) -> None:
        """Close the connections, at any moment, and with them the subscription."""
        self._feed.close()
        if decoding := self._decoding:
            decoding.wait()

    def _take(self, entry: RawEntry, metadata: EntryMetadata) -> bool:
        """Take one entry; True: the split is read."""
        ledger, number = entry.ledger, entry.entry
        if (ledger, number, -1) >= self._end:
            return True
        self._seen.add(ledger, number)
        if metadata.encrypted:
            raise InvalidRequest(
                f"{self._split.shard}: entry {ledger}:{number} is encrypted, and this reader has no keys. "
                "Topics with end-to-end encryption cannot be read yet."
            )
        if metadata.marker_type is None:
            if metadata.num_chunks > 1:
                self._take_chunk(entry, metadata)
            elif self._keeps(entry, metadata):
                self._add(entry, metadata)
        after = (ledger, number + 1)
        return (*after, -1) >= self._end or (self._last_span is not None and after >= self._last_span)

    def _keeps(self, entry: RawEntry, metadata: EntryMetadata) -> bool:
        if self._filter is None or (self._filter.column == "event_time" and metadata.num_messages is not None):
            return True  # messages of a batch have different event times, which the decoder compares
        time_ms = self._time(self._filter, entry, metadata)
        self._bounds.add(entry.ledger, entry.entry, time_ms * 1000)
        if self._filter.start_ms <= time_ms < self._filter.end_ms:
            return True
        self._filtered += max(metadata.num_messages or 1, 0)
        return False

    def _time(self, row_filter: RowFilter, entry: RawEntry, metadata: EntryMetadata) -> int:
        if row_filter.column == "publish_time":
            return metadata.publish_ms
        if row_filter.column == "event_time":
            return metadata.event_ms or metadata.publish_ms
        if entry.broker is None or entry.broker.timestamp_ms is None:
            raise InvalidRequest(
                f"{self._split.shard}: entry {entry.ledger}:{entry.entry} has no broker time to filter by. "
                "The broker must note it and show it to clients (exposingBrokerEntryMetadataToClientEnabled)."
            )
        return entry.broker.timestamp_ms

    def _add(self, entry: RawEntry, metadata: EntryMetadata) -> None:
        """Give an entry to the decoder; the window's edges may lie inside a batch."""
        place = (entry.ledger, entry.entry)
        first, end = 0, None
        if place == self._start[:2]:
            first = max(0, self._start[2])
            if metadata.num_messages is None and self._start[2] >= 0:
                self._filtered += 1
                return
        if place == self._end[:2] and metadata.num_messages is not None:
            end = max(0, self._end[2])
        self._pending += 1
        self._decoder.add(
            *place,
            entry.broker,
            metadata,
            entry.payload,
            first_batch_index=first,
            end_batch_index=end,
        )

    def _take_chunk(self, entry: RawEntry, metadata: EntryMetadata) -> None:
        """A message belongs to the split that holds its last chunk."""
        place = (entry.ledger, entry.entry)
        self._bounds.add_unknown(*place)  # chunks are read together
        whole = self._chunks.add(metadata, place, entry.payload)
        if whole is None or not self._keeps(entry, metadata):
            return
        if whole.payload is None and whole.wrong is None:
            found = self._recovery.find(metadata, whole, place)
            if found is None:
                self._lose(entry, metadata, whole)
                return
            whole = found
        if whole.is_repeat:
            return
        if whole.payload is None:
            raise self._decoder.refusal(*place, whole.wrong)
        self._pending += 1
        self._decoder.add(*place, entry.broker, metadata, whole.payload, first_chunk=whole.places[0])

    def _lose(self, entry: RawEntry, metadata: EntryMetadata, whole: AssembledMessage) -> None:
        """Count the chunks of a message whose first chunks are no longer stored."""
        if self._on_loss == "fail":
            raise EventsLost(
                self._split.shard,
                Position.of(*whole.places[0], -1),
                Position.of(entry.ledger, entry.entry + 1, -1),
                f"a message of {metadata.total_size} bytes",
                f"of its {metadata.num_chunks} chunks the first ones are not stored, or not near the others",
            )
        self._lost += sum((*place, -1) >= self._start for place in whole.places)

    def _is_full(self) -> bool:
        decoder = self._decoder
        return (
            decoder.pending_bytes >= FLUSH_BYTES or decoder.pending_rows >= FLUSH_ROWS or self._pending >= FLUSH_ENTRIES
        )

    def _decode_ahead(self) -> Iterator[pa.RecordBatch]:
        """Start to decode a group; yields the batches of the group before."""
        before = self._decoded()
        self._pending = 0
        self._decoding = BackgroundWork(partial(self._decoder.decode, self._decoder.take()))
        yield from before

    def _finish(self) -> Iterator[pa.RecordBatch]:
        """Decode the rest, without a thread."""
        yield from self._decoded()
        yield from self._decoder.flush()

    def _decoded(self) -> list[pa.RecordBatch]:
        decoding, self._decoding = self._decoding, None
        return decoding.result() if decoding else []
