"""Windows of an Iceberg table by pyiceberg: each is replaced by one commit to the table's catalog.

    <table>/data/window_start=20261120T100000Z/<attempt>-*.parquet

The columns `window_start` and `window_end` say which window a row was read for. Files of failed attempts lie beside the
others, and no reader sees them. What a commit takes out stays in the table's earlier snapshots, until somebody expires
them. A window without rows leaves nothing in the table.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
import pyarrow.fs as pafs

from airflow_provider_streams.errors import CommitUnknown, MissingDependency, SinkError, WindowsOverlap
from airflow_provider_streams.lake.files import DataFile, FileTarget
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.model.landing import TableState, TableTerms
from airflow_provider_streams.model.receipt import Receipt
from airflow_provider_streams.model.sink import IcebergSink, Sink
from airflow_provider_streams.model.window import Window, moment_label

if TYPE_CHECKING:
    from airflow_provider_streams.lake.iceberg.commit import Replacement
    from airflow_provider_streams.lake.iceberg.table import IcebergTable


class IcebergWriter:
    """One attempt at one window of an Iceberg table; see `TableWriter`.

    What a reader landed under an earlier mark is set aside by the first commit after it was asked for: in that same
    commit its files are taken out of the table, which says from then on that it is the new mark's.
    """

    sink_type: ClassVar[type[Sink]] = IcebergSink

    def __init__(self, sink: IcebergSink, window: Window, terms: TableTerms) -> None:
        self._sink, self._window, self._terms = sink, window, terms
        self._attempt = uuid.uuid4().hex
        self._table: IcebergTable | None = None
        self._replacement: Replacement | None = None
        self._target: FileTarget | None = None
        self._location = ""
        self._landed: frozenset[str] = frozenset()
        self._may_be_landed = False

    @classmethod
    def look(cls, sink: IcebergSink) -> TableState | None:
        """See `TableWriter`."""
        return _table_of(sink).state()

    @classmethod
    def check_columns(cls, sink: IcebergSink, schema: pa.Schema) -> None:
        """See `ColumnKeepingWriter`."""
        from airflow_provider_streams.lake.iceberg.types import columns_of_rows  # noqa: PLC0415 - optional

        _table_of(sink).check_columns(columns_of_rows(str(sink), schema))

    @classmethod
    def check_rows(cls, sink: IcebergSink, schema: pa.Schema, terms: TableTerms | None) -> None:
        """See `ForeseeingWriter`."""
        table = _table_of(sink)
        from airflow_provider_streams.lake.iceberg.types import columns_of_rows  # noqa: PLC0415 - optional

        columns = columns_of_rows(str(sink), schema)
        if terms is not None:
            table.check_rows(columns, terms)

    def open(self, schema: pa.Schema) -> FileTarget:
        """See `TableWriter`."""
        from airflow_provider_streams.lake.iceberg import table as tables  # noqa: PLC0415 - optional
        from airflow_provider_streams.lake.iceberg import types  # noqa: PLC0415
        from airflow_provider_streams.lake.iceberg.commit import Replacement  # noqa: PLC0415

        self._table = _table_of(self._sink)
        columns = types.columns_of_rows(str(self._sink), schema)
        table = self._table.opened(columns, self._terms)
        known = frozenset(one.snapshot_id for one in table.snapshots())
        to_come = self._table.schema_to_come(table, columns, self._terms)
        stored = types.as_stored(columns, to_come)
        self._replacement = Replacement(self._sink, self._window, self._terms, self._attempt, known, stored)
        self._location = tables.data_location(table)
        self._target = FileTarget(
            tables.storage_of(table),
            f"window_start={moment_label(self._window.start)}",
            f"{self._attempt}-",
            stored,
            types.window_constants(self._window, to_come),
        )
        tables.make_folder(self._target.storage, self._target.folder)
        return self._target

    def commit(self, files: Sequence[DataFile], receipt: Receipt) -> None:
        """See `TableWriter`.

        Raises:
            LandedMeanwhile: another attempt landed the window, or one that shares time with it, since `open`.
            CommitUnknown: nobody can say whether the window was replaced.
            TableUnavailable: catalog or store fail, or other commits were first again and again.
        """
        if self._replacement is None or self._table is None:
            raise SinkError(str(self._sink), "commit comes after open")
        paths = [f"{self._location}/{file.path}" for file in files]
        self._may_be_landed = True
        try:
            self._replacement.commit(self._table, paths, receipt.fingerprint)
        except CommitUnknown:
            raise
        except (SinkError, WindowsOverlap):
            self._may_be_landed = False  # whatever else ends it, the commit may be under way
            raise
        self._landed, self._may_be_landed = frozenset(file.path for file in files), False

    def discard(self) -> None:
        """See `TableWriter`. Files of a commit of which nobody can say whether it came through stay.

        Of one that came through, what goes are the files of tasks that were tried again.
        """
        if self._target is None or self._may_be_landed:
            return
        with suppress(Exception):
            system, root = self._reached(self._target.storage).open()
            for found in system.get_file_info(pafs.FileSelector(f"{root}/{self._target.folder}", allow_not_found=True)):
                is_landed = f"{self._target.folder}/{found.base_name}" in self._landed
                if found.base_name.startswith(self._target.prefix) and not is_landed:
                    system.delete_file(found.path)

    def _reached(self, storage: Storage) -> Storage:
        """The table's storage as it is reached now: what was lent when the attempt began may be over."""
        from airflow_provider_streams.lake.iceberg.table import storage_of  # noqa: PLC0415 - optional

        if not storage.lent or self._table is None:
            return storage
        return storage_of(self._table.loaded())


def _table_of(sink: IcebergSink) -> IcebergTable:
    try:
        from airflow_provider_streams.lake.iceberg.table import IcebergTable  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingDependency("pyiceberg", "iceberg") from error
    return IcebergTable(sink)
