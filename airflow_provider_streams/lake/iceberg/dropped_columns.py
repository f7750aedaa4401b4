"""What columns that others dropped or renamed mean for an Iceberg table: it may be unfit for landings from then on."""

from __future__ import annotations

from collections.abc import Iterator

from pyiceberg.manifest import ManifestContent
from pyiceberg.table import Table

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS
from airflow_provider_streams.lake.iceberg.files.table_files import files_of, only_window, read_windows


def check_partition_columns(target: str, table: Table) -> None:
    """Check that the columns exist by which the table and its files are partitioned, or were.

    pyiceberg does not know the type of a partition field whose column was dropped. Neither pyiceberg nor Spark can read
    the manifests that it then writes: for new files, and for files of earlier specs when manifests are merged.

    Raises:
        SinkError: one does not.
    """
    schema = table.schema()
    lost = {
        number: fields
        for number, spec in table.specs().items()
        if (fields := [one for one in spec.fields if schema.find_column_name(one.source_id) is None])
    }
    if not lost:
        return
    if table.spec().spec_id in lost:
        field = lost[table.spec().spec_id][0]
        raise SinkError(
            target,
            f"its partition field {field.name} is {field.transform} of a column that was dropped, and "
            "pyiceberg cannot write manifests of such a field. Upgrade the table to format version 2 and remove the "
            "partition field, or land in another table",
        )
    for number in _specs_of_files(table):
        if number in lost:
            raise SinkError(
                target,
                f"it holds files that are partitioned by {lost[number][0].name}, and the column of that "
                "partition field was dropped: pyiceberg cannot write manifests of such files. Rewrite "
                "these files in the table's present partitions with another engine, or land in another table",
            )


def check_window_columns(target: str, table: Table) -> None:
    """Check that the rows that landed have their windows still: the window columns are the ones that they had.

    A column that was dropped and added again is another one, with nulls in earlier rows. These would be in no window,
    and the next landing of their windows would double them.

    Raises:
        SinkError: a window column was dropped or renamed, or such rows are there.
    """
    before: set[int] = set()
    now = table.schema()
    for name in WINDOW_COLUMNS:
        ids = {one.field_id for schema in table.schemas().values() for one in schema.fields if one.name == name}
        if ids and name not in now.column_names:
            raise missing_window_column(target, name)
        before |= {number for number in ids if now.find_field(name).field_id != number}
    for task in files_of(table) if before else ():
        is_early = not before.isdisjoint(task.file.lower_bounds or {}) and only_window(table, task) is None
        if is_early and None in read_windows(table, [task]):
            raise SinkError(
                target,
                f"its columns {' or '.join(WINDOW_COLUMNS)} were dropped and added again, and rows that landed before "
                "are in no window now: landing their windows again would double them. Delete the rows without window "
                "with your engine, and then land their windows again; or land in another table",
            )


def missing_window_column(target: str, name: str) -> SinkError:
    """The error for a table of ours without a window column."""
    return SinkError(
        target,
        f"it has no column {name}, which says of each row which window it is of: if the column was dropped or renamed, "
        "roll that change back; otherwise land in another table",
    )


def _specs_of_files(table: Table) -> Iterator[int]:
    """The partition specs of the table's data files."""
    snapshot = table.current_snapshot()
    for one in () if snapshot is None else snapshot.manifests(table.io):
        if one.content == ManifestContent.DATA and (one.has_added_files() or one.has_existing_files()):
            yield one.partition_spec_id
