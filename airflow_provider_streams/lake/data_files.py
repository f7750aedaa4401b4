"""Data files: tasks write them with Arrow and report their facts; a commit puts them in a table."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_provider_streams.background_work import BackgroundWork
from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.storage import Storage

ROW_GROUP_BYTES = 64 * 1024 * 1024
"""Bytes of Arrow arrays that a task holds of one window before it writes them; while it writes, it takes as many."""

FILE_BYTES = 512 * 1024 * 1024
"""The size of a file from which on the next row group begins another file."""

NULLS_KEY = "streams.nulls"
"""In a file's own metadata: the null counts of columns without statistics, as JSON by column."""

_FIRST_WITH_VIEWS = 21
VIEWS = int(pa.__version__.split(".", 1)[0]) >= _FIRST_WITH_VIEWS
"""Whether this release of Arrow writes `binary_view` like `binary`."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """One Parquet file of one window."""

    path: str
    """Below the root of its `FileTarget`'s storage."""
    rows: int
    bytes: int

    def to_json(self) -> list[Any]:
        """Plain JSON values."""
        return [self.path, self.rows, self.bytes]

    @classmethod
    def from_json(cls, data: list[Any]) -> Self:
        """The reverse of `to_json`."""
        return cls(*data)


@dataclass(frozen=True)
class FileTarget:
    """Where the files of one window go, and how they look: all that a task knows of a table."""

    storage: Storage
    folder: str
    """Below the storage's root."""
    prefix: str
    """How the names of this attempt's files begin: by it, the files of a failed attempt are found."""
    schema: pa.Schema
    """Of the tasks' rows; a field's metadata (`PARQUET:field_id`) goes into the files."""
    constants: pa.RecordBatch | None = None
    """One row: further columns, which are alike in all rows of the window."""
    suffix: str = ".parquet"
    """How the names end; another suffix hides staged files from readers of all `*.parquet`."""
    compression: str = "zstd"
    row_group_bytes: int = ROW_GROUP_BYTES
    file_bytes: int = FILE_BYTES

    @property
    def file_schema(self) -> pa.Schema:
        """Of the files, with the constant columns."""
        return pa.schema([*self.schema, *(self.constants.schema if self.constants is not None else ())])

    def to_json(self) -> str:
        """All of it with its secrets, so never show it."""
        plain = {name: getattr(self, name) for name in _PLAIN}
        arrow = {"schema": _packed(self.schema.serialize()), "storage": self.storage.to_json()}
        if self.constants is not None:
            arrow["constants"] = _packed(_stream(self.constants))
        return json.dumps({**plain, **arrow})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The reverse of `to_json`."""
        data = json.loads(text)
        constants = data.get("constants")
        return cls(
            storage=Storage.from_json(data["storage"]),
            schema=pa.ipc.read_schema(pa.py_buffer(base64.b64decode(data["schema"]))),
            constants=None if constants is None else pa.ipc.open_stream(base64.b64decode(constants)).read_next_batch(),
            **{name: data[name] for name in _PLAIN},
        )


_PLAIN = ("folder", "prefix", "suffix", "compression", "row_group_bytes", "file_bytes")


class WindowFiles:
    """Writes what one task has of one window. Used as: `write` for each batch, then `finish`; `close` in any case."""

    def __init__(self, target: FileTarget) -> None:
        self._target = target
        self._system, self._root = target.storage.open()
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._open: _OpenFile | None = None
        self._files: list[DataFile] = []
        self._writing: BackgroundWork[None] | None = None
        self._is_finished = False

    def write(self, batch: pa.RecordBatch) -> None:
        """Take rows; another thread may write them later. `SinkError`: these or earlier ones cannot be written."""
        self._held.append(batch)
        self._held_bytes += sum(map(_bytes, batch.columns))
        if self._held_bytes >= self._target.row_group_bytes:
            self._write_ahead()

    def finish(self) -> list[DataFile]:
        """Write what is left, and return the files, which have all rows now; raises `SinkError`."""
        self._wait()
        self._write(self._taken())
        self._roll()
        self._is_finished = True
        return self._files

    def close(self) -> None:
        """Remove the files, unless they are finished. Never raises."""
        if self._is_finished:
            return
        with suppress(Exception):
            self._wait()
        with suppress(Exception):
            if self._open is not None:
                self._files.append(self._open.close())
        for file in self._files:
            with suppress(OSError):
                self._system.delete_file(f"{self._root}/{file.path}")

    def _taken(self) -> list[pa.RecordBatch]:
        held, self._held, self._held_bytes = self._held, [], 0
        return held

    def _write_ahead(self) -> None:
        self._wait()
        self._writing = BackgroundWork(partial(self._write, self._taken()))

    def _wait(self) -> None:
        """Until the row group under way is written; raises its `SinkError`, now and later."""
        if self._writing is not None:
            self._writing.result()
            self._writing = None

    def _write(self, batches: Sequence[pa.RecordBatch]) -> None:
        if not batches:
            return
        rows = stored_rows(pa.Table.from_batches(batches), self._target)
        unbounded = _unbounded(rows)
        if self._open is not None and not unbounded <= self._open.unbounded:
            self._roll()
        with self._target.storage.errors(_FAILED):
            if self._open is None:
                self._open = _OpenFile(self._system, self._root, self._target, rows.schema, unbounded)
            self._open.write(rows)
            if self._open.bytes >= self._target.file_bytes:
                self._roll()

    def _roll(self) -> None:
        if self._open is not None:
            with self._target.storage.errors(_FAILED):
                self._files.append(self._open.close())
            self._open = None


_FAILED = "a data file cannot be written"


def write_files(target: FileTarget, batches: Iterable[pa.RecordBatch] = ()) -> list[DataFile]:
    """Files with these rows; without any, one file that has no rows. After a `SinkError`, no file is left."""
    with closing(WindowFiles(target)) as made:
        made.write(pa.RecordBatch.from_pylist([], target.schema))
        for batch in batches:
            made.write(batch)
        return made.finish()


class _OpenFile:
    def __init__(
        self, system: Any, root: str, target: FileTarget, schema: pa.Schema, unbounded: frozenset[str]
    ) -> None:
        self.unbounded = unbounded
        """Columns without statistics."""
        self._path = "/".join(filter(None, [target.folder, f"{target.prefix}{uuid.uuid4().hex}{target.suffix}"]))
        self._sink = system.open_output_stream(f"{root}/{self._path}")
        flat = [one.name for one in schema if not pa.types.is_nested(one.type) and not _is_bytes(one.type)]
        bounded = [one.name for one in schema if one.name not in unbounded]
        self._writer = pq.ParquetWriter(
            self._sink,
            schema,
            compression=target.compression,  # type: ignore[arg-type]  # Arrow refuses an unknown one
            use_dictionary=flat,  # type: ignore[arg-type]  # the stubs know no lists
            write_statistics=bounded,
            store_schema=False,
            store_decimal_as_integer=True,  # as Spark writes them
        )
        self._rows = 0
        self._nulls = dict.fromkeys(sorted(unbounded), 0)

    @property
    def bytes(self) -> int:
        """Written so far."""
        return int(self._sink.tell())

    def write(self, rows: pa.Table) -> None:
        self._writer.write_table(rows, row_group_size=max(len(rows), 1))
        self._rows += len(rows)
        for name in self._nulls:
            self._nulls[name] += rows.column(name).null_count

    def close(self) -> DataFile:
        if self._nulls:
            self._writer.add_key_value_metadata({NULLS_KEY: json.dumps(self._nulls)})
        self._writer.close()
        size = self.bytes
        self._sink.close()
        return DataFile(self._path, self._rows, size)


def _unbounded(rows: pa.Table) -> frozenset[str]:
    """Columns whose bounds mislead readers, or that no reader filters by: payloads' bytes.

    Arrow's bounds leave NaN out. Readers take NaN for the greatest number, and would skip the file in a search for it.
    """
    return frozenset(
        one.name
        for one in rows.schema
        if pa.types.is_nested(one.type) or _is_bytes(one.type) or _may_have_nan(rows.column(one.name))
    )


def _may_have_nan(column: pa.ChunkedArray[Any]) -> bool:
    kind = column.type
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return bool(pc.any(pc.is_nan(column)).as_py())
    held = kind.value_type if isinstance(kind, pa.DictionaryType) else kind
    return pa.types.is_floating(held)


def stored_rows(rows: pa.Table, target: FileTarget) -> pa.Table:
    """Rows in the target's types, with its constant columns. `SinkError`: a column is missing or does not fit."""
    columns = []
    for one in target.schema:
        if one.name not in rows.schema.names:
            raise SinkError(target.storage.root, f"the rows lack the column {one.name!r}")
        columns.append(_as(rows.column(one.name), one, target))
    fields = [
        one.with_type(column.type)
        if isinstance(column.type, pa.DictionaryType) or _is_view(column.type)
        else one  # of nested ones, with metadata
        for one, column in zip(target.schema, columns, strict=True)
    ]
    if target.constants is not None:
        columns += [pa.chunked_array([pa.repeat(value[0], len(rows))]) for value in target.constants.columns]
        fields += list(target.constants.schema)
    return pa.table(columns, schema=pa.schema(fields)).unify_dictionaries()


def _as(column: pa.ChunkedArray[Any], wanted: pa.Field[Any], target: FileTarget) -> pa.ChunkedArray[Any]:
    if column.type == wanted.type:
        return column
    if isinstance(column.type, pa.DictionaryType) and column.type.value_type == wanted.type:
        return column  # in a file, a dictionary is how values are written, and no type
    if _is_view(column.type) and _is_bytes(wanted.type):
        return column  # nor is a view
    try:
        # Spark also cuts times to microseconds
        how = pc.CastOptions(wanted.type, allow_time_truncate=True)
        return pc.cast(column, options=how)  # type: ignore[call-overload, no-any-return]  # the target is among the options
    except pa.ArrowException as error:
        raise SinkError(target.storage.root, f"column {wanted.name!r}: {error}") from error


def _is_bytes(type_: pa.DataType) -> bool:
    return pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or _is_view(type_)


def _is_view(type_: pa.DataType) -> bool:
    return pa.types.is_binary_view(type_)


_VIEW = np.dtype([("size", np.int32), ("held", np.int32, 3)])
"""Arrow's columnar format, "Variable-size Binary View Layout"."""


def _bytes(column: pa.Array[Any]) -> int:
    """The size of its values. For views, Arrow would count the whole buffers that they point into."""
    if not _is_view(column.type):
        return column.nbytes
    parts = np.frombuffer(column.buffers()[1], _VIEW)  # type: ignore[call-overload]  # a buffer
    return int(parts["size"][column.offset : column.offset + len(column)].sum()) + len(column) * _VIEW.itemsize


def _packed(buffer: Any) -> str:
    return base64.b64encode(memoryview(buffer)).decode()


def _stream(batch: pa.RecordBatch) -> Any:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return sink.getvalue()
