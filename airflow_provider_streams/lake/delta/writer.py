"""Windows of a Delta table by delta-rs: one commit to the table's log replaces one.

    <path>/_delta_log/                                             which files are the table
    <path>/window_start=20261120T100000Z/window_end=20261120T110000Z/<attempt>-*.parquet

The partition columns `window_start` and `window_end` say which window a file holds. A window without rows has a file
without rows, so it differs from one that never landed. Files of failed attempts are in the same folders, and no reader
sees them.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar, Final

import pyarrow as pa

from airflow_provider_streams.errors import SinkError, TableUnavailable
from airflow_provider_streams.lake.columns import promoted, wide_as, window_folder
from airflow_provider_streams.lake.commit_outcome import CommitOutcome
from airflow_provider_streams.lake.data_files import DataFile, FileTarget, write_files
from airflow_provider_streams.lake.delta import table_state, vacuum
from airflow_provider_streams.lake.delta.add_actions import Stored, add_actions, stored
from airflow_provider_streams.lake.delta.column_types import columns_of_rows, columns_of_table, columns_to_add
from airflow_provider_streams.lake.delta.compaction import CompactableDelta
from airflow_provider_streams.lake.delta.storage import check_free, storage_of
from airflow_provider_streams.lake.delta.table_settings import codec_of
from airflow_provider_streams.lake.delta.table_version import DeltaVersion
from airflow_provider_streams.lake.delta.transaction_log import (
    SeenVersion,
    load,
    make,
    refuse_unreadable,
    versions,
)
from airflow_provider_streams.lake.delta.type_widening import Promotion
from airflow_provider_streams.lake.file_rewriting import remove_attempt
from airflow_provider_streams.lake.snapshot_expiry import Expired
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.lake.table_properties import check_owner, commit_facts, in_the_way
from airflow_provider_streams.lake.writer import TableWriter
from airflow_provider_streams.model.plan.receipt import Receipt
from airflow_provider_streams.model.sinks.landing import TableMark, TableState, TableTerms
from airflow_provider_streams.model.sinks.sink import DeltaSink, Sink
from airflow_provider_streams.model.window.window import Window

_log = logging.getLogger(__name__)

_REWRITTEN: Final = "streams.rewritten"
"""In the facts of a commit that rewrote all files: the columns that became wider."""


class DeltaWriter(TableWriter):
    """One attempt at one window of a Delta table; see `TableWriter`.

    The first commit after a full refresh sets aside what the reader landed under an earlier mark: it removes the files
    from the table, and they stay in its earlier versions until the table is vacuumed.
    """

    sink_type: ClassVar[type[Sink]] = DeltaSink

    def __init__(self, sink: DeltaSink, window: Window, terms: TableTerms) -> None:
        self._sink, self._window, self._terms = sink, window, terms
        self._attempt = uuid.uuid4().hex
        self._storage = storage_of(sink)
        self._columns = pa.schema([])
        self._seen: SeenVersion | None = None
        self._promotion: Promotion | None = None
        self._outcome = CommitOutcome()

    @classmethod
    def read_state(cls, sink: DeltaSink) -> TableState | None:
        """See `SinkWriter`."""
        return table_state.read_state(sink, DeltaVersion.contents)

    @classmethod
    def read_state_near(cls, sink: DeltaSink, window: Window) -> TableState | None:
        """See `SinkWriter`."""
        return table_state.read_state(sink, lambda version: version.windows_near(window))

    @classmethod
    def storage(cls, sink: DeltaSink) -> Storage:
        """See `SinkWriter`."""
        return storage_of(sink)

    @classmethod
    def check_rows(cls, sink: DeltaSink, schema: pa.Schema, terms: TableTerms | None) -> None:
        """See `SinkWriter`. What is to be set aside takes its columns with it."""
        columns = columns_of_rows(sink.path, schema)
        if terms is None:
            refuse_unreadable(storage_of(sink))
            return
        version = load(storage_of(sink))
        if version is None:
            return
        _check_writable(sink, version)
        if version.mark in (None, terms.mark):
            _columns_to_add(sink, version, columns, terms)

    @classmethod
    def compactable(cls, sink: DeltaSink, mark: TableMark) -> CompactableDelta:
        """See `SinkWriter`."""
        return CompactableDelta(sink, mark)

    @classmethod
    def expire(cls, sink: DeltaSink, mark: TableMark, before: datetime, *, dry_run: bool = False) -> Expired:
        """See `SinkWriter`."""
        return vacuum.expire(sink, mark, before, dry_run=dry_run)

    def open(self, schema: pa.Schema) -> FileTarget:
        """See `TableWriter`."""
        self._columns = columns_of_rows(self._sink.path, schema)
        found = load(self._storage)
        if found is None:
            check_free(self._storage)
            make(self._storage, columns_of_table(self._columns), self._terms.mark)
        version = next(one for one in versions(self._storage, found) if self._is_open_to_us(one))
        self._seen = SeenVersion(self._storage, version)
        target = FileTarget(
            self._storage,
            window_folder(self._window),
            f"{self._attempt}-",
            self._columns,
            compression=codec_of(version.properties),
        )
        self._storage.make_folder(target.folder)
        self._promotion = Promotion(target)
        return target

    def commit(self, files: Sequence[DataFile], receipt: Receipt) -> None:
        """See `TableWriter`. If another attempt landed the window first, this one replaces it.

        Raises:
            CommitStateUnknown: the window may have been replaced.
            TableUnavailable: the store fails, or other commits were first again and again.
        """
        if self._promotion is None or self._seen is None:
            raise SinkError(self._sink.path, "commit comes after open")
        written = stored(self._storage, files or write_files(self._promotion.target))
        facts = commit_facts(self._window, receipt.fingerprint, self._attempt)
        for version in versions(self._storage, self._seen.newest()):
            if self._is_ours(version) and self._is_replaced(version, written, facts, self._promotion):
                break

    def discard(self) -> None:
        """See `TableWriter`. If a commit may have come through, its files stay."""
        if self._promotion is not None and not self._outcome.may_be_landed:
            self._promotion.discard()
            remove_attempt(self._promotion.target, self._storage)

    def _is_open_to_us(self, version: DeltaVersion) -> bool:
        """Whether the rows may go in; what must be set aside is not touched yet. False: look again."""
        if version.mark not in (None, self._terms.mark):
            self._refuse_foreign(version)
            _check_writable(self._sink, version)
            return True
        if not self._is_ours(version):
            return False
        if _columns_to_add(self._sink, version, self._columns, self._terms) is not None:
            self._columns = wide_as(self._columns, version.columns)
        return True

    def _is_ours(self, version: DeltaVersion) -> bool:
        """Whether the table bears our mark; otherwise take it over, step by step. False: look again.

        A table that is refused stays as it was.
        """
        if version.mark != self._terms.mark:
            self._refuse_foreign(version)
        _check_writable(self._sink, version)
        if version.mark == self._terms.mark:
            return True
        if version.mark is None:
            _columns_to_add(self._sink, version, self._columns, self._terms)
        self._take_over(version)
        return False

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

    def _is_replaced(self, version: DeltaVersion, written: Stored, facts: dict[str, str], promotion: Promotion) -> bool:
        """Whether the files are in the window's place now. False: look again."""
        new = _columns_to_add(self._sink, version, self._columns, self._terms)
        if new is not None:
            self._check_wide(version)
        columns = columns_of_table(self._columns)
        if not version.may_have(columns if new is None else new):
            version.allow_local_times()
            return False
        windows = [self._window, *in_the_way(self._window, version.windows_near(self._window), self._terms)]
        table = columns if new is None else pa.schema({one.name: one for one in (*version.columns, *new)}.values())
        adds = add_actions(written, self._window, table)
        wider = () if new is None else promoted(version.columns, new)
        if wider:
            _log.warning("%s: %s become wider: all files are rewritten", self._sink.path, ", ".join(wider))
            adds += promotion.files(version, table, windows)
            facts = {**facts, _REWRITTEN: ", ".join(wider)}
        outcome = self._outcome
        with outcome.committing():
            if new is None:
                outcome.may_be_landed = version.begin(columns, adds, facts)
            else:
                outcome.may_be_landed = version.replace(None if wider else windows, adds, new, facts)
        return outcome.may_be_landed

    def _check_wide(self, version: DeltaVersion) -> None:
        if wide_as(self._columns, version.columns) != self._columns:
            raise TableUnavailable(
                self._sink.path,
                "numbers of the table became wider while narrower ones were written: nothing was changed, and "
                "the next attempt writes them so",
            )


def _check_writable(sink: DeltaSink, version: DeltaVersion) -> None:
    if version.hindrance:
        raise SinkError(sink.path, f"the table cannot hold windows: {version.hindrance}")


def _columns_to_add(sink: DeltaSink, version: DeltaVersion, columns: pa.Schema, terms: TableTerms) -> pa.Schema | None:
    """What the table must get; None: its columns are those of failed runs, and give way to the rows'."""
    try:
        return columns_to_add(sink.path, version.columns, columns, widen=sink.widen)
    except SinkError:
        if terms.columns is not None or not version.never_landed:
            raise
        return None
