"""An Iceberg table of a reader: whose it is, which windows it holds, and whether rows may go into it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.io.pyarrow import pyarrow_to_schema
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import SUPPORTED_TABLE_FORMAT_VERSION
from pyiceberg.transforms import DayTransform, HourTransform, IdentityTransform, Transform

from airflow_provider_streams.errors import CredentialsExpired, SinkError, TableUnavailable
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS
from airflow_provider_streams.lake.folder_overlap import check_outside, sign_around, sign_of_owner_around
from airflow_provider_streams.lake.iceberg.catalogs.answered_properties import check_loads_no_code
from airflow_provider_streams.lake.iceberg.catalogs.catalog import catalog_of, catalog_to_change, is_absent
from airflow_provider_streams.lake.iceberg.catalogs.catalog_errors import errors_of
from airflow_provider_streams.lake.iceberg.column_types import (
    addition,
    as_wide,
    columns_of_table,
    columns_to_add,
    replace_columns,
)
from airflow_provider_streams.lake.iceberg.dropped_columns import (
    check_partition_columns,
    check_window_columns,
    missing_window_column,
)
from airflow_provider_streams.lake.iceberg.files.file_io import check_options
from airflow_provider_streams.lake.iceberg.files.locations import check_places, data_location
from airflow_provider_streams.lake.iceberg.files.metadata_io import MetadataIO
from airflow_provider_streams.lake.iceberg.files.table_files import (
    files_of,
    storage_of,
    storage_to_come,
    windows_of,
)
from airflow_provider_streams.lake.iceberg.files.window_files import files_sharing_time
from airflow_provider_streams.lake.iceberg.files.window_partitions import check_partitions
from airflow_provider_streams.lake.storage import Storage, place_in
from airflow_provider_streams.lake.table_properties import (
    CLAIM,
    check_owner,
    mark_in,
    properties_of,
    refuse_other_mark,
    unowned,
)
from airflow_provider_streams.model.sinks.landing import TableMark, TableState, TableTerms
from airflow_provider_streams.model.sinks.sink import IcebergSink, PartitionBy
from airflow_provider_streams.model.window.window import Window

_TRANSFORMS: dict[PartitionBy, tuple[Transform[Any, Any], str]] = {
    "window": (IdentityTransform(), "window_start"),
    "hour": (HourTransform(), "window_start_hour"),
    "day": (DayTransform(), "window_start_day"),
}
_ROUNDS = 5
"""How often others may change the table between our look and our act."""


class IcebergTable:
    """The table of a sink. Its calls raise `TableUnavailable` if catalog or store do not answer, else `SinkError`."""

    def __init__(self, sink: IcebergSink) -> None:
        self._sink = sink

    @cached_property
    def _catalog(self) -> Catalog:
        return catalog_of(self._sink, makes_tables=False)

    def lacks_catalog(self) -> bool:
        """Whether the catalog is not there yet, so that the first landing makes it."""
        with errors_of(self._sink):
            return is_absent(self._catalog)

    def storage(self) -> Storage | None:
        """Where its data files are, or would be; None: the catalog says so only when it makes the table."""
        table = self.load()
        with errors_of(self._sink):
            return storage_to_come(self._catalog, self._sink.table) if table is None else storage_of(table)

    def load(self) -> Table | None:
        """The table as it is now; None: there is none."""
        with errors_of(self._sink):
            try:
                return self._reached(self._catalog.load_table(self._sink.table))
            except (NoSuchTableError, NoSuchNamespaceError):
                return None

    def loaded(self, mark: TableMark | None = None) -> Table:
        """The table as it is now, with the mark if one is given; `SinkError` or `TableOwnedByOther` otherwise."""
        table = self.load()
        if table is None:
            raise SinkError(str(self._sink), "there is no such table, or it was deleted meanwhile")
        if mark is not None:
            refuse_other_mark(str(self._sink), mark_of(table), mark)
        return table

    def state(self, near: Window | None = None) -> TableState | None:
        """Its owner and windows, or those that share time with one; None: it has no owner and no data.

        Raises:
            TableOwnedByOther: only the owner is missing.
        """
        table = self.load()
        if table is None:
            return None
        with errors_of(self._sink):
            if (mark := mark_of(table)) is None:
                if files_of(table):
                    raise unowned(str(self._sink))
                return None
            if lost := [name for name in WINDOW_COLUMNS if name not in table.schema().column_names]:
                raise missing_window_column(str(self._sink), lost[0])
            check_window_columns(str(self._sink), table)
            held = windows_of(table, files_of(table)) if near is None else files_sharing_time(table, near).windows()
            return TableState(mark, frozenset(held), tells_empty=False)

    def opened(self, columns: pa.Schema, terms: TableTerms) -> Table:
        """The table, made if there is none. It can hold rows of these columns, and the terms allow it.

        A table that is refused stays as it was.

        Raises:
            TableOwnedByOther: it is another reader's, or holds data and names no owner.
            SinkError: it lacks columns and must not get any, or has them in other types.
        """
        for _ in range(_ROUNDS):
            table = self.load() or self._made(columns, terms.mark)
            self.check_place(table)
            with errors_of(self._sink), suppress(CommitFailedException):  # others changed it: look again
                is_unclaimed = self.is_unclaimed(table, terms)
                self._check_columns(table, terms)
                lacking = self._to_get(table, columns, terms)
                if is_unclaimed:
                    self.claim(table, terms.mark)
                elif len(lacking):
                    self._add_columns(table, columns)
                else:
                    return table
        raise TableUnavailable(str(self._sink), f"others changed the table {_ROUNDS} times at once")

    def schema_to_come(self, table: Table, columns: pa.Schema, terms: TableTerms) -> Schema:
        """The opened table's schema once rows of these columns are in it."""
        with errors_of(self._sink):
            return change_for(self._sink, table, columns, terms).table_metadata.schema()

    def check_rows(self, columns: pa.Schema, terms: TableTerms) -> None:
        """Read-only version of `opened`, for a table that is the terms' or would be; raises the same."""
        table = self.load()
        if table is None:
            self._new_schema(columns)
            return
        self.check_place(table)
        with errors_of(self._sink):
            self._check_columns(table, terms)
            self._to_get(table, columns, terms)

    def _check_columns(self, table: Table, terms: TableTerms) -> None:
        """Check that partitions and window columns are fit for windows; not the columns, if all rows are set aside."""
        check_partitions(str(self._sink), table.spec(), table.schema())
        if mark_of(table) == terms.mark:
            check_window_columns(str(self._sink), table)

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
        return self.made(schema, properties_of(mark), spec)

    def made(
        self,
        schema: Schema | pa.Schema,
        properties: Mapping[str, str],
        spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
    ) -> Table:
        """The table, made with its namespace; the one of another run that made it meanwhile."""
        namespace = tuple(self._sink.table.split("."))[:-1]
        with errors_of(self._sink):
            catalog = catalog_to_change(self._sink, self._catalog)
            storage_to_come(catalog, self._sink.table)  # where it cannot be, no namespace is made either
            try:
                catalog.create_namespace_if_not_exists(namespace)
            except Exception:
                # another run made it meanwhile; catalogs say that in many ways
                if not catalog.namespace_exists(namespace):
                    raise
            try:
                return self._reached(
                    catalog.create_table(self._sink.table, schema, partition_spec=spec, properties={**properties})
                )
            except TableAlreadyExistsError:
                return self.loaded()

    def _reached(self, table: Table) -> Table:
        check_loads_no_code(str(self._sink), table.properties)
        check_places(str(self._sink), table)
        check_options(str(self._sink), storage_of(table).options)
        return table

    def is_unclaimed(self, table: Table, terms: TableTerms) -> bool:
        """Whether it has neither data nor owner, so it becomes the reader's if its rows fit. See `check_owner`."""
        if mark_of(table) is None and not files_of(table):
            return True
        is_owned(str(self._sink), table, terms)
        return False

    def claim(self, table: Table, mark: TableMark) -> None:
        """Write the mark into an unclaimed table. `CommitFailedException`: others changed it, so look again."""
        with Watched(table, _look_again).transaction() as change:
            change.set_properties(properties_of(mark))
            # the snapshot makes one of two concurrent claims fail: catalogs do not compare properties alone
            with change.update_snapshot(snapshot_properties={CLAIM: mark.id}).fast_append():
                pass

    def _add_columns(self, table: Table, columns: pa.Schema) -> None:
        with table.update_schema() as change:
            change.union_by_name(addition(as_wide(columns, table.schema())))

    def _to_get(self, table: Table, columns: pa.Schema, terms: TableTerms) -> pa.Schema:
        """What it must get before rows of these columns land; nothing, if its own columns give way to them."""
        if may_replace_columns(self._sink, table, columns, terms):
            return pa.schema([])
        return columns_to_add(str(self._sink), table.schema(), columns, widen=self._sink.widen)

    def check_place(self, table: Table) -> None:
        """Check that pyiceberg can write the table, and that its files are in no other table's folder.

        Raises:
            SinkError: it cannot.
            TableOwnedByOther: they are.
        """
        self._check_format(table)
        with errors_of(self._sink):
            check_partition_columns(str(self._sink), table)
        self._check_folders(table)

    def _check_format(self, table: Table) -> None:
        if table.format_version > SUPPORTED_TABLE_FORMAT_VERSION:
            raise SinkError(
                str(self._sink),
                f"the table is of Iceberg's format version {table.format_version}, and pyiceberg writes up to version "
                f"{SUPPORTED_TABLE_FORMAT_VERSION}: land by Spark (TableSink), or in a table of that version",
            )

    def _check_folders(self, table: Table) -> None:
        """Check that its files are in no other table's folder."""
        data = data_location(table)
        if place_in(table.location().rstrip("/"), data) is not None:
            if mark_of(table) is None or not table.snapshots():
                self._check_location(table)
            return
        system, root = storage_of(table).open()
        with errors_of(self._sink):
            around = sign_around(system, root)
        check_outside(str(self._sink), around, f"its write.data.path {data}")

    def _check_location(self, table: Table) -> None:
        """Check that a table in which nothing landed is not in the folder of a table that owns its whole folder.

        Keys, above all vended ones, may open the table's own folder alone. Then nothing around it can be seen.
        """
        storage = storage_of(table)
        system, root = storage.open()
        try:
            around = sign_of_owner_around(system, root)
        except OSError as error:
            failure = storage.failure(f"the store fails: {error}", error)
            # stores answer vended keys that do not open a folder as they answer expired ones
            if isinstance(failure, TableUnavailable) and not isinstance(failure, CredentialsExpired):
                raise failure from error
            return
        check_outside(str(self._sink), around, f"its location {table.location()}")


class Watched(Table):
    """A table that is judged again if another commit came first: pyiceberg refreshes it before it tries once more."""

    def __init__(self, table: Table, judge: Callable[[Table], object]) -> None:
        io = MetadataIO(table.io)
        super().__init__(table.name(), table.metadata, table.metadata_location, io, table.catalog, dict(table.config))
        self._judge = judge

    def refresh(self) -> Table:
        """The table as it is now; raises what the judge raises."""
        read = self.io
        super().refresh()
        self.io = MetadataIO(self.io, read.kept if isinstance(read, MetadataIO) else None)
        self._judge(self)
        return self


def mark_of(table: Table) -> TableMark | None:
    """Whose it is; None: it names no owner."""
    return mark_in(table.properties)


def is_owned(target: str, table: Table, terms: TableTerms) -> bool:
    """See `check_owner`."""
    return check_owner(target, mark_of(table), terms, "its earlier snapshots")


def _look_again(_table: Table) -> None:
    """Let a claim fail: the table may have another owner by now."""
    raise CommitFailedException("another commit came first")


def may_replace_columns(sink: IcebergSink, table: Table, columns: pa.Schema, terms: TableTerms) -> bool:
    """Whether a table has its columns from runs that failed before anything landed, and cannot hold these."""
    has_landed = mark_of(table) is None or table.snapshots()  # an empty table that we found has a snapshot
    if terms.columns is not None or has_landed:
        return False
    try:
        columns_to_add(str(sink), table.schema(), columns, widen=sink.widen)
    except SinkError:
        return True
    return False


def change_for(sink: IcebergSink, table: Table, columns: pa.Schema, terms: TableTerms) -> Transaction:
    """A transaction that is to add rows of these columns. If the table's own columns give way, it replaces them.

    The caller must also make a snapshot in it. So of all changes that began before anything landed, one comes first,
    and the catalog refuses the others, whatever their columns.
    """
    change = table.transaction()
    if may_replace_columns(sink, table, columns, terms):
        with change.update_schema(allow_incompatible_changes=True) as update:
            replace_columns(update, table.schema(), columns)
    return change
