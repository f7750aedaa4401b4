"""Decodes a window's quarantined events once more: the good ones become rows of the window, in one step. No Spark.

The window's folder is staged anew: its files by hard links, one more file of rows, and what still cannot be decoded. So
a reader, or a crash at any moment, finds the window as it was or as it is to be.
"""

from __future__ import annotations

import errno
import json
import logging
import shutil
import time
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.formats.decoder import Decoder
from airflow_provider_streams.lake.files import WindowFiles
from airflow_provider_streams.lake.parquet.table import PROOF, QUARANTINE, HeldFolder
from airflow_provider_streams.lake.parquet.writer import ParquetWriter, count_rows
from airflow_provider_streams.model.landing import Landed, Schema, TableTerms
from airflow_provider_streams.model.plan import Plan
from airflow_provider_streams.model.receipt import Receipt, SplitReceipt, compare
from airflow_provider_streams.model.row_filter import FieldFilter
from airflow_provider_streams.model.sink import ParquetSink
from airflow_provider_streams.spark.columns import Columns
from airflow_provider_streams.spark.event_filter import keep, place_column
from airflow_provider_streams.spark.fitting import check_fit
from airflow_provider_streams.spark.quarantine import CAUSE, VERSION, QuarantineFile
from airflow_provider_streams.spark.split_reading import Part, payload_bytes, payloads_of, sort_out, where, with_causes
from airflow_provider_streams.spark.type_names import spark_names
from airflow_provider_streams.spark.window_quarantine import batches_of
from airflow_provider_streams.systems.base import StreamSystem
from airflow_provider_streams.systems.declaration import PayloadColumns
from airflow_provider_streams.systems.registry import declaration_of

_log = logging.getLogger(__name__)

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV, errno.EMLINK}


@dataclass(frozen=True)
class Redecoding:
    """How the events of a window are decoded now.

    Args:
        plan: the one that the window's folder holds, with the new decoding.
        receipt: of what the folder holds.
        columns: which columns the reader lands; None: the default ones.
        before: the columns that its table has; None: nobody said.
    """

    plan: Plan
    receipt: Receipt
    columns: tuple[str, ...] | None = None
    before: Schema | None = None

    def columns_of(self, system: StreamSystem) -> Columns:
        """See `check_columns`."""
        return check_columns(system, self.plan, self.columns, self.before)


def check_columns(system: StreamSystem, plan: Plan, asked: tuple[str, ...] | None, before: Schema | None) -> Columns:
    """The columns of a plan's rows, if a table of others can take them: they may only grow.

    Raises:
        LandingMismatch: one of them is missing, or of another type.
        InvalidRequest: an unknown column.
    """
    found = Columns.of(system, plan.decoding, asked)
    check_fit(plan, before or (), schema_of(found))
    return found


def schema_of(columns: Columns) -> Schema:
    """As Spark names the types."""
    return spark_names(columns.schema)


class ParquetReplay(ParquetWriter):
    """A window with more rows, and fewer events aside, than its folder has; used once: `stage`, then `put`."""

    def __init__(self, sink: ParquetSink, terms: TableTerms, redecoding: Redecoding) -> None:
        super().__init__(sink, redecoding.plan.window, terms)
        self._redecoding = redecoding
        self._held: HeldFolder | None = None
        self._landed: Landed | None = None

    def decode(self, system: StreamSystem) -> Landed | None:
        """Stage the window as it is to be; None: not one more of its events can be decoded.

        Args:
            system: knows the columns; it is not asked over a network.

        Raises:
            LandingMismatch: the table cannot take the columns.
            InvalidSchema, MissingDependency: nothing can be decoded so.
            SinkError: the window's folder is not here, or cannot be read or written.
        """
        started = time.monotonic()
        columns, plan = self._redecoding.columns_of(system), self._redecoding.plan
        try:
            self._begin()
            self._hold()
            with closing(WindowFiles(self._target_of(columns.schema))) as files:
                decode = partial(self._replayed, system=system, columns=columns, files=files)
                reports = [decode(split) for split in self._redecoding.receipt.splits]
                if not files.finish():
                    return None
            receipt = compare(plan, reports, seconds=time.monotonic() - started)
            count_rows(self._sink.path, sorted(self.staged.glob("*.parquet")), receipt.rows)
        except (OSError, pa.ArrowException) as error:
            raise SinkError(self._sink.path, f"the quarantine of {plan.window} cannot be replayed: {error}") from error
        self._landed = Landed(receipt, receipt.rows, schema_of(columns))
        return self._landed

    def put(self) -> None:
        """Replace the window by what was staged, unless somebody else replaced it meanwhile.

        Raises:
            SinkError: the table holds what it held before.
        """
        landed = self._landed
        assert landed is not None  # noqa: S101  # staged before
        proof = {"fingerprint": landed.receipt.fingerprint, "rows": landed.receipt.rows, "written": landed.written}
        try:
            (self.staged / PROOF).write_text(json.dumps({**proof, "landed": landed.to_json()}))
            self._table.put(self.staged, self._window, self._terms, held=self._held)
        except OSError as error:
            raise SinkError(self._sink.path, f"window {self._window} cannot be put in place: {error}") from error
        self._life.end()
        self._remove_leftovers()

    def discard(self) -> None:
        """See `Writer`."""
        super().discard()
        if self._held is not None:
            self._held.close()
            self._held = None

    def _hold(self) -> None:
        """Take the window's files over, but for its quarantine and its proof."""
        target = self._table.folder_of(self._window)
        self._held = HeldFolder(target)
        self.staged.mkdir()
        for file in target.iterdir():
            if file.is_file() and file.name != PROOF:
                _link(file, self.staged / file.name)

    def _replayed(
        self, report: SplitReceipt, system: StreamSystem, columns: Columns, files: WindowFiles
    ) -> SplitReceipt:
        """One split, its quarantined events sorted out anew."""
        report = replace(report, times=())  # what its times were by what decoded it before
        if not report.quarantine_file:
            return report
        plan = self._redecoding.plan
        split = _SplitReplay(plan, plan.splits[report.index].shard, system)
        rest = QuarantineFile(str(self.staged / QUARANTINE), report.index)
        size = more = 0
        try:
            for batch in batches_of(self._table.folder_of(self._window) / QUARANTINE / report.quarantine_file):
                good, aside = split.sort_out(batch)
                if len(aside):
                    rest.write(aside)
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
            quarantined=report.quarantined - more,
            untimed=report.untimed + split.untimed,
            quarantine_file=kept,
        )


class _SplitReplay:
    """Decodes what one split kept aside."""

    def __init__(self, plan: Plan, shard: str, system: StreamSystem) -> None:
        declared = declaration_of(plan.source.system)
        if plan.decoding is None or declared.payload_columns is None:
            raise AssertionError(f"{plan.source.system} decodes nothing")
        self.payload: PayloadColumns = declared.payload_columns
        self._plan, self._shard, self._system = plan, shard, system
        self.untimed = 0
        """Rows that have no event time of their own."""
        self.others = 0
        """Events that are another window's by their own time."""
        self._decoder = Decoder(plan.decoding, declared.dataset(plan.source.names, shard))

    def sort_out(self, kept: pa.RecordBatch) -> tuple[Part, pa.RecordBatch]:
        """The events that are rows of the window now, and those that stay aside."""
        names = [name for name in kept.schema.names if name not in (CAUSE, VERSION)]
        stored = _cast(kept, self._system.schema(names))
        decoded = self._decoder.decode(payloads_of(stored, self.payload))
        good, bad = sort_out(stored, decoded)
        own = self._own(good)
        said = kept.filter(decoded.causes.is_null()).filter(pc.invert(own)).select([CAUSE, VERSION])
        others = good.batch.filter(pc.invert(own))
        for name in (CAUSE, VERSION):
            others = others.append_column(name, said.column(name))
        rest = pa.Table.from_batches([with_causes(bad), others]).combine_chunks().to_batches()
        return Part(good.batch.filter(own), where(good.decoded, own)), rest[0] if rest else others

    def _own(self, good: Part) -> pa.BooleanArray:
        """Which events are the window's by their own time.

        While nobody could read it, they were kept aside where they were stored, and counted there. One that turns out
        to be another window's stays aside: that window may have been read with it, or without.
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
    "windows'. reland=True reads all windows anew, each event into its own"
)


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    casts = {one.name: pc.CastOptions(one.type, allow_time_truncate=True) for one in schema}
    arrays: list[pa.Array[Any]] = [pc.cast(batch.column(name), options=how) for name, how in casts.items()]  # type: ignore[call-overload]  # the target is among the options
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _link(file: Path, target: Path) -> None:
    """The same file under another name; where there are no such links, its copy."""
    try:
        target.hardlink_to(file)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copy2(file, target)
