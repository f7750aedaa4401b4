"""A window of a `ParquetTable`, replaced by exchanging two folders' names."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Final

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.files import DataFile, FileTarget, WindowFiles
from airflow_provider_streams.lake.parquet.atomic_rename import recover
from airflow_provider_streams.lake.parquet.table import PROOF, QUARANTINE, WINDOW_COLUMNS, ParquetTable
from airflow_provider_streams.lake.process_lock import Life, is_alive
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.lake.store_failures import failure_of
from airflow_provider_streams.lake.types import stored_schema
from airflow_provider_streams.model.landing import TableState, TableTerms
from airflow_provider_streams.model.receipt import Receipt
from airflow_provider_streams.model.sink import ParquetSink, Sink
from airflow_provider_streams.model.source import in_uri
from airflow_provider_streams.model.window import Window

_CODECS: Final = {"none": "NONE", "uncompressed": "NONE", "lz4_raw": "lz4", "lzo": "NONE"}
"""What Spark calls a codec, and pyarrow otherwise."""


class ParquetWriter:
    """See `lake.writer.TableWriter`."""

    sink_type: ClassVar[type[Sink]] = ParquetSink

    def __init__(self, sink: ParquetSink, window: Window, terms: TableTerms) -> None:
        self._sink, self._window, self._terms = sink, window, terms
        self._table = ParquetTable(sink.path)
        self.staged = self._table.staging / f"{window.label}-{uuid.uuid4().hex}"
        """Where the window's files are until it is committed."""
        self._told = self.staged.with_name(f"{self.staged.name}.told")
        """Where those are then that tasks told of; no task knows of it."""
        self.quarantine = self.staged.with_name(f"{self.staged.name}.quarantine")
        """Where its undecodable events are until then."""
        self._life = Life(life_of(self.staged))
        self._target: FileTarget | None = None

    @classmethod
    def look(cls, sink: ParquetSink) -> TableState | None:
        """See `TableWriter`."""
        return ParquetTable(sink.path).state()

    @classmethod
    def check_rows(cls, sink: ParquetSink, schema: pa.Schema, terms: TableTerms | None) -> None:  # noqa: ARG003
        """See `ForeseeingWriter`: any columns may lie beside any others."""
        given = sorted({name.lower() for name in schema.names} & set(WINDOW_COLUMNS))
        if given:
            raise SinkError(sink.path, f"the rows have a column {given[0]!r}, which the table's folders already give")

    def open_quarantine(self) -> Path:
        """The folder where tasks write `QuarantineFile`s; those that the receipt names are committed with the window.

        Raises:
            SinkError: it cannot be made.
        """
        self._begin()
        try:
            self.quarantine.mkdir()
        except OSError as error:
            raise failure_of(self._sink.path, f"no folder for undecodable events: {error}", error) from error
        return self.quarantine

    def open(self, schema: pa.Schema) -> FileTarget:
        """See `TableWriter`; the folders' names give the window's columns."""
        self.check_rows(self._sink, schema, self._terms)
        self._begin()
        try:
            self.staged.mkdir()
        except OSError as error:
            raise failure_of(self._sink.path, f"no folder for a window: {error}", error) from error
        self._target = self._target_of(schema)
        return self._target

    def commit(self, files: Sequence[DataFile], receipt: Receipt) -> None:
        """See `TableWriter`; a window without rows has a file as well."""
        files = files or self._written_none()
        written = sum(file.rows for file in files)
        count_rows(self._sink.path, [self.staged / file.path for file in files], written)
        proof = {"fingerprint": receipt.fingerprint, "rows": receipt.rows, "written": written}
        try:
            self._take(files)
            self._keep_quarantine(receipt)
            (self._told / PROOF).write_text(json.dumps(proof))
            self._table.put(self._told, self._window, self._terms)
        except OSError as error:
            raise failure_of(
                self._sink.path, f"window {self._window} cannot be put in place: {error}", error
            ) from error
        shutil.rmtree(self.staged, ignore_errors=True)
        self._life.end()
        self._remove_leftovers()

    def discard(self) -> None:
        """See `TableWriter`."""
        for folder in (self.staged, self._told, self.quarantine):
            shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            self._life.end()

    def _target_of(self, schema: pa.Schema) -> FileTarget:
        storage = Storage(f"file://{in_uri(str(self.staged))}")
        codec = _CODECS.get(self._sink.compression, self._sink.compression)
        return FileTarget(storage, "", "part-", stored_schema(schema), compression=codec)

    def _begin(self) -> None:
        self._table.claim(self._terms)
        self._life.begin()
        recover(self._table.folder_of(self._window), self._table.staging, f"{self._window.label}-")

    def _written_none(self) -> Sequence[DataFile]:
        if self._target is None:
            raise AssertionError("a window is opened before it is committed")
        files = WindowFiles(self._target)
        files.write(pa.RecordBatch.from_pylist([], self._target.schema))
        return files.finish()

    def _take(self, files: Sequence[DataFile]) -> None:
        """Out of the reach of tasks: one that Spark took for lost, and ran again, may still write beside these."""
        self._told.mkdir()
        for file in files:
            (self.staged / file.path).rename(self._told / file.path)

    def _keep_quarantine(self, receipt: Receipt) -> None:
        """Move the undecodable events beside the rows; every one of them must be here."""
        named = [split.quarantine_file for split in receipt.splits if split.quarantine_file]
        if not named:
            return
        kept = self._told / QUARANTINE
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
        """What dead attempts at this window left, now that it is replaced.

        Each is renamed first: an attempt that only looked dead can then put no folder in place that is being emptied.
        """
        for leftover in self._table.staging.glob(f"{self._window.label}-*"):
            if is_alive(life_of(leftover)):
                continue
            doomed = leftover.with_name(leftover.name + ".doomed")
            with suppress(OSError):
                leftover.rename(doomed)
                if doomed.is_dir():
                    shutil.rmtree(doomed, ignore_errors=True)
                else:
                    doomed.unlink()


def count_rows(table: str, files: Iterable[Path], rows: int) -> None:
    """See that files are here, and have so many rows together.

    Raises:
        SinkError: they are not, or have not.
    """
    try:
        written = sum(pq.ParquetFile(file).metadata.num_rows for file in files)
    except (OSError, pa.ArrowException) as error:
        raise SinkError(
            table, f"what a task wrote is not here: the path must be mounted on this machine too ({error})"
        ) from error
    if rows != written:
        raise SinkError(
            table,
            f"there must be {rows} rows, {written} are here: "
            "the path must be one mounted file system for the driver and all executors",
        )


def life_of(staged: Path) -> Path:
    """Whose lock says that the attempt lives which made this folder, or one beside it."""
    label, _, attempt = staged.name.partition("-")  # a label has points where windows start between two seconds
    return staged.with_name(f"{label}-{attempt.partition('.')[0]}.alive")
