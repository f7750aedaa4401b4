"""What a Delta log says of a file: its window, and the statistics by which readers skip it. From the file's footer."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS, parts_of
from airflow_provider_streams.lake.data_files import DataFile
from airflow_provider_streams.lake.delta.storage import errors_of
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.model.window.window import Window

if TYPE_CHECKING:
    from deltalake.transaction import AddAction

MOST_COLUMNS = 32
"""Beyond so many columns, the log has no bounds: other writers do the same, and every reader reads the log."""

_EXACT_DIGITS = 15
"""Longer decimals have no bounds, for some readers turn them into doubles."""

_LONGEST_TEXT = 64
"""Letters of a bound in the log; a longer one is cut."""
_LAST_LETTER = "\U0010ffff"

_Bounds = tuple[float | str, float | str]

_FOOTERS_AT_ONCE = 8
_MILLISECOND = timedelta(milliseconds=1)

Stored = Sequence[tuple[DataFile, pq.FileMetaData]]
"""Files with their footers."""


def stored(storage: Storage, files: Sequence[DataFile]) -> Stored:
    """Files with their footers. `SinkError`: a file is not here, or not what its task wrote."""
    with errors_of(storage), ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        system, root = storage.open()
        return list(zip(files, pool.map(lambda one: _footer(system, root, one), files), strict=True))


def add_actions(files: Stored, window: Window, columns: pa.Schema) -> list[AddAction]:
    """The log's entries for the files of a window in a table of these columns."""
    from deltalake.transaction import AddAction  # noqa: PLC0415 - optional

    edges = zip(WINDOW_COLUMNS, map(partition_value, (window.start, window.end)), strict=True)
    values: dict[str, str | None] = dict(edges)
    return [
        AddAction(
            path=file.path,
            size=file.bytes,
            partition_values=values,
            modification_time=int(time.time() * 1000),
            data_change=True,
            stats=file_stats(footer, columns),
        )
        for file, footer in files
    ]


def partition_value(moment: datetime) -> str:
    """A time in the log's form: in UTC with `Z`, without which Spark would read it in its session's zone."""
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
        raise SinkError(
            root, f"{file.path} has {counted(footer.num_rows, 'row')}, not the {file.rows:,} that its task wrote"
        )
    return footer


def file_stats(footer: pq.FileMetaData, columns: pa.Schema) -> str:
    """`{"numRecords", "minValues", "maxValues", "nullCount"}` of a Parquet file's simple columns, as JSON.

    There are bounds of all columns of the table, or of none. If only some had bounds, delta-rs would give pyarrow's
    datasets impossible bounds for the others, and filters would find nothing. delta-rs also wants bounds of structs,
    but not of lists, maps and bytes.

    Args:
        footer: the file's.
        columns: the table's; those that the file lacks are null in its rows.
    """
    rows, groups, found = footer.num_rows, range(footer.num_row_groups), dict(_columns_in(footer))
    asked = [one for one in columns if one.name not in WINDOW_COLUMNS]
    if not rows or len(asked) > MOST_COLUMNS or not found.keys() <= {one.name for one in asked}:
        return json.dumps({"numRecords": rows})
    nulls: dict[str, int | None] = {}
    bounds: dict[str, _Bounds | None] = {}
    for one in asked:
        if pa.types.is_struct(one.type):
            bounds[one.name] = None
        elif not pa.types.is_nested(one.type):
            if one.name not in found:
                nulls[one.name] = rows
                continue
            statistics = [footer.row_group(group).column(found[one.name]).statistics for group in groups]
            nulls[one.name] = _nulls(statistics)
            if nulls[one.name] != rows and not pa.types.is_binary(one.type):
                bounds[one.name] = _bounds(one.type, statistics)
    known = {name: one for name, one in bounds.items() if one is not None} if all(bounds.values()) else {}
    low, high = ({name: one[end] for name, one in known.items()} for end in range(2))
    counted = {name: count for name, count in nulls.items() if count is not None}
    named = {"minValues": low, "maxValues": high, "nullCount": counted}
    told = {"numRecords": rows, **{name: values for name, values in named.items() if values}}
    return json.dumps(told, ensure_ascii=False)  # delta-rs misreads letters that are escaped as two surrogates


def _columns_in(footer: pq.FileMetaData) -> Iterator[tuple[str, int]]:
    """The file's columns, and the number of each one's first leaf in the footer.

    They are counted, for paths do not tell a column `a.b` from a field `b` in a struct `a`.
    """
    number = 0
    for field in footer.schema.to_arrow_schema():
        yield field.name, number
        number += _leaves(field.type)


def _nulls(statistics: list[Any]) -> int | None:
    """How many nulls a column has; None: not known."""
    known = all(one is not None and one.has_null_count for one in statistics)
    return sum(one.null_count for one in statistics) if known else None


def _leaves(type_: pa.DataType) -> int:
    """How many of the footer's columns hold a column."""
    return sum(_leaves(one.type) for one in parts_of(type_)) if pa.types.is_nested(type_) else 1


def _bounds(type_: pa.DataType, statistics: list[Any]) -> _Bounds | None:
    """The least and the greatest value as the log writes them; None: unknown, or not safe for all readers."""
    filled = [one for one in statistics if one is None or one.num_values]
    # long decimals do not fit doubles, and bounds of floats ignore NaN in files of other writers
    is_long = pa.types.is_decimal(type_) and type_.precision > _EXACT_DIGITS
    is_known = all(one is not None and one.has_min_max for one in filled)
    if is_long or pa.types.is_floating(type_) or not is_known:
        return None
    try:
        low = _bound(min(one.min for one in filled), _down, _begin)
        high = _bound(max(one.max for one in filled), _up, _beyond)
    except (ValueError, OverflowError):  # a time that no calendar has
        return None
    return None if low is None or high is None else (low, high)


def _bound(value: Any, rounded: Callable[[datetime], datetime], cut: Callable[[str], str | None]) -> float | str | None:
    """A value as the log writes it; None: it cannot."""
    match value:
        case int():
            return value
        case Decimal():
            number = float(value)
            return None if "e" in repr(number) else number  # delta-rs does not read exponents
        case str():
            return value if len(value) <= _LONGEST_TEXT else cut(value)
        case datetime():
            return rounded(value).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case date():
            return value.isoformat()
    return None


def _begin(text: str) -> str:
    """A lower bound of a long text."""
    return text[:_LONGEST_TEXT]


def _beyond(text: str) -> str | None:
    """An upper bound of a long text; None: there is none of this length."""
    return None if text[_LONGEST_TEXT] == _LAST_LETTER else _begin(text) + _LAST_LETTER


def _down(moment: datetime) -> datetime:
    """To milliseconds, which all readers take."""
    return moment - timedelta(microseconds=moment.microsecond % 1000)


def _up(moment: datetime) -> datetime:
    below = _down(moment)
    return moment if below == moment else below + _MILLISECOND
