"""What a Delta log says of a file: which window it holds, and what readers can pass it over by. From its own footer."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS
from airflow_provider_streams.lake.delta.storage import errors_of
from airflow_provider_streams.lake.files import DataFile
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.model.window import Window

if TYPE_CHECKING:
    from deltalake.transaction import AddAction

MOST_COLUMNS = 32
"""Of the first columns, as other writers of Delta do: the log is read by everybody who opens the table."""

_LONGEST_TEXT = 64
"""Longer bounds are left out: a part of one would have to be rounded up."""

_FOOTERS_AT_ONCE = 8
_MILLISECOND = timedelta(milliseconds=1)


def add_actions(storage: Storage, files: Sequence[DataFile], window: Window) -> list[AddAction]:
    """What the log says of the files of a window.

    Raises:
        SinkError: one is not here, or not what its task wrote.
        TableUnavailable: the store fails.
    """
    with errors_of(storage), ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        system, root = storage.open()
        footers = list(pool.map(lambda one: _footer(system, root, one), files))
    return [_add_action(file, footer, window) for file, footer in zip(files, footers, strict=True)]


def partition_value(moment: datetime) -> str:
    """A time as the log has it, in UTC and saying so: without, Spark takes it for one of its session's zone."""
    return moment.isoformat(timespec="microseconds" if moment.microsecond else "seconds").replace("+00:00", "Z")


def _footer(system: pafs.FileSystem, root: str, file: DataFile) -> pq.FileMetaData:
    try:
        with system.open_input_file(f"{root}/{file.path}") as stored:
            size, footer = stored.size(), pq.read_metadata(stored)
    except FileNotFoundError as error:
        raise SinkError(
            root, f"{file.path}, which a task wrote, is not here: a path must be mounted everywhere"
        ) from error
    if (size, footer.num_rows) != (file.bytes, file.rows):
        raise SinkError(root, f"{file.path} has {footer.num_rows} rows, and {file.rows} were written")
    return footer


def _add_action(file: DataFile, footer: pq.FileMetaData, window: Window) -> AddAction:
    from deltalake.transaction import AddAction  # noqa: PLC0415 - optional

    start, end = WINDOW_COLUMNS
    return AddAction(
        path=file.path,
        size=file.bytes,
        partition_values={start: partition_value(window.start), end: partition_value(window.end)},
        modification_time=int(time.time() * 1000),
        data_change=True,
        stats=file_stats(footer),
    )


def file_stats(footer: pq.FileMetaData) -> str:
    """`{"numRecords", "minValues", "maxValues", "nullCount"}` of a Parquet file's simple columns, as JSON."""
    stats: dict[str, Any] = {"numRecords": footer.num_rows}
    if footer.num_rows:
        stats |= {"minValues": {}, "maxValues": {}, "nullCount": {}}
        for index, name in _simple_columns(footer):
            _add_column(stats, name, [footer.row_group(group).column(index) for group in range(footer.num_row_groups)])
    return json.dumps(stats)


def _simple_columns(footer: pq.FileMetaData) -> Iterator[tuple[int, str]]:
    """Those outside of structs, lists and maps: the number that each has in the footer, and its name."""
    numbers = {footer.schema.column(index).path: index for index in range(footer.num_columns)}
    for one in list(footer.schema.to_arrow_schema())[:MOST_COLUMNS]:
        if not pa.types.is_nested(one.type):
            yield numbers[one.name], one.name


def _add_column(stats: dict[str, Any], name: str, chunks: list[pq.ColumnChunkMetaData]) -> None:
    found: list[Any] = [chunk.statistics for chunk in chunks]
    if not all(one is not None and one.has_null_count for one in found):
        return
    stats["nullCount"][name] = sum(one.null_count for one in found)
    filled = [one for one, chunk in zip(found, chunks, strict=True) if one.null_count < chunk.num_values]
    if not filled or not all(one.has_min_max for one in filled):
        return
    with suppress(ValueError, OverflowError):  # a time that no calendar has
        low = _bound(min(one.min for one in filled), _down)
        high = _bound(max(one.max for one in filled), _up)
        if low is not None and high is not None:
            stats["minValues"][name], stats["maxValues"][name] = low, high


def _bound(value: Any, rounded: Callable[[datetime], datetime]) -> int | str | None:
    """As the log writes it; None: not at all. Of floats the footer passes over NaN, which is the largest for others."""
    match value:
        case bool():
            return None
        case int():
            return value
        case str():
            return value if len(value) <= _LONGEST_TEXT else None
        case datetime():
            return rounded(value).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case date():
            return value.isoformat()
    return None


def _down(moment: datetime) -> datetime:
    """To milliseconds, which is all that some readers take."""
    return moment - timedelta(microseconds=moment.microsecond % 1000)


def _up(moment: datetime) -> datetime:
    below = _down(moment)
    return moment if below == moment else below + _MILLISECOND
