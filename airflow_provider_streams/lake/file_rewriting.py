"""Rewrites the files of one window, batch by batch, in the columns that the table has now; and removes files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from airflow_provider_streams.errors import RowsDiffer
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS, parts_of
from airflow_provider_streams.lake.data_files import DataFile, FileTarget, write_files
from airflow_provider_streams.lake.storage import Storage

_BATCH_ROWS = 16_384
_READ_AHEAD_BYTES = 1024 * 1024
_FIELD_ID = b"PARQUET:field_id"


class Unfit(Exception):
    """The new files would lack values of these files, which therefore stay."""


def rewrite(files: Sequence[DataFile], target: FileTarget) -> list[DataFile]:
    """New files with the rows of others, which stay. Memory holds one batch of rows and two row groups.

    After any error, no new file is left.

    Raises:
        Unfit: the files have columns that the table dropped or renamed.
        RowsDiffer: they do not have the rows that the table counts.
        SinkError: they cannot be read or written.
    """
    written = write_files(target, (batch for file in files for batch in _rows_of(file, target)))
    counted = sum(file.rows for file in files)
    if sum(file.rows for file in written) != counted:
        remove(written, target)
        raise RowsDiffer(target.storage.root, f"files of {counted} rows, as the table says, do not have so many")
    return written


def remove(files: Sequence[DataFile], target: FileTarget) -> None:
    """Remove files that no reader sees. Never raises: expiry finds what stays."""
    with suppress(Exception):
        system, root = target.storage.open()
        for file in files:
            with suppress(OSError):
                system.delete_file(f"{root}/{file.path}")


def remove_attempt(target: FileTarget, storage: Storage, landed: Collection[str] = ()) -> None:
    """Remove the files of an attempt but those that landed, by a storage whose credentials are valid. Never raises."""
    with suppress(Exception):
        system, root = storage.open()
        for found in system.get_file_info(pafs.FileSelector(f"{root}/{target.folder}", allow_not_found=True)):
            is_landed = f"{target.folder}/{found.base_name}" in landed
            if found.base_name.startswith(target.prefix) and not is_landed:
                system.delete_file(found.path)


def _rows_of(file: DataFile, target: FileTarget) -> Iterator[pa.RecordBatch]:
    system, root = target.storage.open()
    with target.storage.errors(f"{file.path} cannot be read"):
        try:
            with system.open_input_file(f"{root}/{file.path}") as stored:
                parquet = pq.ParquetFile(stored, buffer_size=_READ_AHEAD_BYTES)
                _check_columns(parquet.schema_arrow, target)
                names = [name for name in target.schema.names if name in parquet.schema_arrow.names]
                for batch in parquet.iter_batches(batch_size=_BATCH_ROWS, columns=names):
                    yield _as_now(batch, target.schema)
        except FileNotFoundError as error:
            raise RowsDiffer(target.storage.root, f"{file.path}, which is one of its files, is not there") from error


def _as_now(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """With the columns and types that the table has now; columns that are newer than the file are null."""
    columns: list[Any] = [
        pc.cast(batch.column(one.name), one.type) if one.name in batch.schema.names else pa.nulls(len(batch), one.type)
        for one in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _check_columns(file: pa.Schema, target: FileTarget) -> None:
    """Raise `Unfit` if a value of a file has no place in the table."""
    known = {one.name: one for one in target.file_schema}
    for one in file:
        if one.name not in known and one.name in WINDOW_COLUMNS:
            continue  # the window is in the log or the folder's name, which readers prefer; Spark may store it as well
        if one.name not in known:
            raise Unfit(f"a file has a column {one.name!r}, which the table has not any more")
        _check_field(one, known[one.name], one.name)


def _check_field(file: Any, table: Any, path: str) -> None:
    ids = [(one.metadata or {}).get(_FIELD_ID) for one in (file, table)]
    if None not in ids and ids[0] != ids[1]:
        raise Unfit(f"{path!r} of a file is another column than the table's")
    if not isinstance(file.type, pa.StructType):
        for inner, own in zip(parts_of(file.type), parts_of(table.type), strict=False):
            _check_field(inner, own, f"{path}.{inner.name}")
        return
    known = {one.name: one for one in table.type} if isinstance(table.type, pa.StructType) else {}
    for inner in file.type:
        if inner.name not in known:
            raise Unfit(f"a file has a field {path}.{inner.name}, which the table has not any more")
        _check_field(inner, known[inner.name], f"{path}.{inner.name}")
