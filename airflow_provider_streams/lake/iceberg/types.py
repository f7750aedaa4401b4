"""Columns of an Iceberg table: which rows it can hold, their field ids, and what it must get to hold others."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyiceberg.io.pyarrow import pyarrow_to_schema
from pyiceberg.schema import Schema
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.types import IcebergType, ListType, MapType, StructType

from airflow_provider_streams.errors import SinkError, TableUnavailable
from airflow_provider_streams.lake import columns as lake_columns
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS
from airflow_provider_streams.lake.types import MOMENT, list_of, stored_type
from airflow_provider_streams.model.window import Window

FIELD_ID = b"PARQUET:field_id"
"""In a field's metadata: its number in files and tables."""

_SAME: Final = frozenset(
    (
        *(pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary()),
        *(pa.date32(), pa.time64("us"), pa.timestamp("us"), MOMENT),
    )
)
_BECOMES: Final[dict[pa.DataType, pa.DataType]] = {
    **dict.fromkeys((pa.int8(), pa.int16(), pa.uint8(), pa.uint16()), pa.int32()),
    pa.uint32(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
    **dict.fromkeys((pa.time32("s"), pa.time32("ms")), pa.time64("us")),
}


_RESERVED: Final = frozenset(
    ("_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number")
)
"""What each table has by itself, see "Reserved Field IDs" of the specification.

Spark selects nothing from a table that has a column of such a name, nor does it delete there, or compact.
"""


def columns_of_rows(target: str, rows: pa.Schema) -> pa.Schema:
    """The columns that rows of a schema are in a table, all of which can be null; without those of the window.

    Raises:
        SinkError: Iceberg has no such type, or the name is taken.
    """
    taken = [name for name in rows.names if name.lower() in _RESERVED]
    if taken:
        raise SinkError(
            target,
            f"the rows have a column {taken[0]!r}, which Iceberg gives to every table: select other columns, or rename "
            "it in a transform",
        )
    return stored_columns(target, rows)


def stored_columns(target: str, rows: pa.Schema) -> pa.Schema:
    """As `columns_of_rows`, for rows of a table that is there.

    Raises:
        SinkError: it has a column of a type that we do not write.
    """
    return lake_columns.columns_of_rows(target, rows, "Iceberg", lambda type_: _iceberg_type(stored_type(type_)))


def columns_of_table(columns: pa.Schema) -> pa.Schema:
    """The columns of a table that is made for rows, those of the window among them; with field ids."""
    return _with_ids(pa.schema([*columns, *window_fields()]), itertools.count(1).__next__)


def window_fields() -> list[pa.Field[Any]]:
    """The columns that are alike in all rows of a window."""
    return [pa.field(name, MOMENT, nullable=False) for name in WINDOW_COLUMNS]


def as_stored(columns: pa.Schema, table: Schema) -> pa.Schema:
    """Columns with the field ids that they have in a table."""
    paths = list(_paths(columns))
    ids = iter([table.find_field(path).field_id for path in paths])
    return _with_ids(columns, ids.__next__)


def check_same_columns(target: str, written: pa.Schema, table: Schema) -> None:
    """See that columns which were written with a table's field ids are its columns still: readers go by the ids.

    Raises:
        TableUnavailable: they are not; who begins anew writes the columns of now.
    """
    try:
        is_same = as_stored(written, table).equals(written, check_metadata=True)
    except (ValueError, KeyError):  # one is not there
        is_same = False
    if not is_same:
        raise TableUnavailable(
            target,
            "somebody dropped, renamed or added columns while rows were written for those of before: nothing was "
            "changed, and the next attempt writes the columns of now",
        )


def window_constants(window: Window, table: Schema) -> pa.RecordBatch:
    """What is alike in all rows of a window, with the field ids that a table has for it."""
    schema = as_stored(pa.schema(window_fields()), table)
    edges = [pa.array([edge], MOMENT) for edge in (window.start, window.end)]
    return pa.RecordBatch.from_arrays(edges, schema=schema)


def differences(table: Schema, columns: pa.Schema) -> tuple[list[str], list[str]]:
    """What a table lacks of a window's columns and could get; and what is in the way."""
    wanted = pyarrow_to_schema(columns_of_table(columns))
    lower = {name.lower(): name for name in table.column_names if "." not in name}
    lacking, wrong = [], []
    for field in wanted.fields:
        have = next((one for one in table.fields if one.name == field.name), None)
        if have is None and field.name.lower() in lower:
            wrong.append(f"{field.name} is called {lower[field.name.lower()]} there")
        elif have is None:
            lacking.append(f"{field.name} {_text(field.field_type)}")
        elif not _grows(have.field_type, field.field_type):
            wrong.append(f"{field.name} is {_text(have.field_type)}, the rows have {_text(field.field_type)}")
        elif not _has(have.field_type, field.field_type):
            lacking.append(f"{field.name} as {_text(field.field_type)}")
        elif have.required and field.name not in WINDOW_COLUMNS:
            wrong.append(f"{field.name} must not be null there, and may be in the rows")
    names = {field.name for field in wanted.fields}
    wrong += [
        f"{one.name} must not be null there, and the rows lack it"
        for one in table.fields
        if one.required and one.name not in names
    ]
    return lacking, wrong


def replace_columns(update: UpdateSchema, table: Schema, columns: pa.Schema) -> None:
    """Let a table have the columns of a window, and no others. Those that stay as they are keep their field ids."""
    wanted = pyarrow_to_schema(columns_of_table(columns)).fields
    alike = {(one.name, _shape(one.field_type), one.required) for one in wanted}
    kept = {one.name for one in table.fields if (one.name, _shape(one.field_type), one.required) in alike}
    for one in table.fields:
        if one.name not in kept:
            update.delete_column((one.name,))
    for one in wanted:
        if one.name not in kept:
            update.add_column((one.name,), one.field_type)


def addition(columns: pa.Schema) -> Schema:
    """For a table that gets what it lacks of these columns: rows that it has are null there."""
    fields = [one.with_nullable(True) for one in columns_of_table(columns)]
    return pyarrow_to_schema(pa.schema(fields))


def _iceberg_type(type_: pa.DataType) -> pa.DataType | None:
    if type_ in _SAME or (isinstance(type_, pa.Decimal128Type) and type_.scale >= 0):
        return type_
    if isinstance(type_, pa.FixedSizeBinaryType) and not isinstance(type_, pa.Decimal128Type | pa.Decimal256Type):
        return type_
    return _nested(type_) if pa.types.is_nested(type_) else _BECOMES.get(type_)


def _nested(type_: pa.DataType) -> pa.DataType | None:
    match type_:
        case pa.ListType() | pa.LargeListType():
            element = _iceberg_type(type_.value_type)
            return None if element is None else list_of(element)
        case pa.MapType():
            key, value = _iceberg_type(type_.key_type), _iceberg_type(type_.item_type)
            if key is None or value is None:
                return None
            return _map_of(pa.field("key", key, nullable=False), pa.field("value", value))
        case pa.StructType():
            inner = [(one.name, _iceberg_type(one.type)) for one in type_]
            if not inner or any(one is None for _, one in inner):
                return None
            return pa.struct([pa.field(name, one) for name, one in inner if one is not None])
    return None


def _paths(columns: pa.Schema) -> Iterator[str]:
    """The names that Iceberg gives to all fields, in the order of `_with_ids`."""

    def walk(field: pa.Field[Any], path: str) -> Iterator[str]:
        yield path
        for inner in _inner(field.type):
            yield from walk(inner, f"{path}.{inner.name}")

    for one in columns:
        yield from walk(one, one.name)


def _with_ids(columns: pa.Schema, next_id: Callable[[], int]) -> pa.Schema:
    def walk(field: pa.Field[Any]) -> pa.Field[Any]:
        own = {FIELD_ID: str(next_id()).encode()}
        inner = [walk(one) for one in _inner(field.type)]
        return pa.field(field.name, _rebuilt(field.type, inner), field.nullable, metadata=own)

    return pa.schema([walk(one) for one in columns])


def _inner(type_: pa.DataType) -> list[pa.Field[Any]]:
    match type_:
        case pa.ListType():
            return [type_.value_field]
        case pa.MapType():
            return [type_.key_field, type_.item_field]
        case pa.StructType():
            return list(type_)
    return []


def _rebuilt(type_: pa.DataType, inner: list[pa.Field[Any]]) -> pa.DataType:
    match type_:
        case pa.ListType():
            return pa.list_(inner[0])
        case pa.MapType():
            return _map_of(inner[0], inner[1])
        case pa.StructType():
            return pa.struct(inner)
    return type_


def _map_of(key: Any, value: Any) -> pa.DataType:
    """Of fields, which pyarrow's stubs do not know."""
    made: pa.DataType = pa.map_(key, value)
    return made


def _shape(type_: IcebergType) -> object:
    """A type without its ids, and without what may be null."""
    match type_:
        case StructType():
            return tuple((one.name, _shape(one.field_type)) for one in sorted(type_.fields, key=lambda one: one.name))
        case ListType():
            return ("list", _shape(type_.element_type))
        case MapType():
            return ("map", _shape(type_.key_type), _shape(type_.value_type))
    return str(type_)


def _text(type_: IcebergType) -> str:
    """For people, to whom the ids of fields say nothing."""
    match type_:
        case StructType():
            return f"struct<{', '.join(f'{one.name} {_text(one.field_type)}' for one in type_.fields)}>"
        case ListType():
            return f"list<{_text(type_.element_type)}>"
        case MapType():
            return f"map<{_text(type_.key_type)}, {_text(type_.value_type)}>"
    return str(type_)


def _grows(have: IcebergType, wanted: IcebergType) -> bool:
    """Whether one type can become one that holds the other's values by getting more fields."""
    match have, wanted:
        case StructType(), StructType():
            known = {one.name: one.field_type for one in have.fields}
            named = {one.name for one in wanted.fields}
            same = all(_grows(known[one.name], one.field_type) for one in wanted.fields if one.name in known)
            return same and not any(one.required and one.name not in named for one in have.fields)
        case ListType(), ListType():
            return _grows(have.element_type, wanted.element_type)
        case MapType(), MapType():
            return str(have.key_type) == str(wanted.key_type) and _grows(have.value_type, wanted.value_type)
    return _shape(have) == _shape(wanted)


def _has(have: IcebergType, wanted: IcebergType) -> bool:
    """Whether one type, which can hold another one's values once it has its fields, has them already."""
    match have, wanted:
        case StructType(), StructType():
            known = {one.name: one.field_type for one in have.fields}
            return all(one.name in known and _has(known[one.name], one.field_type) for one in wanted.fields)
        case ListType(), ListType():
            return _has(have.element_type, wanted.element_type)
        case MapType(), MapType():
            return _has(have.value_type, wanted.value_type)
    return True
