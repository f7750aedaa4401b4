"""Files of one window, read batch by batch and written as fewer ones: in the columns that the table has now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_provider_streams.errors import RowsDiffer
from airflow_provider_streams.lake.files import DataFile, FileTarget, WindowFiles

_BATCH_ROWS = 16_384
_READ_AHEAD_BYTES = 1024 * 1024
_FIELD_ID = b"PARQUET:field_id"


class Unfit(Exception):
    """Files whose values would not all be in the new ones: they stay as they are."""


def rewrite(files: Sequence[DataFile], target: FileTarget) -> list[DataFile]:
    """New files with the rows of others, which stay where they are. One batch of rows, and two row groups, are held.

    Args:
        files: of one window, below the root of the target's storage.
        target: where the new ones go, and how they look. A window without rows gets a file without rows.

    Raises:
        Unfit: the files have columns that the table has not any more, or calls otherwise.
        RowsDiffer: they have not the rows that the table says.
        SinkError: they cannot be read, or not written. In any case, nothing new is left.
    """
    made = WindowFiles(target)
    try:
        made.write(pa.RecordBatch.from_pylist([], target.schema))  # a window without rows has a file
        for file in files:
            for batch in _rows_of(file, target):
                made.write(batch)
        written = made.finish()
    finally:
        made.close()
    told = sum(file.rows for file in files)
    if sum(file.rows for file in written) != told:
        remove(written, target)
        raise RowsDiffer(target.storage.root, f"files of {told} rows, as the table says, do not have so many")
    return written


def remove(files: Sequence[DataFile], target: FileTarget) -> None:
    """Files that no reader sees; never raises: what stays is found as left over."""
    with suppress(Exception):
        system, root = target.storage.open()
        for file in files:
            with suppress(OSError):
                system.delete_file(f"{root}/{file.path}")


def _rows_of(file: DataFile, target: FileTarget) -> Iterator[pa.RecordBatch]:
    system, root = target.storage.open()
    try:
        with system.open_input_file(f"{root}/{file.path}") as stored:
            parquet = pq.ParquetFile(stored, buffer_size=_READ_AHEAD_BYTES)
            _check_columns(parquet.schema_arrow, target)
            names = [name for name in target.schema.names if name in parquet.schema_arrow.names]
            for batch in parquet.iter_batches(batch_size=_BATCH_ROWS, columns=names):
                yield _as_now(batch, target.schema)
    except FileNotFoundError as error:
        raise RowsDiffer(target.storage.root, f"{file.path}, which is one of its files, is not there") from error
    except (OSError, pa.ArrowException) as error:
        raise target.storage.failure(f"{file.path} cannot be read: {error}", error) from error


def _as_now(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """With the columns and types that a table has by now; what it got since is null."""
    columns: list[Any] = [
        _cast(batch.column(one.name), one.type) if one.name in batch.schema.names else pa.nulls(len(batch), one.type)
        for one in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: Any, wanted: pa.DataType) -> Any:
    return column if column.type == wanted else pc.cast(column, wanted)


def _check_columns(file: pa.Schema, target: FileTarget) -> None:
    """See that every value of a file has its place: nothing is dropped or mixed up unseen.

    Raises:
        Unfit: it has not.
    """
    known = {one.name: one for one in target.file_schema}
    for one in file:
        if one.name not in known:
            raise Unfit(f"a file has a column {one.name!r}, which the table has not any more")
        _check_field(one, known[one.name], one.name)


def _check_field(file: Any, table: Any, path: str) -> None:
    ids = [(one.metadata or {}).get(_FIELD_ID) for one in (file, table)]
    if None not in ids and ids[0] != ids[1]:
        raise Unfit(f"{path!r} of a file is another column than the table's")
    if not isinstance(file.type, pa.StructType):
        for inner, own in zip(_items(file.type), _items(table.type), strict=False):
            _check_field(inner, own, f"{path}.{inner.name}")
        return
    known = {one.name: one for one in table.type} if isinstance(table.type, pa.StructType) else {}
    for inner in file.type:
        if inner.name not in known:
            raise Unfit(f"a file has a field {path}.{inner.name}, which the table has not any more")
        _check_field(inner, known[inner.name], f"{path}.{inner.name}")


def _items(type_: Any) -> list[Any]:
    """The fields inside of a list or a map."""
    match type_:
        case pa.ListType() | pa.LargeListType():
            return [type_.value_field]
        case pa.MapType():
            return [type_.key_field, type_.item_field]
    return []
