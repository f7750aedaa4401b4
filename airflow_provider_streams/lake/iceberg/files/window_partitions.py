"""Which partition of an Iceberg table a window's files are in: the window says so, and no statistics of the files.

`write.metadata.metrics.*` may switch statistics off, so a partition that is derived from them may be wrong.
"""

from __future__ import annotations

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import UnknownTransform, VoidTransform
from pyiceberg.typedef import Record
from pyiceberg.utils.datetime import datetime_to_micros

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS
from airflow_provider_streams.model.window.window import Window


def check_partitions(target: str, spec: PartitionSpec, schema: Schema) -> None:
    """Check that all rows of a window are in one partition. `SinkError`: they are not."""
    edges = [one.field_id for one in schema.fields if one.name in WINDOW_COLUMNS]
    for field in partition_fields(spec):
        if field.source_id not in edges or isinstance(field.transform, UnknownTransform):
            column = schema.find_column_name(field.source_id)
            raise SinkError(
                target,
                f"the table is partitioned by {field.name}, which is {field.transform} of {column}: a window's files "
                "must be in one partition. Partition it by window_start or window_end, or their hour, day, month, year "
                "or bucket",
            )


def partition_fields(spec: PartitionSpec) -> list[PartitionField]:
    """The fields of a spec without those that were removed, which tables of format version 1 keep as `void`."""
    return [one for one in spec.fields if not isinstance(one.transform, VoidTransform)]


def partition_of(target: str, window: Window | None, spec: PartitionSpec, schema: Schema) -> Record:
    """The partition of a window's files; None: the rows are of no window, and the table has no partitions.

    Raises:
        SinkError: rows of one window may be in several partitions.
    """
    check_partitions(target, spec, schema)
    edges = {} if window is None else dict(zip(WINDOW_COLUMNS, (window.start, window.end), strict=True))
    micros = {schema.find_field(name).field_id: datetime_to_micros(edge) for name, edge in edges.items()}
    return Record(*[_value(field, micros, schema) for field in spec.fields])


def _value(field: PartitionField, micros: dict[int, int], schema: Schema) -> object:
    if isinstance(field.transform, VoidTransform):
        return None
    return field.transform.transform(schema.find_field(field.source_id).field_type)(micros[field.source_id])
