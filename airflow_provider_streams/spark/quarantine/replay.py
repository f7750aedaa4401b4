"""Decodes a window's quarantined events again, without Spark: the good ones become rows of the window, in one step.

The window's folder is staged again: its files by hard links, a new file of rows, and the events that still cannot be
decoded. So a reader, or a crash at any moment, finds the old window or the new one.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.formats.decode_failures import KIND_TEXTS
from airflow_provider_streams.formats.plan_decoder import decoder_of
from airflow_provider_streams.lake.data_files import WindowFiles
from airflow_provider_streams.lake.parquet.hidden_files import STAGED
from airflow_provider_streams.lake.parquet.table import PROOF, QUARANTINE, FolderHandle
from airflow_provider_streams.lake.parquet.type_widening import link
from airflow_provider_streams.lake.parquet.writer import ParquetWriter, count_rows
from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.model.plan.receipt import Receipt, SplitReceipt, compare
from airflow_provider_streams.model.plan.row_filter import FieldFilter
from airflow_provider_streams.model.sinks.landing import Landed, Schema, TableTerms
from airflow_provider_streams.model.sinks.sink import ParquetSink, Sink
from airflow_provider_streams.spark.datasource.columns import Columns
from airflow_provider_streams.spark.datasource.event_time_filter import keep, place_column
from airflow_provider_streams.spark.datasource.split_reading import (
    Part,
    decoded_part,
    payload_bytes,
    split_decoded,
    where,
    with_causes,
)
from airflow_provider_streams.spark.job.columns_fit_table import check_fit
from airflow_provider_streams.spark.quarantine.quarantine_files import CAUSE, VERSION, QuarantineFile
from airflow_provider_streams.spark.quarantine.window_quarantine import batches_of
from airflow_provider_streams.spark.type_names import spark_names
from airflow_provider_streams.systems.base import StreamSystem
from airflow_provider_streams.systems.declaration import PayloadColumns
from airflow_provider_streams.systems.registry import declaration_of

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Redecoding:
    """How the events of a window are decoded now.

    Args:
        plan: the plan that the window's folder was read by, with the new decoding.
        receipt: of what the folder holds.
        columns: which columns the reader lands; None: the default ones.
        before: the columns that its table has; None: not known.
        sink: that table.
    """

    plan: Plan
    receipt: Receipt
    columns: tuple[str, ...] | None = None
    before: Schema | None = None
    sink: Sink | None = None


def check_columns(
    system: StreamSystem, plan: Plan, asked: tuple[str, ...] | None, before: Schema | None, sink: Sink | None
) -> Columns:
    """The columns of a plan's rows, which may only add to a table's from before; else `LandingMismatch`."""
    found = Columns.of(system, plan.decoding, asked)
    check_fit(plan, before or (), spark_names(found.schema), sink)
    return found


class ParquetReplay(ParquetWriter):
    """A window with more rows and fewer quarantined events than its folder has; used once: `decode`, then `put`."""

    def __init__(self, sink: ParquetSink, terms: TableTerms, redecoding: Redecoding) -> None:
        super().__init__(sink, redecoding.plan.window, terms)
        self._redecoding = redecoding
        self._held: FolderHandle | None = None
        self._landed: Landed | None = None
        self.cause = ""
        """Why one of the events still cannot be decoded, as far as `decode` has seen; empty: all can."""

    def decode(self, system: StreamSystem) -> Landed | None:
        """Stage the new window; None: no more of its events can be decoded. `system` needs no connection.

        Raises:
            LandingMismatch: the table cannot take the columns.
            InvalidSchema, MissingDependency: nothing can be decoded so.
            SinkError: the window's folder is not here, or cannot be read or written.
        """
        started = time.monotonic()
        how, plan = self._redecoding, self._redecoding.plan
        columns = check_columns(system, plan, how.columns, how.before, how.sink)
        try:
            self._begin()
            self._hold()
            with closing(WindowFiles(self._target_of(columns.schema))) as files:
                decode = partial(self._replayed, system=system, columns=columns, files=files)
                reports = [decode(split) for split in self._redecoding.receipt.splits]
                if not files.finish():
                    return None
            receipt = compare(plan, reports, seconds=time.monotonic() - started)
            count_rows(self._sink.path, sorted(self.staged.glob(f"*{STAGED}")), receipt.rows)
        except (OSError, pa.ArrowException) as error:
            raise SinkError(self._sink.path, f"the quarantine of {plan.window} cannot be replayed: {error}") from error
        self._landed = Landed(receipt, receipt.rows, spark_names(columns.schema))
        return self._landed

    def put(self) -> None:
        """Replace the window by what was staged. `SinkError`: it was not, also if another run replaced it meanwhile."""
        landed = self._landed
        assert landed is not None  # noqa: S101  # staged before
        proof = {"fingerprint": landed.receipt.fingerprint, "rows": landed.receipt.rows, "written": landed.written}
        try:
            (self.staged / PROOF).write_text(json.dumps({**proof, "landed": landed.to_json()}))
            self._table.put(self.staged, self._window, self._terms, self._files_in, held=self._held)
        except OSError as error:
            raise SinkError(self._sink.path, f"window {self._window} cannot be put in place: {error}") from error
        self._lock.end()
        self._remove_leftovers()

    def discard(self) -> None:
        """See `Writer`."""
        super().discard()
        if self._held is not None:
            self._held.close()
            self._held = None

    def _hold(self) -> None:
        """Stage links to the window's files, except its quarantine and its proof."""
        target = self._table.folder_of(self._window)
        self._held = FolderHandle(target)
        self.staged.mkdir()
        for file in target.iterdir():
            if file.is_file() and file.name != PROOF:
                link(file, self.staged / f"{file.name}{STAGED}")

    def _replayed(
        self, report: SplitReceipt, system: StreamSystem, columns: Columns, files: WindowFiles
    ) -> SplitReceipt:
        """Decode the quarantined events of one split."""
        report = replace(report, times=())  # the earlier decoding saw those times
        if not report.quarantine_file:
            return report
        plan = self._redecoding.plan
        split = _SplitReplay(plan, plan.splits[report.index].shard, system)
        rest = QuarantineFile(str(self.staged / QUARANTINE), report.index)
        size = more = decoded = 0
        try:
            for batch in batches_of(self._table.folder_of(self._window) / QUARANTINE / report.quarantine_file):
                good, aside = split.split_decoded(batch)
                if len(aside):
                    self.cause = self.cause or str(aside.column(CAUSE)[0])
                    rest.write(aside)
                decoded += len(batch) - len(aside)
                if len(good.batch):
                    size += payload_bytes(good.batch, split.payload)
                    files.write(columns.rows(*good))
                    more += len(good.batch)
            kept = rest.finish()
        finally:
            rest.close()
        if split.others:
            _log.warning("%s", _OTHERS.format(report.index, plan.window, split.others))
        return replace(
            report,
            rows=report.rows + more,
            bytes=report.bytes + size,
            quarantined=report.quarantined - decoded,
            kinds=dict(Counter(report.kinds) + split.kinds),
            untimed=report.untimed + split.untimed,
            quarantine_file=kept,
        )


class _SplitReplay:
    """Decodes the quarantined events of one split."""

    def __init__(self, plan: Plan, shard: str, system: StreamSystem) -> None:
        declared = declaration_of(plan.source.system)
        if plan.decoding is None or declared.payload_columns is None:
            raise AssertionError(f"{plan.source.system} decodes nothing")
        self.payload: PayloadColumns = declared.payload_columns
        self._plan, self._shard, self._system = plan, shard, system
        self.untimed = 0
        """Rows without an event time of their own."""
        self.others = 0
        """Events of other windows, by their own time."""
        self._decoder = decoder_of(plan.decoding, declared.dataset(plan.source.names, shard))
        self._set_aside: Counter[str] = Counter()

    @property
    def kinds(self) -> Counter[str]:
        """Messages that change no row, see `SplitReceipt`."""
        return self._set_aside + self._decoder.kinds

    def split_decoded(self, kept: pa.RecordBatch) -> tuple[Part, pa.RecordBatch]:
        """The events that become rows of the window, and those that stay in the quarantine."""
        names = [name for name in kept.schema.names if name not in (CAUSE, VERSION)]
        stored = _cast(kept, self._system.schema(names))
        for name in (CAUSE, VERSION):
            stored = stored.append_column(name, kept.column(name))
        part = self._of_rows(decoded_part(self._decoder, stored, self.payload))
        good, bad = split_decoded(*part)
        own = self._own(good)
        others = good.batch.filter(pc.invert(own))
        bad = bad._replace(batch=bad.batch.select(names))
        rest = pa.Table.from_batches([with_causes(bad), others]).combine_chunks().to_batches()
        return Part(good.batch.filter(own), where(good.decoded, own)), rest[0] if rest else others

    def _of_rows(self, part: Part) -> Part:
        """The messages of database changes that change rows, or that are bad; the others are counted."""
        is_other = pc.is_in(part.decoded.causes.cast(pa.string()), value_set=pa.array(list(KIND_TEXTS)))
        for text in part.decoded.causes.filter(is_other).to_pylist():
            self._set_aside[KIND_TEXTS[str(text)]] += 1
        return Part(part.batch.filter(pc.invert(is_other)), where(part.decoded, pc.invert(is_other)))

    def _own(self, good: Part) -> pa.BooleanArray:
        """Which events are the window's by their own time.

        While that could not be decoded, the window in which they were stored kept and counted them. An event of another
        window stays in the quarantine: that window may have been read with it, or without.
        """
        by_field = self._plan.filter
        if not isinstance(by_field, FieldFilter) or not len(good.batch):
            return pa.repeat(pa.scalar(value=True), len(good.batch))
        place = place_column(by_field)
        kept = keep(good.decoded.value, by_field, good.batch.column(place) if place else None, self._shard)
        self.untimed += kept.untimed
        self.others += kept.filtered
        return kept.mask


_OTHERS = (
    "split {} of {}: {} events stay in the quarantine although they can be decoded: by their own time they are other "
    "windows'. full_refresh=True reads all windows again, each event into its own"
)


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    casts = {one.name: pc.CastOptions(one.type, allow_time_truncate=True) for one in schema}
    arrays: list[pa.Array[Any]] = [pc.cast(batch.column(name), options=how) for name, how in casts.items()]  # type: ignore[call-overload]  # the target is among the options
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
