"""What columns that others dropped or renamed mean for an Iceberg table: it may be unfit for landings from then on."""

from __future__ import annotations

from collections.abc import Iterator

from pyiceberg.manifest import ManifestContent
from pyiceberg.table import Table

from airflow_provider_streams.errors import SinkError


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
    if fields := lost.get(table.spec().spec_id):
        raise SinkError(
            target,
            f"its partition field {fields[0].name} is {fields[0].transform} of a column that was dropped, and "
            "pyiceberg cannot write manifests of such a field. Upgrade the table to format version 2 and remove the partition "
            "field, or land in another table",
        )
    for number in _specs_of_files(table):
        if fields := lost.get(number):
            raise SinkError(
                target,
                f"it holds files that are partitioned by {fields[0].name}, and the column of that partition field was "
                "dropped: pyiceberg cannot write manifests of such files. Rewrite these files in the table's present "
                "partitions with another engine, or land in another table",
            )


def _specs_of_files(table: Table) -> Iterator[int]:
    """The partition specs of the table's data files."""
    snapshot = table.current_snapshot()
    for one in () if snapshot is None else snapshot.manifests(table.io):
        if one.content == ManifestContent.DATA and (one.has_added_files() or one.has_existing_files()):
            yield one.partition_spec_id
