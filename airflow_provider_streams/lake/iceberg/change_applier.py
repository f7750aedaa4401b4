"""Changes applied to an Iceberg table by pyiceberg: copy-on-write of the files whose keys change, in one commit.

    <table>/data/<attempt>-*.parquet     rows, each file sorted by key, of a range of the first key
    <table>/data/_markers/               see `lake.changes.marker_files`

The commit removes exactly the files that were written again, and adds the new ones. Its snapshot names the list of
markers, and bears the window's mark. Files that other engines rewrote are read like ours.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa
from pyiceberg.conversions import from_bytes
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan, schema_to_pyarrow
from pyiceberg.table import FileScanTask, Table, Transaction
from pyiceberg.types import PrimitiveType, UUIDType

from airflow_provider_streams.errors import ConcurrentCommit, SinkError, TableUnavailable
from airflow_provider_streams.lake.changes.change_applier import AttemptFiles, ChangeApplier
from airflow_provider_streams.lake.changes.copy_on_write import KeyRange, Merging, disjoint
from airflow_provider_streams.lake.changes.landed_changes import (
    ChangeWindow,
    columns_and_start,
    columns_of,
    is_known,
    new_table,
    rules_json,
    start_type,
    without_unknown,
    without_versions,
)
from airflow_provider_streams.lake.changes.latest_and_history import Application, application_for, as_schema
from airflow_provider_streams.lake.changes.marker_files import MarkerFiles, MarkerList, read_list
from airflow_provider_streams.lake.changes.sortable_text import sortable
from airflow_provider_streams.lake.columns import columns_to_add
from airflow_provider_streams.lake.data_files import FileTarget, write_files
from airflow_provider_streams.lake.iceberg.catalogs.catalog_errors import errors_of
from airflow_provider_streams.lake.iceberg.column_types import as_stored, begin_columns, columns_of_rows, stored_columns
from airflow_provider_streams.lake.iceberg.commit import Commit, merging, newest_id
from airflow_provider_streams.lake.iceberg.files.column_metrics import manifest_entries
from airflow_provider_streams.lake.iceberg.files.locations import data_location
from airflow_provider_streams.lake.iceberg.files.table_files import files_of, storage_of
from airflow_provider_streams.lake.iceberg.files.window_partitions import partition_fields
from airflow_provider_streams.lake.iceberg.overwrite import overwrite_of
from airflow_provider_streams.lake.iceberg.table import IcebergTable, is_owned, mark_of
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.lake.table_properties import commit_facts, properties_of
from airflow_provider_streams.model.sinks.sink import IcebergSink

MARKERS: Final = "streams.markers"
"""In the facts of a snapshot, and a property of the table: the number of its list of markers."""
_ROUNDS: Final = 60
"""How often other commits may come first."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class IcebergChangeApplier(ChangeApplier[IcebergSink]):
    """See `ChangeApplier`."""

    @property
    def table_name(self) -> str:
        """See `ChangeApplier`."""
        return str(self.sink)

    def open(self, columns: pa.Schema) -> Storage:
        """See `ChangeApplier`."""
        schema = columns_of_rows(str(self.sink), new_table(columns, self.rules))
        return storage_of(self._claimed(IcebergTable(self.sink), schema, lambda now: self.check(now, columns)))

    def check(self, table: Table, columns: pa.Schema) -> None:
        """Check that rows of these columns may be applied to a table, which keeps its columns.

        Raises:
            SinkError: they may not.
        """
        self._check_partitions(table)
        if is_known(columns, self.rules):
            own = columns_of(columns.empty_table(), self.rules)
            self._to_get(table, columns_of_rows(str(self.sink), own))

    def _check_partitions(self, table: Table) -> None:
        if fields := partition_fields(table.spec()):
            names = ", ".join(one.name for one in fields)
            raise SinkError(
                str(self.sink),
                f"changes cannot be applied to the table: it is partitioned by {names}. Apply them to another table",
            )

    def apply_in_order(self, window: ChangeWindow, changes: Sequence[pa.Table]) -> None:
        """See `ChangeApplier`."""
        columns, start = columns_and_start(changes, self.rules)
        columns = columns_of_rows(str(self.sink), columns)
        table = IcebergTable(self.sink)
        first = without_unknown(application_for(self.rules, columns, start).row_schema)

        def check(now: Table) -> None:
            self._check_partitions(now)
            self._to_get(now, columns)

        for _ in range(_ROUNDS):
            now = self._claimed(table, first, check)
            if self._is_begun(now, first) or self._is_grown(now, columns):
                continue
            own_start = start_type(self._held(now), start)
            application = application_for(self.rules, self._columns(now), own_start)
            try:
                _Attempt(self, window, now, application).run(table, changes)
            except ConcurrentCommit:
                _log.info("%s: another commit came first, merging %s again", self.sink, window.window)
                continue
            return
        raise TableUnavailable(str(self.sink), f"other commits were first {_ROUNDS} times")

    def _claimed(self, table: IcebergTable, columns: pa.Schema, check: Callable[[Table], None]) -> Table:
        """The table, made if there is none, which is ours or may be set aside.

        What `check` refuses stays as it was. It is not asked about a table that may be set aside.
        """
        for _ in range(_ROUNDS):
            now = table.load() or table.made(columns, properties_of(self.terms.mark))
            table.check_place(now)
            with errors_of(self.sink), suppress(CommitFailedException):
                is_unclaimed = table.is_unclaimed(now, self.terms)
                if mark_of(now) in (None, self.terms.mark):
                    check(now)
                if not is_unclaimed:
                    return now
                table.claim(now, self.terms.mark)
        raise TableUnavailable(str(self.sink), f"others changed the table {_ROUNDS} times at once")

    def _columns(self, table: Table) -> pa.Schema:
        """The columns that the table has now, without versions."""
        return without_versions(self._held(table), self.rules)

    def _held(self, table: Table) -> pa.Schema:
        return stored_columns(str(self.sink), schema_to_pyarrow(table.schema(), include_field_ids=False))

    def _to_get(self, table: Table, columns: pa.Schema) -> pa.Schema:
        is_bare = not len(self._columns(table))
        return columns_to_add(str(self.sink), self._columns(table), columns, widen=self.sink.widen or is_bare)

    def _is_begun(self, table: Table, columns: pa.Schema) -> bool:
        """Give a table that was made before the columns of changes were known all of them. True: look again."""
        if len(self._columns(table)) or not len(without_versions(columns, self.rules)):
            return False
        with (
            errors_of(self.sink),
            suppress(CommitFailedException),
            table.update_schema(allow_incompatible_changes=True) as change,
        ):
            begin_columns(change, table.schema(), columns)
        return True

    def _is_grown(self, table: Table, columns: pa.Schema) -> bool:
        """Give the table the columns that it lacks, if it may get them. True: it has changed, so look again."""
        needed = self._to_get(table, columns)
        if not len(needed):
            return False
        with errors_of(self.sink), suppress(CommitFailedException), table.update_schema() as change:
            change.union_by_name(needed)
        return True


@dataclass
class _Attempt:
    """One merge on exactly one state of a table."""

    applier: IcebergChangeApplier
    window: ChangeWindow
    table: Table
    application: Application[Any]
    name: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __post_init__(self) -> None:
        self._storage = storage_of(self.table)
        self._is_ours = mark_of(self.table) == self.applier.terms.mark
        held = list_of(self.table) if self._is_ours else MarkerList(self.applier.terms.mark.id)
        self._markers = MarkerFiles(self._storage, held.with_rules(rules_json(self.applier.rules)))
        self._rows = as_stored(without_unknown(self.application.row_schema), self.table.schema())
        self._target = FileTarget(self._storage, "", f"{self.name}-", self._rows)
        self._storage.make_folder("")

    def run(self, table: IcebergTable, changes: Sequence[pa.Table]) -> None:
        """Merge and commit. `ConcurrentCommit`: the table has changed, and nothing was committed."""
        applier = self.applier
        becomes = self.applier.becomes(self._markers.list, self.window, changes)
        state = self.application.state(changes)
        ranges = self._ranges(applier.rules.keys[0]) if self._is_ours and state is not None else []
        merging = Merging(self.application, ranges, self._read, self._markers, applier.range_bytes)
        # rows that were applied under an earlier mark go with the commit
        old: list[FileScanTask] = [] if self._is_ours else self._files()
        new: list[str] = []
        with AttemptFiles(target=self._target) as files:
            for one in merging.rewrites(state) if state is not None else ():
                old += one.old
                for chunk in one.chunks:
                    written = write_files(self._target, chunk.to_batches())
                    new += [f"{data_location(self.table)}/{file.path}" for file in written if file.rows]
            markers = merging.list_of_markers(self.window.holes, self.window.resent_from)
            number = self._markers.write_list(replace(becomes, files=markers.files))
            with files.committing():
                self._commit(table, old, new, number)

    def _commit(self, table: IcebergTable, old: Sequence[FileScanTask], new: Sequence[str], markers: int) -> None:
        sink, window = self.applier.sink, self.window

        def judge(now: Table) -> None:
            is_owned(str(sink), now, self.applier.terms)
            if newest_id(now) != newest_id(self.table) or now.schema() != self.table.schema():
                raise ConcurrentCommit(str(sink), window.window, window.window)

        def change(now: Table, facts: Mapping[str, str]) -> Transaction:
            judge(now)
            made = now.transaction()
            made.set_properties({MARKERS: str(markers), **self._properties(), **merging(made)})
            facts = {**facts, MARKERS: str(markers)}
            if old:
                with overwrite_of(made, facts) as removal:
                    for task in old:
                        removal.delete_data_file(task.file)
            with made.update_snapshot(snapshot_properties=facts).merge_append() as append:
                for file in manifest_entries(str(sink), now.io, made.table_metadata, new, None):
                    append.append_data_file(file)
            return made

        facts = commit_facts(window.window, window.fingerprint, self.name)
        Commit(sink, self.name, change, judge).send(table, facts)

    def _properties(self) -> dict[str, str]:
        """What the table's properties must say from this commit on."""
        keys = self.applier.rules.keys
        mark = {} if self._is_ours else properties_of(self.applier.terms.mark)
        # cut bounds of texts would make ranges overlap
        bounds = {f"write.metadata.metrics.column.{key}": "full" for key in keys[:1]}
        return {**mark, **bounds, "write.parquet.compression-codec": "zstd"}

    def _ranges(self, key: str) -> list[KeyRange[FileScanTask]]:
        with errors_of(self.applier.sink):
            return disjoint((*self._bounds(task, key), task) for task in self._files())

    def _files(self) -> list[FileScanTask]:
        with errors_of(self.applier.sink):
            return files_of(self.table)

    def _bounds(self, task: FileScanTask, key: str) -> tuple[str | None, str | None]:
        """The least and the greatest first key of a file; None: not known."""
        column = self.table.schema().find_field(key)
        kind = column.field_type
        raw = [(one or {}).get(column.field_id) for one in (task.file.lower_bounds, task.file.upper_bounds)]
        if None in raw or not isinstance(kind, PrimitiveType) or isinstance(kind, UUIDType):
            return None, None
        values = [from_bytes(kind, bytes(one or b"")) for one in raw]
        texts = sortable(key, pa.chunked_array([_values(values, self._rows.field(key).type)])).to_pylist()
        return texts[0], texts[1]

    def _read(self, files: Sequence[FileScanTask]) -> pa.Table:
        with errors_of(self.applier.sink):
            schema = self.table.schema().select(*self._rows.names)
            scan = ArrowScan(self.table.metadata, self.table.io, schema, AlwaysTrue())
            return as_schema(scan.to_table(files), self.application.row_schema)


def list_of(table: Table) -> MarkerList:
    """The list of markers that belongs to the table's rows; an empty one if it names none of its mark."""
    mark = mark_of(table)
    return read_list(storage_of(table), number_of(table), mark.id if mark is not None else "")


def number_of(table: Table) -> int | None:
    """The number of the list of markers that belongs to the table's rows; None: there is none.

    The newest snapshot that names a list counts: a table that was rolled back has the markers of its rows again. The
    table's property counts if no snapshot names one, because they expired.
    """
    at = table.current_snapshot()
    if at is None:
        return None
    while at is not None:
        named = at.summary.additional_properties.get(MARKERS) if at.summary is not None else None
        if named is not None:
            return int(named)
        at = None if at.parent_snapshot_id is None else table.snapshot_by_id(at.parent_snapshot_id)
    kept = table.properties.get(MARKERS)
    return None if kept is None else int(kept)


def _values(values: Sequence[Any], type_: pa.DataType) -> pa.Array[Any]:
    """Bounds in the type of the column: dates and times are numbers there."""
    if pa.types.is_timestamp(type_):
        return pa.array(values, pa.int64()).cast(type_)
    if pa.types.is_date(type_):
        return pa.array(values, pa.int32()).cast(type_)
    return pa.array(values, type_)
