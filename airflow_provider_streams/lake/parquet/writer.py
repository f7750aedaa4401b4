"""Windows of a `ParquetTable`: exchanging two folders' names replaces one."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Final

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.lake.column_types import stored_schema
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS, wide_as
from airflow_provider_streams.lake.data_files import DataFile, FileTarget, write_files
from airflow_provider_streams.lake.parquet import staging_cleanup
from airflow_provider_streams.lake.parquet.hidden_files import STAGED, lock_file_of, remove_dead
from airflow_provider_streams.lake.parquet.table import PROOF, QUARANTINE, ParquetTable
from airflow_provider_streams.lake.process_lock import ProcessLock, is_alive
from airflow_provider_streams.lake.snapshot_expiry import Expired
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.lake.storage_errors import errors_at
from airflow_provider_streams.lake.writer import TableWriter
from airflow_provider_streams.model.plan.receipt import Receipt
from airflow_provider_streams.model.sinks.landing import TableMark, TableState, TableTerms
from airflow_provider_streams.model.sinks.sink import ParquetSink, Sink
from airflow_provider_streams.model.stream.source import in_uri
from airflow_provider_streams.model.window.window import Window

_CODECS: Final = {"none": "NONE", "uncompressed": "NONE", "lz4_raw": "lz4", "lzo": "NONE"}
"""Spark's names of codecs that pyarrow calls otherwise."""


class ParquetWriter(TableWriter):
    """See `TableWriter`."""

    sink_type: ClassVar[type[Sink]] = ParquetSink

    def __init__(self, sink: ParquetSink, window: Window, terms: TableTerms) -> None:
        self._sink, self._window, self._terms = sink, window, terms
        self._table = ParquetTable(sink.path)
        self.staged = self._table.staging / f"{window.label}-{uuid.uuid4().hex}"
        """Where the window's files are until it is committed."""
        self._reported = self.staged.with_name(f"{self.staged.name}.reported")
        """Where the files that tasks reported are during the commit; tasks do not know it."""
        self.quarantine = self.staged.with_name(f"{self.staged.name}.quarantine")
        """Where its undecodable events are until then."""
        self._lock = ProcessLock(lock_file_of(self.staged))
        self._target: FileTarget | None = None
        self._made: list[Path] = []
        """The folders that were made before the table was claimed."""

    @classmethod
    def read_state(cls, sink: ParquetSink) -> TableState | None:
        """See `SinkWriter`."""
        return ParquetTable(sink.path).state()

    @classmethod
    def read_state_near(cls, sink: ParquetSink, window: Window) -> TableState | None:
        """See `SinkWriter`."""
        return ParquetTable(sink.path).state(window)

    @classmethod
    def storage(cls, sink: ParquetSink) -> Storage:
        """See `SinkWriter`."""
        return Storage(sink.location)

    @classmethod
    def check_rows(cls, sink: ParquetSink, schema: pa.Schema, terms: TableTerms | None) -> None:  # noqa: ARG003
        """See `SinkWriter`: windows may have different columns."""
        given = sorted({name.lower() for name in schema.names} & set(WINDOW_COLUMNS))
        if given:
            raise SinkError(sink.path, f"the rows have a column {given[0]!r}, which the table's folders already give")

    @classmethod
    def expire(cls, sink: ParquetSink, mark: TableMark, before: datetime, *, dry_run: bool = False) -> Expired:
        """See `SinkWriter`."""
        return staging_cleanup.expire(sink, mark, before, dry_run=dry_run)

    def open_quarantine(self) -> Path:
        """See `SinkWriter`; tasks write `QuarantineFile`s."""
        self._made = self._table.make_staging(self._terms)  # `open`, which sees the rows' columns, claims it
        self._begin()
        with errors_at(self._sink.path, "no folder for undecodable events"):
            self.quarantine.mkdir()
        return self.quarantine

    def open(self, schema: pa.Schema) -> FileTarget:
        """See `TableWriter`; the folders' names give the window's columns."""
        self.check_rows(self._sink, schema, self._terms)
        self._table.claim(self._terms)
        self._made = []
        self._begin()
        with errors_at(self._sink.path, "no folder for a window"):
            self.staged.mkdir()
        self._target = self._target_of(schema)
        return self._target

    def commit(self, files: Sequence[DataFile], receipt: Receipt) -> None:
        """See `TableWriter`; a window without rows has a file as well."""
        if self._target is None:
            raise AssertionError("a window is opened before it is committed")
        files = files or write_files(self._target)
        written = sum(file.rows for file in files)
        count_rows(self._sink.path, [self.staged / file.path for file in files], written)
        proof = {"fingerprint": receipt.fingerprint, "rows": receipt.rows, "written": written}
        with errors_at(self._sink.path, f"window {self._window} cannot be put in place"):
            self._take(files)
            self._keep_quarantine(receipt)
            (self._reported / PROOF).write_text(json.dumps(proof))
            self._table.put(self._reported, self._window, self._terms, self._files_in)
        shutil.rmtree(self.staged, ignore_errors=True)
        self._lock.end()
        self._remove_leftovers()

    def discard(self) -> None:
        """See `TableWriter`."""
        for folder in (self.staged, self._reported, self.quarantine):
            shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            self._lock.end()
        self._table.remove_unclaimed(self._made)

    def _target_of(self, schema: pa.Schema) -> FileTarget:
        return self._files_in(self.staged, wide_as(stored_schema(schema), self._table.columns.read()))

    def _files_in(self, folder: Path, columns: pa.Schema) -> FileTarget:
        storage = Storage(f"file://{in_uri(str(folder))}")
        codec = _CODECS.get(self._sink.compression, self._sink.compression)
        return FileTarget(storage, "", "part-", columns, compression=codec, suffix=f".parquet{STAGED}")

    def _begin(self) -> None:
        try:
            self._lock.begin()
        except FileNotFoundError:  # another attempt failed just now, and removed the folders that it had made
            self._made = self._table.make_staging(self._terms)
            self._lock.begin()

    def _take(self, files: Sequence[DataFile]) -> None:
        """Move them out of the tasks' reach: a task that Spark believed lost, and repeated, may still write files."""
        self._reported.mkdir()
        for file in files:
            (self.staged / file.path).rename(self._reported / file.path)

    def _keep_quarantine(self, receipt: Receipt) -> None:
        """Move the undecodable events to the rows; all of them must be here."""
        named = [split.quarantine_file for split in receipt.splits if split.quarantine_file]
        if not named:
            return
        kept = self._reported / QUARANTINE
        kept.mkdir()
        for name in named:
            try:
                (self.quarantine / name).rename(kept / name)
            except FileNotFoundError as error:
                raise SinkError(
                    self._sink.path, f"{name}, which a task wrote, is not here: the path must be mounted everywhere"
                ) from error
        shutil.rmtree(self.quarantine, ignore_errors=True)
        count_rows(self._sink.path, sorted(kept.iterdir()), receipt.totals["quarantined"])

    def _remove_leftovers(self) -> None:
        """Remove what dead attempts at this window left."""
        for leftover in self._table.staging.glob(f"{self._window.label}-*"):
            if not is_alive(lock_file_of(leftover)):
                with suppress(OSError):
                    remove_dead(leftover)


def count_rows(table: str, files: Iterable[Path], rows: int) -> None:
    """Raise `SinkError` if files are not here, or do not have so many rows together."""
    try:
        written = sum(pq.ParquetFile(file).metadata.num_rows for file in files)
    except (OSError, pa.ArrowException) as error:
        raise SinkError(
            table, f"what a task wrote is not here: the path must also be mounted on this machine ({error})"
        ) from error
    if rows != written:
        raise SinkError(
            table,
            f"{counted(rows, 'row')} expected, {written:,} found here: "
            "the path must be one mounted file system for the driver and all executors",
        )
