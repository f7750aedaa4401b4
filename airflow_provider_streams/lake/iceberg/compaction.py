"""Replaces files of an Iceberg table by others with the same rows: one snapshot for a few windows.

The snapshot is an `overwrite`, for pyiceberg does not make a `replace`. It names no window, so attempts that land a
window judge it like any change by another engine.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.table import FileScanTask, Table, Transaction

from airflow_provider_streams.errors import ConcurrentCommit, TableUnavailable
from airflow_provider_streams.lake.columns import without_window
from airflow_provider_streams.lake.compaction import Rewritten, WindowContent, contents_of
from airflow_provider_streams.lake.data_files import DataFile, FileTarget
from airflow_provider_streams.lake.iceberg.catalogs.catalog_errors import errors_of
from airflow_provider_streams.lake.iceberg.column_types import as_stored, check_same_columns, stored_columns
from airflow_provider_streams.lake.iceberg.commit import Commit
from airflow_provider_streams.lake.iceberg.dropped_columns import check_partition_columns
from airflow_provider_streams.lake.iceberg.files.column_metrics import manifest_entries
from airflow_provider_streams.lake.iceberg.files.locations import data_location
from airflow_provider_streams.lake.iceberg.files.table_files import (
    files_of,
    target_in,
    windows_in,
)
from airflow_provider_streams.lake.iceberg.overwrite import overwrite_of
from airflow_provider_streams.lake.iceberg.table import IcebergTable, mark_of
from airflow_provider_streams.lake.storage import place_in
from airflow_provider_streams.lake.table_properties import COMPACTED, refuse_other_mark
from airflow_provider_streams.model.sinks.landing import TableMark
from airflow_provider_streams.model.sinks.sink import IcebergSink
from airflow_provider_streams.model.window.window import Window

_ROUNDS = 5
"""How often others may land windows that are just being replaced."""


class CompactableIceberg:
    """See `lake.compaction.CompactableTable`."""

    def __init__(self, sink: IcebergSink, mark: TableMark) -> None:
        self._sink, self._mark = sink, mark
        self._table = IcebergTable(sink)
        self._seen: Table | None = None

    def contents(self) -> Mapping[Window, WindowContent]:
        """See `CompactableTable`."""
        table = self._seen = self._table.loaded(self._mark)
        with errors_of(self._sink):
            check_partition_columns(str(self._sink), table)
            return contents_of(_files_by_window(table))

    def target(self, window: Window) -> FileTarget:
        """See `CompactableTable`."""
        table = self._seen or self._table.loaded(self._mark)
        schema = table.schema()
        with errors_of(self._sink):
            rows = without_window(schema_to_pyarrow(schema, include_field_ids=False))
            columns = as_stored(stored_columns(str(self._sink), rows), schema)
            return target_in(table, window, uuid.uuid4().hex, columns, schema)

    def replace(self, rewritten: Sequence[Rewritten]) -> frozenset[Window]:
        """See `CompactableTable`."""
        for _ in range(_ROUNDS):
            swap = _Swap(str(self._sink), self._mark, rewritten)
            try:
                Commit(self._sink, uuid.uuid4().hex, swap.change, swap.judge).send(
                    self._table, {COMPACTED: str(len(rewritten))}
                )
            except ConcurrentCommit:
                continue  # the others may still be replaced
            return frozenset(one.window for one in swap.chosen)
        raise TableUnavailable(str(self._sink), f"others landed windows {_ROUNDS} times while they were compacted")


@dataclass
class _Swap:
    """Puts files in the place of others, if those are still the table's."""

    target: str
    mark: TableMark
    rewritten: Sequence[Rewritten]
    chosen: list[Rewritten] = field(default_factory=list)

    def change(self, table: Table, facts: Mapping[str, str]) -> Transaction | None:
        """One snapshot for all; None: nothing is left to replace."""
        refuse_other_mark(self.target, mark_of(table), self.mark)
        live = _live(table)
        self.chosen = [one for one in self.rewritten if one.old.paths <= live.keys()]
        if not self.chosen:
            return None
        for one in self.chosen:
            check_same_columns(self.target, one.target.schema, table.schema())
        location = data_location(table)
        made = table.transaction()
        with overwrite_of(made, facts) as overwrite:
            for path in (path for one in self.chosen for path in one.old.paths):
                overwrite.delete_data_file(live[path].file)
            for one in self.chosen:
                new = [f"{location}/{file.path}" for file in one.files]
                for entry in manifest_entries(self.target, table.io, table.metadata, new, one.window):
                    overwrite.append_data_file(entry)
        return made

    def judge(self, table: Table) -> None:
        """Raise `ConcurrentCommit` if some of the old files are not the table's any more."""
        refuse_other_mark(self.target, mark_of(table), self.mark)
        live = _live(table).keys()
        for one in self.chosen:
            if not one.old.paths <= live:
                raise ConcurrentCommit(self.target, one.window, one.window)
            check_same_columns(self.target, one.target.schema, table.schema())


def _files_by_window(table: Table) -> Iterator[tuple[Window, DataFile, str | None]]:
    """Each file with each of its windows, and why it must stay."""
    for task in files_of(table):
        windows = windows_in(table, task)
        file = DataFile(_path_in(table, task), task.file.record_count, task.file.file_size_in_bytes)
        for one in windows:
            if one is not None:
                yield one, file, _hindrance(table, task, windows)


def _hindrance(table: Table, task: FileScanTask, windows: frozenset[Window | None]) -> str | None:
    if task.delete_files:
        return "rows of a file are deleted by another one: the engine that did so compacts it"
    if len(windows) > 1:
        return "a file also has rows of other windows, or of none"
    if place_in(data_location(table), task.file.file_path) is None:
        return f"a file is outside of {data_location(table)}"
    return None


def _live(table: Table) -> dict[str, FileScanTask]:
    """The files that may be replaced, by their path in the folder of the table's data."""
    return {_path_in(table, task): task for task in files_of(table) if not task.delete_files}


def _path_in(table: Table, task: FileScanTask) -> str:
    path = task.file.file_path
    return place_in(data_location(table), path) or path
