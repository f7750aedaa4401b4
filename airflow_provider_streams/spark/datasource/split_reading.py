"""Reads a split as the user wants it: with the requested columns, decoded payloads, and a policy for bad ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_streams.errors import DecodeError
from airflow_provider_streams.formats.arrow.arrays import Array, numbers
from airflow_provider_streams.formats.change_data.positions import stream_positions
from airflow_provider_streams.formats.decode_failures import KIND_TEXTS, OTHER_TYPE, set_aside
from airflow_provider_streams.formats.decoder import Decoded, Payloads
from airflow_provider_streams.formats.json.declarations import declarations
from airflow_provider_streams.formats.plan_decoder import PayloadDecoder, decoder_of
from airflow_provider_streams.model.plan.plan import Plan, Split
from airflow_provider_streams.model.plan.receipt import SplitReceipt
from airflow_provider_streams.model.plan.row_filter import FieldFilter
from airflow_provider_streams.model.plan.time_statistics import TimeStatistics, with_unknown
from airflow_provider_streams.model.schema.decoding import Decoding
from airflow_provider_streams.spark.datasource.columns import Columns
from airflow_provider_streams.spark.datasource.event_time_filter import keep, own_times, place_column, stored_times
from airflow_provider_streams.spark.datasource.read_options import SplitReadOptions
from airflow_provider_streams.spark.quarantine.quarantine_files import CAUSE, VERSION, QuarantineFile
from airflow_provider_streams.systems.base import SplitReader, StreamSystem
from airflow_provider_streams.systems.declaration import Declaration, PayloadColumns
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.systems.time_bounds import TimeBounds, Times


def schema_of(system: StreamSystem, plan: Plan, asked: Sequence[str] | None) -> pa.Schema:
    """The Arrow schema of a plan's rows. `InvalidRequest`: an unknown column."""
    return Columns.of(system, plan.decoding, asked).schema


def open_split(system: StreamSystem, plan: Plan, split: Split, split_read_options: SplitReadOptions) -> SplitReader:
    """A reader of one split, whose batches have the columns of `schema_of`."""
    columns = Columns.of(system, plan.decoding, split_read_options.columns)
    if plan.decoding is None:
        reader = system.read(plan, split, columns.stored, on_loss=split_read_options.on_loss)
        return reader if columns.stored == tuple(columns.schema.names) else _Renaming(reader, columns)
    return _Decoding(system, plan, split, columns, split_read_options)


class _Renaming:
    """Gives columns other connectors' names."""

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

    def __init__(
        self, system: StreamSystem, plan: Plan, split: Split, columns: Columns, split_read_options: SplitReadOptions
    ) -> None:
        declared = declaration_of(system.name)
        if plan.decoding is None or declared.payload_columns is None:
            raise AssertionError(f"{system.name} decodes nothing")
        self._payload: PayloadColumns = declared.payload_columns
        self._split, self._columns, self._then = split, columns, split_read_options.undecodable.then
        self._decoding, self._name = plan.decoding, declared.dataset(plan.source.names, split.shard)
        self._decoder = decoder_of(plan.decoding, self._name)
        self._filter = plan.filter if isinstance(plan.filter, FieldFilter) else None
        place = place_column(self._filter) if self._filter else None
        needed = needed_columns(self._payload, plan.decoding)
        wanted = (*needed, *columns.stored, *([place] if place else []))
        if self._then == "quarantine" and split_read_options.quarantine is not None:
            wanted = (*wanted, *_kept_aside(declared, self._payload, columns if split_read_options.columns else None))
        self._stored = tuple(dict.fromkeys(wanted))
        self._reader = system.read(plan, split, self._stored, on_loss=split_read_options.on_loss)
        self._file = (
            QuarantineFile(split_read_options.quarantine, split.index) if split_read_options.quarantine else None
        )
        self._bad = self._bad_bytes = 0
        self._other_type = self._other_type_bytes = self._extra = 0
        self._kinds: Counter[str] = Counter()
        self._elsewhen = self._elsewhen_bytes = self._untimed = 0
        self._bounds = TimeBounds(split)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._reader:
            rows = self._rows(batch)
            if len(rows):
                yield rows

    def _rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        whole = decoded_part(self._decoder, batch, self._payload)
        self._extra += len(whole.batch) - len(batch)
        part = self._of_read_types(whole)
        if self._filter is not None and self._then == "fail" and part.decoded.causes.null_count < len(part.batch):
            raise self._error(*split_decoded(*part)[1])  # it may be the window's
        good, bad = split_decoded(*self._in_window(part))
        if len(bad.batch):
            self._leave_out(bad)
        return self._columns.rows(*good)

    def _of_read_types(self, part: Part) -> Part:
        """The events of the types that the source reads; the others are counted."""
        batch, decoded = part
        if decoded.causes.null_count == len(batch):
            return part
        other = set_aside(decoded.causes)
        out = batch.filter(other)
        if not len(out):
            return part
        counted = pc.value_counts(decoded.causes.filter(other).cast(pa.string()))
        kinds = Counter(dict(zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True)))
        self._other_type += kinds.pop(OTHER_TYPE, 0)
        self._kinds.update({KIND_TEXTS[str(text)]: count for text, count in kinds.items()})
        self._other_type_bytes += payload_bytes(out, self._payload)
        read = pc.invert(other)
        return Part(batch.filter(read), where(decoded, read))

    def _in_window(self, part: Part) -> Part:
        """The events whose own time is the window's; those that cannot be decoded have no time."""
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
        bad = len(part.batch) - part.decoded.causes.null_count
        self._untimed += kept.untimed - bad  # these are no rows
        return part

    def _leave_out(self, bad: Part) -> None:
        if self._then == "fail":
            raise self._error(*bad)
        self._bad += len(bad.batch)
        self._bad_bytes += payload_bytes(bad.batch, self._payload)
        if self._file is not None and self._then == "quarantine":
            self._file.write(with_causes(bad))

    def _error(self, batch: pa.RecordBatch, decoded: Decoded) -> DecodeError:
        place = ":".join(str(batch.column(name)[0].as_py()) for name in self._payload.position)
        number, cause = decoded.versions[0].as_py(), decoded.causes[0].as_py()
        version = "" if number is None else str(number)
        fields = declarations(self._decoding, self._name, version, cause)
        return DecodeError(self._split.shard, place, version, cause, len(batch) - 1, declarations=fields)

    @property
    def receipt(self) -> SplitReceipt:
        """See `SplitReader`; events that could not be decoded are no rows."""
        read = self._reader.receipt
        quarantined, dropped = (self._bad, 0) if self._then == "quarantine" else (0, self._bad)
        unmatched = self._decoder.unmatched
        return replace(
            read,
            rows=read.rows + self._extra - self._bad - self._elsewhen - self._other_type - self._kinds.total(),
            bytes=read.bytes - self._bad_bytes - self._elsewhen_bytes - self._other_type_bytes,
            filtered=read.filtered + self._elsewhen,
            untimed=read.untimed + self._untimed,
            unmatched_keys=unmatched.objects,
            other_keys=unmatched.keys,
            empty_columns=unmatched.empty,
            quarantined=quarantined,
            dropped=dropped,
            other_type=self._other_type,
            kinds=dict(self._kinds + self._decoder.kinds),
            quarantine_file=self._file.finish() if self._file is not None else "",
            times=tuple(read.times) if self._filter is None else self._times(read.times),
        )

    def _times(self, read: Sequence[TimeStatistics]) -> tuple[TimeStatistics, ...]:
        return with_unknown(self._bounds.seen(), read) if self._payload.stored_unit else ()

    def close(self) -> None:
        """See `SplitReader`."""
        self._reader.close()
        if self._file is not None:
            with suppress(OSError):
                self._file.close()


def payloads_of(batch: pa.RecordBatch, payload: PayloadColumns) -> Payloads:
    """The payloads of a batch of a system's columns."""
    return Payloads(
        batch.column(payload.value),
        batch.column(payload.key) if payload.key in batch.schema.names else None,
        batch.column(payload.version) if payload.version in batch.schema.names else None,
        _written(batch, payload),
    )


def decoded_part(decoder: PayloadDecoder, batch: pa.RecordBatch, payload: PayloadColumns) -> Part:
    """The events of a batch, and their payloads. An event of several rows is there as often."""
    payloads = payloads_of(batch, payload)
    if decoder.needs_positions:
        payloads = payloads._replace(position=stream_positions([batch.column(name) for name in payload.position]))
    decoded, owners = decoder.decode_rows(payloads)
    return Part(batch if owners is None else batch.take(numbers(pa.int64(), owners)), decoded)


def _written(batch: pa.RecordBatch, payload: PayloadColumns) -> Array | None:
    """When events were written, by the broker's clock or else the producer's; null: not known."""
    if any(name not in batch.schema.names for name in payload.times) or not payload.times:
        return None
    broker, published, origin = (batch.column(name) for name in payload.times)
    if origin.null_count < len(batch):  # another cluster's events have schemas that were registered there
        published = pc.if_else(origin.is_valid(), pa.scalar(None, published.type), published)
    return published if broker.null_count == len(batch) else pc.coalesce(broker, published)


class Part(NamedTuple):
    """Some events of a batch, and their decoded payloads."""

    batch: pa.RecordBatch
    decoded: Decoded


def split_decoded(batch: pa.RecordBatch, decoded: Decoded) -> tuple[Part, Part]:
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
    """Note each event's time, whether it is kept or not."""
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
    """The decoded payloads of some rows of a batch."""
    key = None if decoded.key is None else decoded.key.filter(kept)
    return Decoded(decoded.value.filter(kept), key, decoded.causes.filter(kept), decoded.versions.filter(kept))


def _kept_aside(declared: Declaration, payload: PayloadColumns, asked: Columns | None) -> tuple[str, ...]:
    """The columns that a quarantined event keeps, so that it can be decoded again, even by other schemas.

    If columns were requested, others are left out, for they may be unreadable (`event_time` beyond all time).
    """
    payloads = [name for name in (payload.key, payload.version) if name]
    place = asked.stored if asked else declared.default_columns or declared.columns
    return (*place, *payloads, *payload.times)


def needed_columns(payload: PayloadColumns, decoding: Decoding) -> tuple[str, ...]:
    """The system's columns that decoding needs."""
    key = [payload.key] if payload.key and (decoding.key is not None or decoding.changes is not None) else []
    tried = list(_tried(decoding))
    tried += [one.within for one in tried if one.within is not None]
    is_named = payload.version and any(one.framing == "message" for one in tried)
    version = [payload.version] if is_named else []
    times = payload.times if any(one.made for one in tried) else ()
    return (payload.value, *key, *version, *payload.position, *times)


def _tried(decoding: Decoding | None) -> Iterator[Decoding]:
    """All decodings that are tried, in order."""
    while decoding is not None:
        yield decoding
        decoding = decoding.otherwise
