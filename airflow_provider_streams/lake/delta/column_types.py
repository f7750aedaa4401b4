"""Columns of a Delta table: which rows it can hold, and the columns that it must get for others. Needs no delta-rs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake import columns as lake_columns
from airflow_provider_streams.lake.column_types import MOMENT, kept_type, kept_types
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS, fields_within

LOCAL_TIME: Final = pa.timestamp("us")

_KEPT: Final[dict[pa.DataType, pa.DataType]] = {
    **kept_types("delta"),
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
}
"""Delta has no unsigned numbers; delta-rs would read them as signed ones."""

_FORBIDDEN: Final = re.compile(r"[ ,;{}()=\x00-\x1f\x7f]")
"""Other engines refuse such names, or cut them there."""


def columns_of_rows(target: str, rows: pa.Schema) -> pa.Schema:
    """See `lake.columns.columns_of_rows`. `SinkError`: also if other engines refuse a name."""
    for one in rows:
        _check_name(target, f"column {one.name!r}", one.name)
        for name in _names_within(one.type):
            _check_name(target, f"field {name!r} of column {one.name!r}", name)
    return columns_of_files(target, rows)


def columns_of_files(target: str, columns: pa.Schema) -> pa.Schema:
    """The same for columns that a table already has, whatever their names are."""
    return lake_columns.columns_of_rows(target, columns, "Delta", _delta_type)


def _check_name(target: str, what: str, name: str) -> None:
    if not name or _FORBIDDEN.search(name):
        raise SinkError(
            target,
            f"{what} has a name that other engines refuse in a Delta table: none at all, or one with a space, a "
            "control character or one of , ; { } ( ) =. Name it otherwise in a transform, or select other columns",
        )


def columns_of_table(rows: pa.Schema) -> pa.Schema:
    """All columns of a new table for such rows."""
    return pa.schema([*rows, *(pa.field(name, MOMENT) for name in WINDOW_COLUMNS)])


def columns_to_add(target: str, table: pa.Schema, rows: pa.Schema, *, widen: bool) -> pa.Schema:
    """See `lake.columns.columns_to_add`; `rows` are as `columns_of_rows` gives them."""
    plain = pa.schema([one.with_type(_delta_type(one.type) or one.type) for one in table])
    return lake_columns.columns_to_add(target, plain, rows, widen=widen, stored=table)


def is_by_window(table: pa.Schema, partition_columns: list[str]) -> bool:
    """Whether a table is partitioned as ours are."""
    return partition_columns == list(WINDOW_COLUMNS) and has_windows(table, partition_columns)


def has_windows(table: pa.Schema, partition_columns: list[str]) -> bool:
    """Whether a table's partitions say which window a file is of; they may also say more."""
    own = {one.name: one.type for one in table}
    return all(name in partition_columns and own.get(name) == MOMENT for name in WINDOW_COLUMNS)


def has_local_times(columns: pa.Schema) -> bool:
    """Whether there are times without a zone, which need a table feature."""
    return any(field.type == LOCAL_TIME for one in columns for _, field in fields_within(one))


def _delta_type(type_: pa.DataType) -> pa.DataType | None:
    """The type in which all engines read the values alike; None: there is none."""
    return kept_type(type_, _kept)


def _kept(type_: pa.DataType) -> pa.DataType | None:
    if isinstance(type_, pa.Decimal128Type):
        return type_ if 0 <= type_.scale <= type_.precision else None
    return _KEPT.get(type_)


def _names_within(type_: pa.DataType) -> Iterator[str]:
    """The names of all fields of structs; the table names the parts of lists and maps itself."""
    for _, field in fields_within(pa.field("", type_)):
        if isinstance(field.type, pa.StructType):
            yield from field.type.names
