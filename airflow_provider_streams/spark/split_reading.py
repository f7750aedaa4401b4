"""Reads a split as users asked for it: columns by their names, payloads decoded, and what becomes of bad ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_streams.errors import UndecodableEvent
from airflow_provider_streams.formats.arrays import Array
from airflow_provider_streams.formats.decoder import Decoded, Decoder, Payloads
from airflow_provider_streams.model.decoding import Decoding
from airflow_provider_streams.model.plan import Plan, Split
from airflow_provider_streams.model.receipt import SplitReceipt
from airflow_provider_streams.model.row_filter import FieldFilter
from airflow_provider_streams.model.seen_times import SeenTimes, with_unknown
from airflow_provider_streams.spark.columns import Columns
from airflow_provider_streams.spark.event_filter import keep, own_times, place_column, stored_times
from airflow_provider_streams.spark.manner import Manner
from airflow_provider_streams.spark.quarantine import CAUSE, VERSION, QuarantineFile
from airflow_provider_streams.systems.base import SplitReader, StreamSystem
from airflow_provider_streams.systems.declaration import Declaration, PayloadColumns
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.systems.time_bounds import TimeBounds, Times


def schema_of(system: StreamSystem, plan: Plan, asked: Sequence[str] | None) -> pa.Schema:
    """The Arrow schema of a plan's rows.

    Raises:
        InvalidRequest: an unknown column.
    """
    return Columns.of(system, plan.decoding, asked).schema


def open_split(system: StreamSystem, plan: Plan, split: Split, manner: Manner) -> SplitReader:
    """A reader of one split: its batches have the columns of `schema_of`.

    Raises:
        InvalidRequest: an unknown column.
    """
    columns = Columns.of(system, plan.decoding, manner.columns)
    if plan.decoding is None:
        reader = system.read(plan, split, columns.stored, on_loss=manner.on_loss)
        return reader if columns.stored == tuple(columns.schema.names) else _Renaming(reader, columns)
    return _Decoding(system, plan, split, columns, manner)


class _Renaming:
    """Columns under the names that other connectors gave them."""

    def __init__(self, reader: SplitReader, columns: Columns) -> None:
        self._reader, self._columns = reader, columns

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._reader:
            yield self._columns.rows(batch)

    @property
    def receipt(self) -> SplitReceipt:
        """See `SplitReader`."""
        return self._reader.receipt

    def close(self) -> None:
        """See `SplitReader`."""
        self._reader.close()


class _Decoding:
    """Decodes payloads batch by batch."""

    def __init__(self, system: StreamSystem, plan: Plan, split: Split, columns: Columns, manner: Manner) -> None:
        declared = declaration_of(system.name)
        if plan.decoding is None or declared.payload_columns is None:
            raise AssertionError(f"{system.name} decodes nothing")
        self._payload: PayloadColumns = declared.payload_columns
        self._split, self._columns, self._then = split, columns, manner.undecodable.then
        self._decoder = Decoder(plan.decoding, declared.dataset(plan.source.names, split.shard))
        self._filter = plan.filter if isinstance(plan.filter, FieldFilter) else None
        place = place_column(self._filter) if self._filter else None
        wanted = (*_needed(self._payload, plan.decoding, columns), *([place] if place else []))
        if self._then == "quarantine" and manner.quarantine is not None:
            wanted = (*wanted, *_kept_aside(declared, self._payload, columns if manner.columns else None))
        self._stored = tuple(dict.fromkeys(wanted))
        self._reader = system.read(plan, split, self._stored, on_loss=manner.on_loss)
        self._file = QuarantineFile(manner.quarantine, split.index) if manner.quarantine else None
        self._bad = self._bad_bytes = 0
        self._elsewhen = self._elsewhen_bytes = self._untimed = 0
        self._bounds = TimeBounds(split)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._reader:
            rows = self._rows(batch)
            if len(rows):
                yield rows

    def _rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        decoded = self._decoder.decode(payloads_of(batch, self._payload))
        if self._filter is not None and self._then == "fail" and decoded.causes.null_count < len(batch):
            raise self._error(*sort_out(batch, decoded)[1])  # nobody can say that it is not this window's
        good, bad = sort_out(*self._in_window(Part(batch, decoded)))
        if len(bad.batch):
            self._leave_out(bad)
        return self._columns.rows(*good)

    def _in_window(self, part: Part) -> Part:
        """The events whose own time is the window's; what cannot be decoded has none."""
        if self._filter is None:
            return part
        batch, decoded = part
        place = place_column(self._filter)
        stored = batch.column(place) if place else None
        if self._payload.stored_unit:
            _note_times(self._bounds, batch, self._payload, decoded.value, self._filter)
        kept = keep(decoded.value, self._filter, stored, self._split.shard)
        out = batch.filter(pc.invert(kept.mask))
        self._elsewhen += len(out)
        self._elsewhen_bytes += payload_bytes(out, self._payload)
        part = Part(batch.filter(kept.mask), where(decoded, kept.mask))
        self._untimed += kept.untimed - (len(part.batch) - part.decoded.causes.null_count)  # those are no rows
        return part

    def _leave_out(self, bad: Part) -> None:
        if self._then == "fail":
            raise self._error(*bad)
        self._bad += len(bad.batch)
        self._bad_bytes += payload_bytes(bad.batch, self._payload)
        if self._file is not None and self._then == "quarantine":
            self._file.write(with_causes(bad))

    def _error(self, batch: pa.RecordBatch, decoded: Decoded) -> UndecodableEvent:
        place = ":".join(str(batch.column(name)[0].as_py()) for name in self._payload.position)
        version, cause = decoded.versions[0].as_py(), decoded.causes[0].as_py()
        return UndecodableEvent(
            self._split.shard, place, "" if version is None else str(version), cause, len(batch) - 1
        )

    @property
    def receipt(self) -> SplitReceipt:
        """See `SplitReader`; those that could not be decoded are no rows."""
        read = self._reader.receipt
        quarantined, dropped = (self._bad, 0) if self._then == "quarantine" else (0, self._bad)
        return replace(
            read,
            rows=read.rows - self._bad - self._elsewhen,
            bytes=read.bytes - self._bad_bytes - self._elsewhen_bytes,
            filtered=read.filtered + self._elsewhen,
            untimed=read.untimed + self._untimed,
            quarantined=quarantined,
            dropped=dropped,
            quarantine_file=self._file.finish() if self._file is not None else "",
            times=self._times(read.times),
        )

    def _times(self, read: Sequence[SeenTimes]) -> tuple[SeenTimes, ...]:
        if self._filter is None:
            return tuple(read)
        return with_unknown(self._bounds.seen(), read) if self._payload.stored_unit else ()

    def close(self) -> None:
        """See `SplitReader`."""
        self._reader.close()
        if self._file is not None:
            with suppress(OSError):
                self._file.close()


def payloads_of(batch: pa.RecordBatch, payload: PayloadColumns) -> Payloads:
    """What is decoded of a batch of a system's columns."""
    return Payloads(
        batch.column(payload.value),
        batch.column(payload.key) if payload.key in batch.schema.names else None,
        batch.column(payload.version) if payload.version in batch.schema.names else None,
        _written(batch, payload),
    )


def _written(batch: pa.RecordBatch, payload: PayloadColumns) -> Array | None:
    """When events were written: as the broker noted it, else as producers say; null: nothing tells it."""
    if any(name not in batch.schema.names for name in payload.times) or not payload.times:
        return None
    broker, published, origin = (batch.column(name) for name in payload.times)
    if origin.null_count < len(batch):  # the other cluster's schemas were registered there
        published = pc.if_else(origin.is_valid(), pa.scalar(None, published.type), published)
    return published if broker.null_count == len(batch) else pc.coalesce(broker, published)


class Part(NamedTuple):
    """Some events of a batch, and what their payloads were decoded to."""

    batch: pa.RecordBatch
    decoded: Decoded


def sort_out(batch: pa.RecordBatch, decoded: Decoded) -> tuple[Part, Part]:
    """The events that could be decoded, and those that could not."""
    if decoded.causes.null_count == len(batch):
        return Part(batch, decoded), Part(batch.slice(0, 0), decoded.slice(0, 0))
    bad = decoded.causes.is_valid()
    good = pc.invert(bad)
    return Part(batch.filter(good), where(decoded, good)), Part(batch.filter(bad), where(decoded, bad))


def with_causes(bad: Part) -> pa.RecordBatch:
    """Events as a `QuarantineFile` keeps them."""
    causes, versions = (one.cast(pa.string()) for one in (bad.decoded.causes, bad.decoded.versions))
    return bad.batch.append_column(CAUSE, causes).append_column(VERSION, versions)


def _note_times(
    bounds: TimeBounds, batch: pa.RecordBatch, payload: PayloadColumns, value: Array, row_filter: FieldFilter
) -> None:
    """Note the time that counts of each event of a batch, kept or not."""
    place = place_column(row_filter)
    runs, units = (batch.column(name).cast(pa.int64()).to_numpy() for name in payload.stored_unit)
    own, otherwise = own_times(value, row_filter), stored_times(row_filter, batch.column(place) if place else None)
    if not own.numbers.null_count:
        bounds.add_all(runs, units, Times(own.numbers.to_numpy(), own.unit))
        return
    known = own.numbers.is_valid().to_numpy(zero_copy_only=False)
    bounds.add_all(runs[known], units[known], Times(own.numbers.drop_null().to_numpy(), own.unit))
    stored = None if otherwise is None else Times(otherwise.numbers.to_numpy()[~known], otherwise.unit)
    bounds.add_all(runs[~known], units[~known], stored)


def payload_bytes(batch: pa.RecordBatch, payload: PayloadColumns) -> int:
    """How many bytes the values of events are."""
    lengths = pc.binary_length(batch.column(payload.value))  # type: ignore[call-overload]  # it is binary
    return int(pc.sum(lengths).as_py() or 0)


def where(decoded: Decoded, kept: pa.BooleanArray) -> Decoded:
    """What some rows of a batch were decoded to."""
    key = None if decoded.key is None else decoded.key.filter(kept)
    return Decoded(decoded.value.filter(kept), key, decoded.causes.filter(kept), decoded.versions.filter(kept))


def _kept_aside(declared: Declaration, payload: PayloadColumns, asked: Columns | None) -> tuple[str, ...]:
    """What is kept of an event, so that it can be decoded again: also by schemas that nobody asked for so far.

    Where columns were asked for, no others: one that cannot be read (`event_time` beyond all time) is not among them.
    """
    beside = [name for name in (payload.key, payload.version) if name]
    place = asked.stored if asked else declared.default_columns or declared.columns
    return (*place, *beside, *payload.times)


def _needed(payload: PayloadColumns, decoding: Decoding, columns: Columns) -> tuple[str, ...]:
    key = [payload.key] if payload.key and decoding.key is not None else []
    tried = list(_tried(decoding))
    is_named = payload.version and any(one.framing == "message" for one in tried)
    version = [payload.version] if is_named else []
    times = payload.times if any(one.made for one in tried) else ()
    return (payload.value, *key, *version, *payload.position, *times, *columns.stored)


def _tried(decoding: Decoding | None) -> Iterator[Decoding]:
    """All that events are tried as."""
    while decoding is not None:
        yield decoding
        decoding = decoding.otherwise
