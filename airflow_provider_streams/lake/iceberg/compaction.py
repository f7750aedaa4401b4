"""An Iceberg table whose files are replaced by others with the same rows: one snapshot for a few windows.

It is an `overwrite`: pyiceberg makes none that says `replace`. It bears no window: to attempts that land one, it is a
change by somebody else, which they judge as any other.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyiceberg.io.pyarrow import parquet_files_to_data_files, schema_to_pyarrow
from pyiceberg.table import FileScanTask, Table, Transaction

from airflow_provider_streams.errors import ForeignTable, LandedMeanwhile, TableUnavailable
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS
from airflow_provider_streams.lake.compaction import Rewritten, WindowContent, of_size
from airflow_provider_streams.lake.files import DataFile, FileTarget
from airflow_provider_streams.lake.iceberg.catalog import errors_of
from airflow_provider_streams.lake.iceberg.commit import Commit
from airflow_provider_streams.lake.iceberg.table import (
    IcebergTable,
    data_location,
    files_of,
    make_folder,
    mark_of,
    only_window,
    read_windows,
    storage_of,
)
from airflow_provider_streams.lake.iceberg.types import (
    as_stored,
    check_same_columns,
    stored_columns,
    window_constants,
)
from airflow_provider_streams.lake.storage import place_in
from airflow_provider_streams.model.landing import TableMark
from airflow_provider_streams.model.sink import IcebergSink
from airflow_provider_streams.model.window import Window, moment_label

COMPACTED = "streams.compacted"
"""What a snapshot says of itself: so many windows."""

_ROUNDS = 5
"""So often may others land windows that are just being replaced."""


class CompactableIceberg:
    """See `lake.compaction.CompactableTable`."""

    def __init__(self, sink: IcebergSink, mark: TableMark) -> None:
        self._sink, self._mark = sink, mark
        self._table = IcebergTable(sink)
        self._seen: Table | None = None

    def contents(self) -> Mapping[Window, WindowContent]:
        """See `CompactableTable`."""
        table = self._seen = check_mark(str(self._sink), self._table.loaded(), self._mark)
        with errors_of(self._sink):
            return _contents(table)

    def target(self, window: Window, file_bytes: int) -> FileTarget:
        """See `CompactableTable`."""
        table = self._seen or check_mark(str(self._sink), self._table.loaded(), self._mark)
        schema = table.schema()
        with errors_of(self._sink):
            arrow = schema_to_pyarrow(schema, include_field_ids=False)
            rows = pa.schema([one for one in arrow if one.name not in WINDOW_COLUMNS])
            columns = as_stored(stored_columns(str(self._sink), rows), schema)
            target = FileTarget(
                storage_of(table),
                f"window_start={moment_label(window.start)}",
                f"{uuid.uuid4().hex}-",
                columns,
                window_constants(window, schema),
            )
            make_folder(target.storage, target.folder)
        return of_size(target, file_bytes)

    def replace(self, rewritten: Sequence[Rewritten]) -> frozenset[Window]:
        """See `CompactableTable`."""
        for _ in range(_ROUNDS):
            swap = _Swap(str(self._sink), self._mark, rewritten)
            try:
                Commit(self._sink, uuid.uuid4().hex, swap.change, swap.judge).send(
                    self._table, {COMPACTED: str(len(rewritten))}
                )
            except LandedMeanwhile:
                continue  # the others may still be replaced
            return frozenset(one.window for one in swap.chosen)
        raise TableUnavailable(str(self._sink), f"others landed windows {_ROUNDS} times while they were compacted")


def check_mark(target: str, table: Table, mark: TableMark) -> Table:
    """A table that bears a mark.

    Raises:
        ForeignTable: it does not.
    """
    found = mark_of(table)
    if found != mark:
        raise ForeignTable(target, f"the table belongs to {found or 'nobody that it names'}, not to {mark}")
    return table


@dataclass
class _Swap:
    """Files that go in the place of others, where those are still the table's."""

    target: str
    mark: TableMark
    rewritten: Sequence[Rewritten]
    chosen: list[Rewritten] = field(default_factory=list)

    def change(self, table: Table, facts: dict[str, str]) -> Transaction | None:
        """In one snapshot; None: nothing is left to replace."""
        check_mark(self.target, table, self.mark)
        live = _live(table)
        self.chosen = [one for one in self.rewritten if one.old_paths <= live.keys()]
        if not self.chosen:
            return None
        for one in self.chosen:
            check_same_columns(self.target, one.target.schema, table.schema())
        location = data_location(table)
        new = [f"{location}/{file.path}" for one in self.chosen for file in one.files]
        made = table.transaction()
        with made.update_snapshot(snapshot_properties=facts).overwrite() as overwrite:
            for path in (path for one in self.chosen for path in one.old_paths):
                overwrite.delete_data_file(live[path].file)
            for file in parquet_files_to_data_files(table.io, table.metadata, iter(new)):
                overwrite.append_data_file(file)
        return made

    def judge(self, table: Table) -> None:
        """See that the old files are still the table's.

        Raises:
            LandedMeanwhile: some are not.
        """
        check_mark(self.target, table, self.mark)
        live = _live(table).keys()
        for one in self.chosen:
            if not one.old_paths <= live:
                raise LandedMeanwhile(self.target, one.window, one.window)
            check_same_columns(self.target, one.target.schema, table.schema())


def _contents(table: Table) -> dict[Window, WindowContent]:
    found: dict[Window, WindowContent] = {}
    for task in files_of(table):
        window = only_window(table, task)
        windows: Iterable[Window] = set(read_windows(table, [task])) if window is None else [window]
        why = _hindrance(table, task, window)
        file = DataFile(_path_in(table, task), task.file.record_count, task.file.file_size_in_bytes)
        for one in windows:
            known = found.get(one, WindowContent(()))
            found[one] = replace(known, files=(*known.files, file), hindrance=known.hindrance or why)
    return found


def _hindrance(table: Table, task: FileScanTask, window: Window | None) -> str | None:
    if task.delete_files:
        return "rows of a file are deleted by another one: the engine that did so compacts it"
    if window is None:
        return "a file has rows of other windows, too, or does not say so"
    if place_in(data_location(table), task.file.file_path) is None:
        return f"a file lies outside of {data_location(table)}"
    return None


def _live(table: Table) -> dict[str, FileScanTask]:
    """The files that may be replaced, by their path in the folder of its data."""
    return {_path_in(table, task): task for task in files_of(table) if not task.delete_files}


def _path_in(table: Table, task: FileScanTask) -> str:
    path = task.file.file_path
    return place_in(data_location(table), path) or path
