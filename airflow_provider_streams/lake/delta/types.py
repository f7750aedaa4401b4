"""Columns of a Delta table: which rows it can hold, and what it must get to hold others. No Delta library in here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake import columns as lake_columns
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS
from airflow_provider_streams.lake.types import MOMENT, list_of

LOCAL_TIME: Final = pa.timestamp("us")

_SAME: Final = (
    pa.bool_(),
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
    *(pa.string(), pa.binary(), pa.date32(), MOMENT, LOCAL_TIME),
)
_BECOMES: Final[dict[pa.DataType, pa.DataType]] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
}
"""There is no unsigned number; delta-rs would take it for a signed one of as many bits."""

_FORBIDDEN: Final = re.compile(r"[ ,;{}()=\x00-\x1f\x7f]")
"""Other engines refuse columns with these in their names, or end a name there."""


def columns_of_rows(target: str, rows: pa.Schema) -> pa.Schema:
    """The columns that rows of a schema are in a table, all of which can be null; without those of the window.

    Raises:
        SinkError: Delta has no such type, or other engines refuse the name, or it is taken.
    """
    for one in rows:
        _check_name(target, f"column {one.name!r}", one.name)
        for name in _names_within(one.type):
            _check_name(target, f"field {name!r} of column {one.name!r}", name)
    return lake_columns.columns_of_rows(target, rows, "Delta", _delta_type)


def _check_name(target: str, what: str, name: str) -> None:
    if not name or _FORBIDDEN.search(name):
        raise SinkError(
            target,
            f"{what} has a name that other engines refuse in a Delta table: none at all, or one with a space, a "
            "control character or one of , ; { } ( ) =. Name it otherwise in a transform, or select other columns",
        )


def columns_of_table(rows: pa.Schema) -> pa.Schema:
    """All columns of a new table that is made for such rows."""
    return pa.schema([*rows, *(pa.field(name, MOMENT) for name in WINDOW_COLUMNS)])


def columns_to_add(target: str, table: pa.Schema, rows: pa.Schema, *, widen: bool) -> pa.Schema:
    """New columns, and structs with new fields, that a table must get before rows go into it; mostly none.

    Args:
        target: the table's name.
        table: its columns, those of the window among them.
        rows: as `columns_of_rows` gives them.
        widen: whether it may get any.

    Raises:
        SinkError: it must not, or it has columns that these cannot go into, with the difference.
    """
    plain = pa.schema([one.with_type(_plain(one.type)) for one in table])
    return lake_columns.columns_to_add(target, plain, rows, widen=widen)


def is_by_window(table: pa.Schema, partition_columns: list[str]) -> bool:
    """Whether a table is laid out as ours are."""
    own = {one.name: one.type for one in table}
    return partition_columns == list(WINDOW_COLUMNS) and all(own.get(name) == MOMENT for name in WINDOW_COLUMNS)


def has_local_times(columns: pa.Schema) -> bool:
    """Whether there are times of no zone, which are a feature that a table must say it has."""
    return any(type_ == LOCAL_TIME for one in columns for type_ in _within(one.type))


def _delta_type(type_: pa.DataType) -> pa.DataType | None:
    """How values are kept, as no engine takes them for something else; None: they cannot be."""
    if type_ in _SAME:
        return type_
    if type_ in _BECOMES:
        return _BECOMES[type_]
    match type_:
        case pa.TimestampType():
            return LOCAL_TIME if type_.tz is None else MOMENT
        case pa.Decimal128Type():
            return type_ if 0 <= type_.scale <= type_.precision else None
        case pa.DictionaryType():
            return _delta_type(type_.value_type)
    return None if not pa.types.is_nested(type_) else _nested(type_)


def _nested(type_: pa.DataType) -> pa.DataType | None:
    match type_:
        case pa.ListType() | pa.LargeListType() | pa.FixedSizeListType():
            inner = _delta_type(type_.value_type)
            return None if inner is None else list_of(inner)
        case pa.MapType():
            key, value = _delta_type(type_.key_type), _delta_type(type_.item_type)
            return None if key is None or value is None else pa.map_(key, value)
        case pa.StructType():
            inside = [(one.name, _delta_type(one.type)) for one in type_]
            lower = {name.lower() for name, _ in inside}
            if not inside or len(lower) < len(inside):
                return None
            fields = [pa.field(name, inner) for name, inner in inside if inner is not None]
            return pa.struct(fields) if len(fields) == len(inside) else None
    return None


def _plain(type_: pa.DataType) -> pa.DataType:
    """A table's own type, as `_delta_type` writes it; one that it would not write as it is."""
    return _delta_type(type_) or type_


def _within(type_: pa.DataType) -> Iterator[pa.DataType]:
    yield type_
    if pa.types.is_nested(type_):
        for index in range(type_.num_fields):
            yield from _within(type_.field(index).type)


def _names_within(type_: pa.DataType) -> Iterator[str]:
    """The names of all fields of structs; what the parts of lists and maps are called is the table's matter."""
    for one in _within(type_):
        if isinstance(one, pa.StructType):
            yield from (field.name for field in one)
