"""An Iceberg table of a reader: whose it is, which windows it holds, where its files go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.conversions import from_bytes
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.expressions import AlwaysTrue, BooleanExpression, parser
from pyiceberg.io.pyarrow import ArrowScan, pyarrow_to_schema
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask, Table, Transaction
from pyiceberg.table.metadata import SUPPORTED_TABLE_FORMAT_VERSION
from pyiceberg.transforms import DayTransform, HourTransform, IdentityTransform, Transform
from pyiceberg.types import TimestamptzType

from airflow_provider_streams.errors import CredentialsExpired, ForeignTable, SinkError, TableUnavailable
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS
from airflow_provider_streams.lake.folders import sign_around, sign_of_owner_around
from airflow_provider_streams.lake.iceberg import lent
from airflow_provider_streams.lake.iceberg.catalog import catalog_of, errors_of
from airflow_provider_streams.lake.iceberg.types import (
    addition,
    columns_of_table,
    differences,
    replace_columns,
)
from airflow_provider_streams.lake.owner import check_owner, mark_in, properties_of, unowned
from airflow_provider_streams.lake.storage import Storage, place_in
from airflow_provider_streams.model.landing import TableMark, TableState, TableTerms
from airflow_provider_streams.model.sink import IcebergSink, PartitionBy
from airflow_provider_streams.model.source import in_uri
from airflow_provider_streams.model.window import EPOCH, Window, utc_moment

_STORE_OPTIONS = ("s3.", "gcs.", "adls.", "hdfs.", "client.")
_TRANSFORMS: dict[PartitionBy, tuple[Transform[Any, Any], str]] = {
    "window": (IdentityTransform(), "window_start"),
    "hour": (HourTransform(), "window_start_hour"),
    "day": (DayTransform(), "window_start_day"),
}
_ROUNDS = 5
"""So often may others change the table between a look and an act of ours."""


class IcebergTable:
    """The table of a sink. Its calls raise `TableUnavailable` where nobody answers, and `SinkError` otherwise."""

    def __init__(self, sink: IcebergSink) -> None:
        self._sink = sink

    @cached_property
    def _catalog(self) -> Catalog:
        return catalog_of(self._sink)

    def load(self) -> Table | None:
        """As it is now; None: there is none."""
        with errors_of(self._sink):
            try:
                return self._reached(self._catalog.load_table(self._sink.table))
            except (NoSuchTableError, NoSuchNamespaceError):
                return None

    def loaded(self) -> Table:
        """As it is now.

        Raises:
            SinkError: there is none.
        """
        table = self.load()
        if table is None:
            raise SinkError(str(self._sink), "there is no such table, or it was deleted meanwhile")
        return table

    def state(self) -> TableState | None:
        """What it says of itself; None: there is no table, or an empty one of nobody.

        Raises:
            ForeignTable: it holds data, and does not say whose.
        """
        table = self.load()
        if table is None:
            return None
        with errors_of(self._sink):
            if (mark := mark_of(table)) is None:
                if files_of(table):
                    raise unowned(str(self._sink))
                return None
            self._check_window_columns(table)
            return TableState(mark, windows_of(table, files_of(table)), tells_empty=False)

    def _check_window_columns(self, table: Table) -> None:
        lost = [name for name in WINDOW_COLUMNS if name not in table.schema().column_names]
        if lost:
            raise SinkError(
                str(self._sink),
                f"somebody dropped or renamed its column {lost[0]}, which says of each row which window it is of: "
                "roll that change back, or land in another table",
            )

    def opened(self, columns: pa.Schema, terms: TableTerms) -> Table:
        """The table, made if there is none, which can hold rows of these columns, and may, by the terms.

        Raises:
            ForeignTable: it is somebody else's, or holds data and nobody knows whose.
            SinkError: it lacks columns, and shall get none; or has them otherwise.
        """
        for _ in range(_ROUNDS):
            table = self.load() or self._made(columns, terms.mark)
            self._check_format(table)
            self._check_folders(table)
            with errors_of(self._sink):
                try:
                    if not self._is_claimed(table, terms) or not self._is_fit(table, columns, terms):
                        continue
                except CommitFailedException:
                    continue  # others changed it: look again
            self._check_partitions(table)
            return table
        raise TableUnavailable(str(self._sink), f"others changed the table {_ROUNDS} times at once")

    def schema_to_come(self, table: Table, columns: pa.Schema, terms: TableTerms) -> Schema:
        """Its own, once rows of these columns are in the opened table."""
        with errors_of(self._sink):
            return change_for(self._sink, table, columns, terms).table_metadata.schema()

    def check_columns(self, columns: pa.Schema) -> None:
        """See that it can hold rows of these columns, if anything ever landed in it: it keeps those that it has.

        Raises:
            SinkError: as `opened`.
        """
        table = self.load()
        if table is not None and not never_landed(table):
            with errors_of(self._sink):
                self._lacking(table, columns)

    def check_rows(self, columns: pa.Schema, terms: TableTerms) -> None:
        """As `opened`, for who only looks, and knows that it may be the terms'.

        Raises:
            ForeignTable: its files would lie in another table's folder.
            SinkError: as `opened`.
        """
        table = self.load()
        if table is None:
            self._new_schema(columns)
            return
        self._check_format(table)
        self._check_folders(table)
        with errors_of(self._sink):
            self._to_get(table, columns, terms)
        self._check_partitions(table)

    def _new_schema(self, columns: pa.Schema) -> Schema:
        with errors_of(self._sink):
            return pyarrow_to_schema(columns_of_table(columns))

    def _made(self, columns: pa.Schema, mark: TableMark) -> Table:
        schema = self._new_schema(columns)
        spec = UNPARTITIONED_PARTITION_SPEC
        if self._sink.partition_by is not None:
            transform, name = _TRANSFORMS[self._sink.partition_by]
            start = schema.find_field(WINDOW_COLUMNS[0]).field_id
            spec = PartitionSpec(PartitionField(source_id=start, field_id=1000, transform=transform, name=name))
        namespace = tuple(self._sink.table.split("."))[:-1]
        with errors_of(self._sink):
            try:
                self._catalog.create_namespace_if_not_exists(namespace)
            except Exception:
                # another one made it meanwhile; catalogs say that in many ways
                if not self._catalog.namespace_exists(namespace):
                    raise
            try:
                made = self._catalog.create_table(
                    self._sink.table, schema, partition_spec=spec, properties={**properties_of(mark)}
                )
                return self._reached(made)
            except TableAlreadyExistsError:
                return self.loaded()

    def _reached(self, table: Table) -> Table:
        """A table of which it is known how its files are reached."""
        lent.check(str(self._sink), storage_of(table).options)
        return table

    def _is_claimed(self, table: Table, terms: TableTerms) -> bool:
        """Whether it may be ours. One without data and owner becomes so. False: look again."""
        found = mark_of(table)
        if found is not None or files_of(table):
            is_owned(str(self._sink), table, terms)
            return True
        with Watched(table, _look_again).transaction() as change:
            change.set_properties(properties_of(terms.mark))
            # of two who claim it at once, one fails: a change of properties alone is not compared
            with change.update_snapshot(snapshot_properties={"streams.claim": terms.mark.id}).fast_append():
                pass
        return False

    def _is_fit(self, table: Table, columns: pa.Schema, terms: TableTerms) -> bool:
        """Whether it has the columns, or will with its first window. It gets them, where it may. False: look again."""
        lacking = self._to_get(table, columns, terms)
        if lacking:
            with table.update_schema() as change:
                change.union_by_name(addition(columns))
        return not lacking

    def _to_get(self, table: Table, columns: pa.Schema, terms: TableTerms) -> list[str]:
        """What it must get of the columns before rows of them land; nothing, where its own give way to them."""
        return [] if columns_give_way(self._sink, table, columns, terms) else self._lacking(table, columns)

    def _lacking(self, table: Table, columns: pa.Schema) -> list[str]:
        """What it may get of the columns."""
        lacking, wrong = differences(table.schema(), columns)
        if wrong or (lacking and not self._sink.widen):
            hint = (
                ". It keeps its columns, whatever is landed anew: land in another table, or drop this one first"
                if wrong
                else "; widen=True adds what is lacking"
            )
            why = "; ".join([*wrong, *(f"it lacks {one}" for one in lacking)])
            raise SinkError(str(self._sink), f"the table cannot hold these rows: {why}{hint}")
        return lacking

    def _check_format(self, table: Table) -> None:
        """What is there can be written."""
        if table.format_version > SUPPORTED_TABLE_FORMAT_VERSION:
            raise SinkError(
                str(self._sink),
                f"the table is of Iceberg's format version {table.format_version}, and pyiceberg writes up to version "
                f"{SUPPORTED_TABLE_FORMAT_VERSION}: land by Spark (TableSink), or in a table of that version",
            )

    def _check_folders(self, table: Table) -> None:
        """Its files lie in nobody else's folder: who reads or cleans that one does so with them."""
        own, data = table.location().rstrip("/"), data_location(table)
        if place_in(own, data) is not None:
            if mark_of(table) is None or not table.snapshots():
                self._check_location(table)
            return
        system, root = storage_of(table).open()
        with errors_of(self._sink):
            around = sign_around(system, root)
        if around is not None:
            raise ForeignTable(
                str(self._sink),
                f"its write.data.path {data} lies inside of another table, which has {around}: name a folder beside it",
            )

    def _check_location(self, table: Table) -> None:
        """See that one in which nothing landed does not lie in the folder of a table that has its for itself.

        Keys may be for the table's own folder alone, above all those that catalogs lend: then nobody can see around it.
        """
        storage = storage_of(table)
        system, root = storage.open()
        try:
            around = sign_of_owner_around(system, root)
        except OSError as error:
            failure = storage.failure(f"the store fails: {error}", error)
            # stores say of lent keys that open nothing there what they say of those that are over
            if isinstance(failure, TableUnavailable) and not isinstance(failure, CredentialsExpired):
                raise failure from error
            return
        if around is not None:
            raise ForeignTable(
                str(self._sink),
                f"its location {table.location()} lies inside of another table, which has {around}: who reads or "
                "cleans that would do so with this, too. Drop this one, and land in a table beside that",
            )

    def _check_partitions(self, table: Table) -> None:
        """Each of our files must lie in one partition."""
        starts = {one.field_id for one in table.schema().fields if one.name in WINDOW_COLUMNS}
        for field in table.spec().fields:
            if field.source_id not in starts or not field.transform.preserves_order:
                raise SinkError(
                    str(self._sink),
                    f"the table is partitioned by {field.name}: a window's files lie in one partition only where that "
                    "is window_start, or its hour, day, month or year",
                )


class Watched(Table):
    """Judged again whenever another commit came first: pyiceberg refreshes a table before it tries once more."""

    def __init__(self, table: Table, judge: Callable[[Table], None]) -> None:
        super().__init__(
            table.name(), table.metadata, table.metadata_location, table.io, table.catalog, dict(table.config)
        )
        self._judge = judge

    def refresh(self) -> Table:
        """As it is now, if it is judged well."""
        super().refresh()
        self._judge(self)
        return self


def mark_of(table: Table) -> TableMark | None:
    """Whose it is; None: it does not say."""
    return mark_in(table.properties)


def is_owned(target: str, table: Table, terms: TableTerms) -> bool:
    """See `check_owner`."""
    return check_owner(target, mark_of(table), terms, "its earlier snapshots")


def _look_again(_table: Table) -> None:
    """Judge one that was nobody's, and may be somebody's by now."""
    raise CommitFailedException("another commit came first")


def never_landed(table: Table) -> bool:
    """Whether it was made for a reader, and nothing ever landed in it: one that was found empty has a snapshot."""
    return mark_of(table) is not None and not table.snapshots()


def columns_give_way(sink: IcebergSink, table: Table, columns: pa.Schema, terms: TableTerms) -> bool:
    """Whether a table has its columns from runs that failed before anything landed, and cannot hold these."""
    if terms.columns is not None or not never_landed(table):
        return False
    lacking, wrong = differences(table.schema(), columns)
    return bool(wrong or (lacking and not sink.widen))


def change_for(sink: IcebergSink, table: Table, columns: pa.Schema, terms: TableTerms) -> Transaction:
    """A change that is to put rows of these columns in. It has given the table these, where its own give way.

    It is to make a snapshot, too: so of all that were begun before anything landed, one comes first, and the catalog
    refuses the others, whichever columns they were written for.
    """
    change = table.transaction()
    if columns_give_way(sink, table, columns, terms):
        with change.update_schema(allow_incompatible_changes=True) as update:
            replace_columns(update, table.schema(), columns)
    return change


def overlapping(window: Window) -> BooleanExpression:
    """The rows of all windows that share time with one."""
    first, last = WINDOW_COLUMNS
    return parser.parse(f"{first} < '{window.end.isoformat()}' and {last} > '{window.start.isoformat()}'")


def files_of(table: Table, rows: BooleanExpression | None = None) -> list[FileScanTask]:
    """The files of a table that may have such rows."""
    tasks: Iterable[Any] = table.scan(row_filter=rows or AlwaysTrue()).plan_files()
    return list(tasks)


def windows_of(table: Table, files: Iterable[FileScanTask]) -> frozenset[Window]:
    """The windows that files hold rows of. One without rows leaves nothing in a table."""
    found: set[Window] = set()
    unclear = []
    for task in files:
        window = only_window(table, task)
        if window is None:
            unclear.append(task)  # compacted, or without statistics
        else:
            found.add(window)
    return frozenset(found.union(read_windows(table, unclear)))


def only_window(table: Table, task: FileScanTask) -> Window | None:
    """The one window of a file, if its statistics say so."""
    edges = []
    for name in WINDOW_COLUMNS:
        field = table.schema().find_field(name).field_id
        lower, upper = ((bounds or {}).get(field) for bounds in (task.file.lower_bounds, task.file.upper_bounds))
        if lower is None or lower != upper or (task.file.null_value_counts or {}).get(field):
            return None
        edges.append(EPOCH + timedelta(microseconds=int(from_bytes(TimestamptzType(), lower))))
    return None if task.delete_files else Window(edges[0], edges[1])


def read_windows(table: Table, files: list[FileScanTask]) -> Iterator[Window]:
    """The windows of the rows in files, which are read for it."""
    if not files:
        return
    columns = table.schema().select(*WINDOW_COLUMNS)
    scan = ArrowScan(table.metadata, table.io, columns, AlwaysTrue())
    for batch in scan.to_record_batches(files):
        edges = pa.Table.from_batches([batch]).group_by(list(WINDOW_COLUMNS)).aggregate([])
        for start, end in zip(*(edges.column(name).to_pylist() for name in WINDOW_COLUMNS), strict=True):
            if start is not None and end is not None:
                yield Window(utc_moment(start), utc_moment(end))


def storage_of(table: Table) -> Storage:
    """Where its data files are, and how they are reached: also with what its catalog lends."""
    return storage_at(table, data_location(table))


def storage_at(table: Table, location: str) -> Storage:
    """A folder, as the table's metadata write it, reached as its data files are."""
    url = urlsplit(location)
    path = in_uri(url.path)
    options = {name: str(value) for name, value in table.io.properties.items() if name.startswith(_STORE_OPTIONS)}
    return Storage(f"{url.scheme or 'file'}://{url.netloc}{path}", options, lent.is_lent(table.catalog, options))


def data_location(table: Table) -> str:
    """The folder of its data files, as the table's metadata write it."""
    return (table.properties.get("write.data.path") or f"{table.location().rstrip('/')}/data").rstrip("/")


def make_folder(storage: Storage, folder: str) -> None:
    """Only paths have folders."""
    if storage.root.startswith("file:"):
        (Path(unquote(urlsplit(storage.root).path)) / folder).mkdir(parents=True, exist_ok=True)
