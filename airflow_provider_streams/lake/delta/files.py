"""What a Delta log says of a file: which window it holds, and what readers can pass it over by. From its own footer."""

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
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS
from airflow_provider_streams.lake.delta.storage import errors_of
from airflow_provider_streams.lake.files import DataFile
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.model.window import Window

if TYPE_CHECKING:
    from deltalake.transaction import AddAction

MOST_COLUMNS = 32
"""Of which the log has bounds: other writers count columns as they like beyond, and everybody reads the log."""

_EXACT_DIGITS = 15
"""Of decimals, which some readers take for doubles on their way."""

_LONGEST_TEXT = 64
"""Of longer bounds the log has the begin, and above it whatever goes on so."""
_LAST_LETTER = "\U0010ffff"

_Bounds = tuple[float | str, float | str]

_FOOTERS_AT_ONCE = 8
_MILLISECOND = timedelta(milliseconds=1)


Stored = Sequence[tuple[DataFile, pq.FileMetaData]]
"""Files, and what they say of themselves."""


def stored(storage: Storage, files: Sequence[DataFile]) -> Stored:
    """What files say of themselves.

    Raises:
        SinkError: one is not here, or not what its task wrote.
        TableUnavailable: the store fails.
    """
    with errors_of(storage), ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        system, root = storage.open()
        return list(zip(files, pool.map(lambda one: _footer(system, root, one), files), strict=True))


def add_actions(files: Stored, window: Window, columns: pa.Schema) -> list[AddAction]:
    """What the log says of the files of a window in a table of these columns."""
    return [_add_action(file, footer, window, columns) for file, footer in files]


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


def _add_action(file: DataFile, footer: pq.FileMetaData, window: Window, columns: pa.Schema) -> AddAction:
    from deltalake.transaction import AddAction  # noqa: PLC0415 - optional

    start, end = WINDOW_COLUMNS
    return AddAction(
        path=file.path,
        size=file.bytes,
        partition_values={start: partition_value(window.start), end: partition_value(window.end)},
        modification_time=int(time.time() * 1000),
        data_change=True,
        stats=file_stats(footer, columns),
    )


def file_stats(footer: pq.FileMetaData, columns: pa.Schema) -> str:
    """`{"numRecords", "minValues", "maxValues", "nullCount"}` of a Parquet file's simple columns, as JSON.

    There are bounds of all columns of the table, or of none: where those of one are missing beside others, delta-rs
    gives pyarrow's datasets bounds that no value is within, and their filters would find nothing. It asks for those of
    structs, too, but not of lists, maps and bytes.

    Args:
        footer: the file's.
        columns: the table's; those that the file lacks are null in its rows.
    """
    rows, found = footer.num_rows, dict(_columns_in(footer))
    asked = [one for one in columns if one.name not in WINDOW_COLUMNS]
    if not rows or len(asked) > MOST_COLUMNS or not found.keys() <= {one.name for one in asked}:
        return json.dumps({"numRecords": rows})
    nulls: dict[str, int | None] = {}
    bounds: dict[str, _Bounds | None] = {}
    for one in asked:
        if pa.types.is_struct(one.type):
            bounds[one.name] = None
        elif not pa.types.is_nested(one.type):
            statistics = _statistics(footer, found.get(one.name))
            nulls[one.name] = rows if statistics is None else _nulls(statistics)
            if statistics is not None and nulls[one.name] != rows and not pa.types.is_binary(one.type):
                bounds[one.name] = _bounds(one.type, statistics)
    known = {name: one for name, one in bounds.items() if one is not None} if all(bounds.values()) else {}
    low, high = ({name: one[end] for name, one in known.items()} for end in range(2))
    counted = {name: count for name, count in nulls.items() if count is not None}
    told = {"numRecords": rows, **_given(minValues=low, maxValues=high, nullCount=counted)}
    return json.dumps(told, ensure_ascii=False)  # of a letter that is escaped in two halves delta-rs makes another one


def _given(**named: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: values for name, values in named.items() if values}


def _columns_in(footer: pq.FileMetaData) -> Iterator[tuple[str, int]]:
    """The file's, and the number that the first of each has in the footer.

    They are counted, for paths tell no column `a.b` from a field `b` in a struct `a`.
    """
    number = 0
    for field in footer.schema.to_arrow_schema():
        yield field.name, number
        number += _leaves(field.type)


def _statistics(footer: pq.FileMetaData, number: int | None) -> list[Any] | None:
    """Those of a column in each row group; None: the file has no such column."""
    if number is None:
        return None
    return [footer.row_group(group).column(number).statistics for group in range(footer.num_row_groups)]


def _nulls(statistics: list[Any]) -> int | None:
    """How many nulls a column has, if that is known."""
    known = all(one is not None and one.has_null_count for one in statistics)
    return sum(one.null_count for one in statistics) if known else None


def _leaves(type_: pa.DataType) -> int:
    """How many columns of the file hold one of the schema."""
    if not pa.types.is_nested(type_):
        return 1
    return sum(_leaves(type_.field(number).type) for number in range(type_.num_fields))


def _bounds(type_: pa.DataType, statistics: list[Any]) -> _Bounds | None:
    """The least and the greatest value as the log writes them; None: they are not known, or not to all readers.

    Args:
        type_: the column's.
        statistics: its in each row group.
    """
    filled = [one for one in statistics if one is None or one.num_values]
    if not all(one is not None and one.has_min_max for one in filled) or _is_inexact(type_):
        return None
    try:
        low = _bound(min(one.min for one in filled), _down, _begin)
        high = _bound(max(one.max for one in filled), _up, _beyond)
    except (ValueError, OverflowError):  # a time that no calendar has
        return None
    return None if low is None or high is None else (low, high)


def _is_inexact(type_: pa.DataType) -> bool:
    """Long decimals are no doubles; of floats, among which NaN may be, others' files have bounds that pass over it."""
    return pa.types.is_floating(type_) or (pa.types.is_decimal(type_) and type_.precision > _EXACT_DIGITS)


def _bound(value: Any, rounded: Callable[[datetime], datetime], cut: Callable[[str], str | None]) -> float | str | None:
    """As the log writes it; None: not at all."""
    match value:
        case int():
            return value
        case Decimal():
            return _amount(value)
        case str():
            return value if len(value) <= _LONGEST_TEXT else cut(value)
        case datetime():
            return rounded(value).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case date():
            return value.isoformat()
    return None


def _amount(value: Decimal) -> float | None:
    """None: as a double it would be written with an exponent, which delta-rs does not read."""
    number = float(value)
    return None if "e" in repr(number) else number


def _begin(text: str) -> str:
    """What is not above a long text."""
    return text[:_LONGEST_TEXT]


def _beyond(text: str) -> str | None:
    """What is not below it; None: its next letter is the last one there is."""
    return None if text[_LONGEST_TEXT] == _LAST_LETTER else _begin(text) + _LAST_LETTER


def _down(moment: datetime) -> datetime:
    """To milliseconds, which is all that some readers take."""
    return moment - timedelta(microseconds=moment.microsecond % 1000)


def _up(moment: datetime) -> datetime:
    below = _down(moment)
    return moment if below == moment else below + _MILLISECOND
