"""Entries in, Arrow record batches out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from airflow_provider_streams.errors import CorruptFrame, InvalidRequest
from airflow_provider_streams.systems.pulsar.decode.columns import arrow_schema
from airflow_provider_streams.systems.pulsar.decode.compression import Payload, decompress
from airflow_provider_streams.systems.pulsar.decode.metadata import EntryMetadata
from airflow_provider_streams.systems.pulsar.decode.protobuf import Malformed, write_varint
from airflow_provider_streams.systems.pulsar.decode.walk import Message, walk

Place = tuple[int, int, int]

BATCH_ROWS = 10_000
BATCH_BYTES = 4 << 20
_SHORTEST_MESSAGE = 6


@dataclass(slots=True)
class Totals:
    """What the flushes of one decoder have given so far."""

    rows: int = 0
    bytes: int = 0
    """Of the values, decompressed."""
    outside: int = 0
    """Messages of a batch before its first or after its end index, left out."""
    compacted: int = 0
    """Messages of a batch that compaction removed, left out."""
    first: Place | None = None
    last: Place | None = None
    """(ledger, entry, batch index) of the first and the last row."""


class Entry(NamedTuple):
    """One entry on its way, decompressed."""

    ledger: int
    entry: int
    broker: tuple[int, int] | None
    metadata: EntryMetadata
    payload: Payload
    first: int
    end: int
    first_chunk: tuple[int, int] | None


class Decoder:
    """Collects entries of one shard in reading order and decodes many at a time.

    Columns: see `columns`; None: the default ones. `topic` is the parent's full name, `partition` -1 for a topic
    without partitions. Flush at some 16 MiB of `pending_bytes`: many entries of one flush are decoded side by side.
    """

    def __init__(self, columns: Sequence[str] | None, topic: str, partition: int) -> None:
        self.schema = arrow_schema(columns)
        self.totals = Totals()
        self.pending_rows = 0
        self.pending_bytes = 0
        self._topic, self._partition = topic, partition
        self._pending: list[Entry] = []

    def add(
        self,
        ledger: int,
        entry: int,
        broker: tuple[int, int] | None,
        metadata: EntryMetadata,
        payload: Payload,
        *,
        first_batch_index: int = 0,
        end_batch_index: int | None = None,
        first_chunk: tuple[int, int] | None = None,
    ) -> None:
        """Take one entry: a batch, a single message, or a chunked message whose payloads the caller has joined.

        `payload` is as it was sent, still compressed; an uncompressed one is kept, not copied, and must not change
        before the next `flush`. `broker` is (time in ms, index). Of a batch, only messages with
        `first_batch_index <= index < end_batch_index` become rows. A chunked message is known by its last chunk's
        position, and `first_chunk` is that of its first.

        Raises:
            CorruptFrame: the payload cannot hold what the metadata state.
            InvalidRequest: the entry is a marker, a part of a chunked message, or encrypted.
        """
        if metadata.encrypted or metadata.marker_type is not None or (metadata.num_chunks > 1 and not first_chunk):
            raise InvalidRequest(f"{ledger}:{entry} is a marker, a lone chunk or encrypted: it has no rows to decode")
        try:
            data = decompress(payload, metadata.compression, metadata.uncompressed_size)
        except Malformed as error:
            raise self._corrupt(ledger, entry, error) from error
        count = metadata.num_messages
        stored = len(metadata.compacted_batch_indexes) or count or 0
        if stored * _SHORTEST_MESSAGE > len(data):
            raise self._corrupt(ledger, entry, f"{len(data)} bytes cannot hold {stored} messages")
        end = (1 if count is None else count) if end_batch_index is None else end_batch_index
        self._pending.append(Entry(ledger, entry, broker, metadata, data, first_batch_index, end, first_chunk))
        self.pending_rows += 1 if count is None else stored
        self.pending_bytes += len(data)

    def flush(self) -> list[pa.RecordBatch]:
        """Decode and forget what was added: batches of at most 10,000 rows and about 4 MiB of stored bytes each.

        Raises:
            CorruptFrame: an entry's payload is no batch of as many messages as its metadata state.
        """
        pending, self._pending = self._pending, []
        self.pending_rows = self.pending_bytes = 0
        rows = [row for entry in pending for row in self._rows(entry)]
        batch = pa.RecordBatch.from_pylist(rows, schema=self.schema)
        return [batch.slice(at, BATCH_ROWS) for at in range(0, len(rows), BATCH_ROWS)]

    def _rows(self, entry: Entry) -> list[dict[str, Any]]:
        data = bytes(entry.payload)
        meta = entry.metadata
        count = meta.num_messages
        if count is None:
            messages = [
                (
                    -1,
                    Message(
                        0,
                        len(data),
                        meta.key,
                        meta.event_ms,
                        meta.ordering_key,
                        meta.sequence_id,
                        meta.null_value,
                        False,
                        meta.properties,
                    ),
                )
            ]
        else:
            indexes = meta.compacted_batch_indexes or range(count)
            try:
                messages = list(zip(indexes, walk(data, 0, len(data), len(indexes)), strict=True))
            except Malformed as error:
                raise self._corrupt(entry.ledger, entry.entry, error) from error
        rows = []
        for index, message in messages:
            if index >= 0 and not entry.first <= index < entry.end:
                self.totals.outside += 1
            elif message.compacted_out:
                self.totals.compacted += 1
            else:
                rows.append(self._row(entry, index, message, data))
        return rows

    def _row(self, entry: Entry, index: int, message: Message, data: bytes) -> dict[str, Any]:
        meta, totals = entry.metadata, self.totals
        totals.rows += 1
        totals.bytes += message.end - message.start
        totals.last = (entry.ledger, entry.entry, index)
        totals.first = totals.first or totals.last
        return {
            "value": None if message.null_value else data[message.start : message.end],
            "key": message.key and message.key.decode(errors="replace"),
            "publish_time": meta.publish_ms * 1000,
            "event_time": message.event_ms and message.event_ms * 1000,
            "topic": self._topic,
            "partition": self._partition,
            "ledger": entry.ledger,
            "entry": entry.entry,
            "batch_index": index,
            "properties": [(k.decode(errors="replace"), v.decode(errors="replace")) for k, v in message.properties],
            "ordering_key": message.ordering_key,
            "producer": meta.producer.decode(errors="replace"),
            "sequence_id": message.sequence_id,
            "schema_version": meta.schema_version,
            "broker_time": entry.broker and entry.broker[0] * 1000,
            "broker_index": entry.broker and entry.broker[1],
            "replicated_from": meta.replicated_from and meta.replicated_from.decode(errors="replace"),
            "message_id": message_id(entry, self._partition, index),
        }

    def _corrupt(self, ledger: int, entry: int, why: object) -> CorruptFrame:
        where = f"{self._topic} (partition {self._partition})"
        return CorruptFrame(f"{where}: entry {ledger}:{entry} cannot be decoded: {why}")


def message_id(entry: Entry, partition: int, index: int) -> bytes:
    """The serialized MessageIdData, equal to what Pulsar's clients give."""
    parts = [(0x08, entry.ledger), (0x10, entry.entry)]
    if partition >= 0:
        parts.append((0x18, partition))
    if index >= 0:
        parts += [(0x20, index), (0x30, entry.metadata.num_messages or 0)]
    out = b"".join(bytes((tag,)) + write_varint(number) for tag, number in parts)
    if entry.first_chunk:
        ledger, first = entry.first_chunk
        body = b"\x08" + write_varint(ledger) + b"\x10" + write_varint(first)
        out += b"\x3a" + bytes((len(body),)) + body
    return out
