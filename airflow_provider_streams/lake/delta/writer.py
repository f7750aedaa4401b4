"""Windows of a Delta table by delta-rs: each is replaced by one commit to the table's log.

    <path>/_delta_log/                                             which files are the table
    <path>/window_start=20261120T100000Z/window_end=20261120T110000Z/<attempt>-*.parquet

The partition columns `window_start` and `window_end` say which window a file holds; a window without rows has a file
without rows, so that it is told from one that was never landed. Files of failed attempts lie beside the others, and no
reader sees them.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import ClassVar

import pyarrow as pa
import pyarrow.fs as pafs

from airflow_provider_streams.errors import CommitUnknown, SinkError, WindowsOverlap
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS
from airflow_provider_streams.lake.connections import properties_of
from airflow_provider_streams.lake.delta.files import Stored, add_actions, stored
from airflow_provider_streams.lake.delta.log import DeltaVersion, load, make
from airflow_provider_streams.lake.delta.storage import check_free, check_mounted, make_folder
from airflow_provider_streams.lake.delta.types import (
    columns_of_rows,
    columns_of_table,
    columns_to_add,
)
from airflow_provider_streams.lake.delta.versions import versions
from airflow_provider_streams.lake.files import DataFile, FileTarget, WindowFiles
from airflow_provider_streams.lake.owner import check_owner, unowned
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.model.landing import TableState, TableTerms
from airflow_provider_streams.model.receipt import Receipt
from airflow_provider_streams.model.sink import DeltaSink, Sink
from airflow_provider_streams.model.window import Window, moment_label

_log = logging.getLogger(__name__)


class DeltaWriter:
    """One attempt at one window of a Delta table; see `TableWriter`.

    What a reader landed under an earlier mark is set aside by the first commit after it was asked for: the files are
    taken out of the table and stay in its earlier versions, until somebody vacuums.
    """

    sink_type: ClassVar[type[Sink]] = DeltaSink

    def __init__(self, sink: DeltaSink, window: Window, terms: TableTerms) -> None:
        self._sink, self._window, self._terms = sink, window, terms
        self._attempt = uuid.uuid4().hex
        self._storage = storage_of(sink)
        self._columns = pa.schema([])
        self._target: FileTarget | None = None
        self._may_be_landed = False

    @classmethod
    def look(cls, sink: DeltaSink) -> TableState | None:
        """See `TableWriter`."""
        storage = storage_of(sink)
        version = load(storage)
        if version is None:
            check_mounted(storage)
            check_free(storage)
            return None
        if version.mark is None and not version.is_empty:
            raise unowned(sink.path)
        return None if version.mark is None else TableState(version.mark, version.windows())

    @classmethod
    def check_rows(cls, sink: DeltaSink, schema: pa.Schema, terms: TableTerms | None) -> None:
        """See `ForeseeingWriter`. What is to be set aside takes its columns with it."""
        columns = columns_of_rows(sink.path, schema)
        if terms is None:
            return
        version = load(storage_of(sink))
        if version is not None and version.mark in (None, terms.mark):
            _check_writable(sink, version)
            _columns_to_add(sink, version, columns, terms)

    def open(self, schema: pa.Schema) -> FileTarget:
        """See `TableWriter`."""
        self._columns = columns_of_rows(self._sink.path, schema)
        found = load(self._storage)
        if found is None:
            check_free(self._storage)
            make(self._storage, columns_of_table(self._columns), self._terms.mark)
        for version in versions(self._storage, found):
            if self._is_open_to_us(version):
                break
        self._target = FileTarget(self._storage, folder_of(self._window), f"{self._attempt}-", self._columns)
        make_folder(self._storage, self._target.folder)
        return self._target

    def commit(self, files: Sequence[DataFile], receipt: Receipt) -> None:
        """See `TableWriter`. Another attempt at the window may be first: then its files make room for these.

        Raises:
            CommitUnknown: nobody can say whether the window was replaced.
            TableUnavailable: the store fails, or other commits were first again and again.
        """
        written = stored(self._storage, files or self._file_without_rows())
        facts = {
            "streams.fingerprint": receipt.fingerprint,
            "streams.window": str(self._window),
            "streams.attempt": self._attempt,
        }
        for version in versions(self._storage):
            if self._is_ours(version) and self._is_replaced(version, written, facts):
                break

    def discard(self) -> None:
        """See `TableWriter`. Files of a commit of which nobody can say whether it came through stay."""
        if self._target is None or self._may_be_landed:
            return
        with suppress(Exception):
            system, root = self._storage.open()
            for found in system.get_file_info(pafs.FileSelector(f"{root}/{self._target.folder}", allow_not_found=True)):
                if found.base_name.startswith(self._target.prefix):
                    system.delete_file(found.path)

    def _is_open_to_us(self, version: DeltaVersion) -> bool:
        """Whether the rows may go in. What must be set aside is not touched yet. False: look again."""
        if version.mark not in (None, self._terms.mark):
            self._refuse_foreign(version)
            return True
        if not self._is_ours(version):
            return False
        _columns_to_add(self._sink, version, self._columns, self._terms)
        return True

    def _is_ours(self, version: DeltaVersion) -> bool:
        """Whether the table is; otherwise it is made so, step by step. False: look again."""
        if version.mark != self._terms.mark:
            self._refuse_foreign(version)
            self._take_over(version)
            return False
        _check_writable(self._sink, version)
        return True

    def _refuse_foreign(self, version: DeltaVersion) -> None:
        if version.mark is not None or not version.is_empty:
            check_owner(self._sink.path, version.mark, self._terms, "earlier versions of the table")

    def _take_over(self, version: DeltaVersion) -> None:
        """One step towards a table of ours: what was landed under an earlier mark goes first, then the mark."""
        columns = columns_of_table(self._columns)
        if version.mark is None or version.is_bare(columns):
            version.claim(self._terms.mark)
        elif not version.may_have(columns):
            version.allow_local_times()
        elif version.begin(columns):
            _log.info("%s: what was landed before is in its version %d", self._sink.path, version.number)

    def _is_replaced(self, version: DeltaVersion, written: Stored, facts: dict[str, str]) -> bool:
        """Whether the files are in the window's place now. False: look again."""
        new = _columns_to_add(self._sink, version, self._columns, self._terms)
        columns = columns_of_table(self._columns)
        if not version.may_have(columns if new is None else new):
            version.allow_local_times()
            return False
        in_the_way = sorted(one for one in version.windows() if one != self._window and one.overlaps(self._window))
        if in_the_way and not self._terms.replace_overlaps:
            raise WindowsOverlap(self._terms.mark.source, self._window, in_the_way)
        table = columns if new is None else pa.schema({one.name: one for one in (*version.columns, *new)}.values())
        adds = add_actions(written, self._window, table)
        self._may_be_landed = True  # whatever ends this, a signal even, until there is an answer
        try:
            if new is None:
                self._may_be_landed = version.begin(columns, adds, facts)
            else:
                self._may_be_landed = version.replace([self._window, *in_the_way], adds, new, facts)
        except CommitUnknown:
            raise
        except SinkError:
            self._may_be_landed = False
            raise
        return self._may_be_landed

    def _file_without_rows(self) -> Sequence[DataFile]:
        files = WindowFiles(self._opened())
        try:
            files.write(pa.RecordBatch.from_pylist([], self._columns))
            return files.finish()
        finally:
            files.close()

    def _opened(self) -> FileTarget:
        if self._target is None:
            raise SinkError(self._sink.path, "commit comes after open")
        return self._target


def _check_writable(sink: DeltaSink, version: DeltaVersion) -> None:
    if version.hindrance:
        raise SinkError(sink.path, f"the table cannot hold windows: {version.hindrance}")


def _columns_to_add(sink: DeltaSink, version: DeltaVersion, columns: pa.Schema, terms: TableTerms) -> pa.Schema | None:
    """What the table must get; None: its columns are those of runs that failed, and give way to the rows'.

    Raises:
        SinkError: it cannot hold the rows.
    """
    try:
        return columns_to_add(sink.path, version.columns, columns, widen=sink.widen)
    except SinkError:
        if terms.columns is not None or not version.never_landed:
            raise
        return None


def storage_of(sink: DeltaSink) -> Storage:
    """Where a table is, and how it is reached."""
    told = properties_of(sink.conn_id)
    return Storage(sink.asset_uri, {name: told[name] for name in told if name.startswith(("s3.", "client.", "adls."))})


def folder_of(window: Window) -> str:
    """Where a window's files are, below the table's folder."""
    edges = zip(WINDOW_COLUMNS, (window.start, window.end), strict=True)
    return "/".join(f"{name}={moment_label(edge)}" for name, edge in edges)
