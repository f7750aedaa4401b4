"""Windows of an Iceberg table by pyiceberg: one commit to the table's catalog replaces one.

    <table>/data/window_start=20261120T100000Z/<attempt>-*.parquet

The columns `window_start` and `window_end` say which window a row was read for. Files of failed attempts are in the
same folders, and no reader sees them. Files that a commit removes stay in the table's earlier snapshots until these
expire. A window without rows leaves nothing in the table.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.commit_outcome import CommitOutcome
from airflow_provider_streams.lake.data_files import DataFile, FileTarget
from airflow_provider_streams.lake.file_rewriting import remove_attempt
from airflow_provider_streams.lake.writer import TableWriter
from airflow_provider_streams.model.optional_dependencies import importing
from airflow_provider_streams.model.plan.receipt import Receipt
from airflow_provider_streams.model.sinks.landing import TableMark, TableState, TableTerms
from airflow_provider_streams.model.sinks.sink import IcebergSink, Sink
from airflow_provider_streams.model.window.window import Window

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_provider_streams.lake.iceberg.commit import Replacement
    from airflow_provider_streams.lake.iceberg.compaction import CompactableIceberg
    from airflow_provider_streams.lake.iceberg.table import IcebergTable
    from airflow_provider_streams.lake.snapshot_expiry import Expired
    from airflow_provider_streams.lake.storage import Storage


class IcebergWriter(TableWriter):
    """One attempt at one window of an Iceberg table; see `TableWriter`.

    The first commit after a full refresh sets aside what the reader landed under an earlier mark: it removes the files
    from the table, and writes the new mark into its properties.
    """

    sink_type: ClassVar[type[Sink]] = IcebergSink
    keeps_columns: ClassVar[bool] = True

    def __init__(self, sink: IcebergSink, window: Window, terms: TableTerms) -> None:
        self._sink, self._window, self._terms = sink, window, terms
        self._attempt = uuid.uuid4().hex
        self._table: IcebergTable | None = None
        self._replacement: Replacement | None = None
        self._target: FileTarget | None = None
        self._location = ""
        self._landed: frozenset[str] = frozenset()
        self._outcome = CommitOutcome()

    @classmethod
    def read_state(cls, sink: IcebergSink) -> TableState | None:
        """See `SinkWriter`."""
        return _table_of(sink).state()

    @classmethod
    def read_state_near(cls, sink: IcebergSink, window: Window) -> TableState | None:
        """See `SinkWriter`."""
        return _table_of(sink).state(window)

    @classmethod
    def storage(cls, sink: IcebergSink) -> Storage | None:
        """See `SinkWriter`."""
        return _table_of(sink).storage()

    @classmethod
    def why_catalog_is_read_only(cls, sink: IcebergSink) -> str:
        """See `SinkWriter`."""
        with importing("iceberg"):
            from airflow_provider_streams.lake.iceberg.catalogs.catalog import (  # noqa: PLC0415 - optional
                catalog_of,
                why_catalog_is_read_only,
            )

        return why_catalog_is_read_only(catalog_of(sink, makes_tables=False))

    @classmethod
    def lacks_catalog(cls, sink: IcebergSink) -> bool:
        """See `SinkWriter`."""
        return _table_of(sink).lacks_catalog()

    @classmethod
    def check_rows(cls, sink: IcebergSink, schema: pa.Schema, terms: TableTerms | None) -> None:
        """See `SinkWriter`."""
        table = _table_of(sink)
        from airflow_provider_streams.lake.iceberg.column_types import columns_of_rows  # noqa: PLC0415 - optional

        columns = columns_of_rows(str(sink), schema)
        if terms is not None:
            table.check_rows(columns, terms)

    @classmethod
    def compactable(cls, sink: IcebergSink, mark: TableMark) -> CompactableIceberg:
        """See `SinkWriter`."""
        from airflow_provider_streams.lake.iceberg.compaction import CompactableIceberg  # noqa: PLC0415 - optional

        return CompactableIceberg(sink, mark)

    @classmethod
    def expire(cls, sink: IcebergSink, mark: TableMark, before: datetime, *, dry_run: bool = False) -> Expired:
        """See `SinkWriter`."""
        from airflow_provider_streams.lake.iceberg.snapshot_expiry import ExpirableIceberg  # noqa: PLC0415 - optional

        return ExpirableIceberg(sink, mark).expire(before, dry_run=dry_run)

    def open(self, schema: pa.Schema) -> FileTarget:
        """See `TableWriter`."""
        self._table = _table_of(self._sink)
        from airflow_provider_streams.lake.iceberg import column_types  # noqa: PLC0415 - optional
        from airflow_provider_streams.lake.iceberg.commit import Replacement  # noqa: PLC0415
        from airflow_provider_streams.lake.iceberg.files import locations, table_files  # noqa: PLC0415

        columns = column_types.columns_of_rows(str(self._sink), schema)
        table = self._table.opened(columns, self._terms)
        known = frozenset(one.snapshot_id for one in table.snapshots())
        to_come = self._table.schema_to_come(table, columns, self._terms)
        stored = column_types.as_stored(column_types.as_wide(columns, to_come), to_come)
        written = pa.schema([*stored, *column_types.as_stored(pa.schema(column_types.window_fields()), to_come)])
        self._replacement = Replacement(self._sink, self._window, self._terms, self._attempt, known, written)
        self._location = locations.data_location(table)
        self._target = table_files.target_in(table, self._window, self._attempt, stored, to_come)
        return self._target

    def commit(self, files: Sequence[DataFile], receipt: Receipt) -> None:
        """See `TableWriter`.

        Raises:
            ConcurrentCommit: since `open`, another attempt landed this window, or one that shares time with it.
            CommitStateUnknown: the window may have been replaced.
            TableUnavailable: catalog or store fail, or other commits were first again and again.
        """
        if self._replacement is None or self._table is None:
            raise SinkError(str(self._sink), "commit comes after open")
        paths = [f"{self._location}/{file.path}" for file in files]
        with self._outcome.committing():
            self._replacement.commit(self._table, paths, receipt.fingerprint)
        self._landed, self._outcome.may_be_landed = frozenset(file.path for file in files), False

    def discard(self) -> None:
        """See `TableWriter`. If a commit may have come through, its files stay.

        After a commit that did, the files of tasks that Spark repeated are removed.
        """
        if self._target is None or self._table is None or self._outcome.may_be_landed:
            return
        from airflow_provider_streams.lake.iceberg.files.table_files import storage_of  # noqa: PLC0415 - optional

        with suppress(Exception):
            storage = self._target.storage
            if storage.is_vended:  # the credentials of the attempt's begin may have expired
                storage = storage_of(self._table.loaded())
            remove_attempt(self._target, storage, self._landed)


def _table_of(sink: IcebergSink) -> IcebergTable:
    with importing("iceberg"):
        from airflow_provider_streams.lake.iceberg.table import IcebergTable  # noqa: PLC0415 - optional
    return IcebergTable(sink)
