"""What a Delta log says of a file: which window it holds, and what readers can pass it over by. From its own footer."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import islice
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
"""Of the first simple columns, as other writers of Delta do: the log is read by everybody who opens the table."""

_EXACT_DIGITS = 15
"""Of decimals, which some readers take for doubles on their way."""

_LONGEST_TEXT = 64
"""Of longer bounds the log has the begin, and above it whatever goes on so."""
_LAST_LETTER = "\U0010ffff"

_Bounds = tuple[float | str, float | str]

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
    """`{"numRecords", "minValues", "maxValues", "nullCount"}` of a Parquet file's simple columns, as JSON.

    There are bounds of all these columns, or of none: where those of one are missing beside others, delta-rs gives
    pyarrow's datasets bounds that no value is within, and their filters would find nothing.
    """
    if not footer.num_rows:
        return json.dumps({"numRecords": 0})
    nulls: dict[str, int] = {}
    bounds: dict[str, _Bounds | None] = {}
    for index, field in islice(_simple_columns(footer), MOST_COLUMNS):
        chunks = [footer.row_group(group).column(index) for group in range(footer.num_row_groups)]
        found: list[Any] = [chunk.statistics for chunk in chunks]
        if all(one is not None and one.has_null_count for one in found):
            nulls[field.name] = sum(one.null_count for one in found)
        if nulls.get(field.name) != footer.num_rows and not pa.types.is_binary(field.type):  # nobody asks for bytes'
            bounds[field.name] = _bounds(field.type, found)
    known = {name: one for name, one in bounds.items() if one is not None}
    if len(known) < len(bounds):
        known = {}
    low, high = ({name: one[end] for name, one in known.items()} for end in range(2))
    told = {"numRecords": footer.num_rows, **_given(minValues=low, maxValues=high, nullCount=nulls)}
    return json.dumps(told, ensure_ascii=False)  # of a letter that is escaped in two halves delta-rs makes another one


def _given(**named: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: values for name, values in named.items() if values}


def _simple_columns(footer: pq.FileMetaData) -> Iterator[tuple[int, pa.Field[Any]]]:
    """Those outside of structs, lists and maps, and the number that each has in the footer.

    They are counted, for paths tell no column `a.b` from a field `b` in a struct `a`.
    """
    number = 0
    for field in footer.schema.to_arrow_schema():
        if not pa.types.is_nested(field.type):
            yield number, field
        number += _leaves(field.type)


def _leaves(type_: pa.DataType) -> int:
    """How many columns of the file hold one of the schema."""
    if not pa.types.is_nested(type_):
        return 1
    return sum(_leaves(type_.field(number).type) for number in range(type_.num_fields))


def _bounds(type_: pa.DataType, found: list[Any]) -> _Bounds | None:
    """The least and the greatest value as the log writes them; None: they are not known, or not to all readers.

    Args:
        type_: the column's.
        found: its statistics in each row group.
    """
    filled = [one for one in found if one is None or one.num_values]
    if not all(one is not None and one.has_min_max for one in filled) or _is_inexact(type_):
        return None
    try:
        low = _bound(min(one.min for one in filled), _down, _begin)
        high = _bound(max(one.max for one in filled), _up, _beyond)
    except (ValueError, OverflowError):  # a time that no calendar has
        return None
    return None if low is None or high is None else (low, high)


def _is_inexact(type_: pa.DataType) -> bool:
    """Of floats the footer passes over NaN, which is the largest for others; long decimals are no doubles."""
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
