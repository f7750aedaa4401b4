"""Columns of an Iceberg table: which rows it can hold, their field ids, and the columns that it must get for others."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyiceberg.io.pyarrow import pyarrow_to_schema, schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.types import NestedField

from airflow_provider_streams.errors import SinkError, TableUnavailable
from airflow_provider_streams.lake import columns as lake_columns
from airflow_provider_streams.lake.column_types import MOMENT, kept_type, kept_types, map_of, text_of
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS, fields_within, parts_of, wide_as
from airflow_provider_streams.model.window.window import Window

FIELD_ID = b"PARQUET:field_id"
"""In a field's metadata: its number in files and tables."""

_KEPT: Final[dict[pa.DataType, pa.DataType]] = {
    **kept_types("iceberg"),
    **dict.fromkeys((pa.uint8(), pa.uint16()), pa.int32()),
    pa.uint32(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
    **dict.fromkeys((pa.time32("s"), pa.time32("ms")), pa.time64("us")),
}

_RESERVED: Final = frozenset(
    ("_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number")
)
"""Columns that each table has, see "Reserved Field IDs" of the specification.

Spark cannot select from a table with another column of such a name, nor delete there, nor compact it.
"""


def columns_of_rows(target: str, rows: pa.Schema) -> pa.Schema:
    """See `lake.columns.columns_of_rows`. `SinkError`: Iceberg has no such type, or the name is taken."""
    taken = [name for name in rows.names if name.lower() in _RESERVED]
    if taken:
        raise SinkError(
            target,
            f"the rows have a column {taken[0]!r}, which Iceberg gives to every table: select other columns, or rename "
            "it in a transform",
        )
    return stored_columns(target, rows)


def stored_columns(target: str, rows: pa.Schema) -> pa.Schema:
    """As `columns_of_rows`, for rows of an existing table."""
    return lake_columns.columns_of_rows(target, rows, "Iceberg", partial(kept_type, leaf=_kept))


def columns_of_table(columns: pa.Schema) -> pa.Schema:
    """The columns of a table that is made for rows, with the window columns and field ids."""
    return _with_ids(pa.schema([*columns, *window_fields()]), itertools.count(1).__next__)


def window_fields() -> list[pa.Field[Any]]:
    """The columns that are alike in all rows of a window."""
    return [pa.field(name, MOMENT, nullable=False) for name in WINDOW_COLUMNS]


def as_stored(columns: pa.Schema, table: Schema) -> pa.Schema:
    """Columns with the field ids that they have in a table."""
    ids = iter([table.find_field(path).field_id for one in columns for path, _ in fields_within(one)])
    return _with_ids(columns, ids.__next__)


def check_same_columns(target: str, written: pa.Schema, table: Schema) -> None:
    """Raise `TableUnavailable` if a table no longer has the columns that were written, with their field ids.

    Readers go by the ids. The next attempt writes the new columns.
    """
    try:
        is_same = as_stored(written, table).equals(written, check_metadata=True)
    except (ValueError, KeyError):  # one is not there
        is_same = False
    if not is_same:
        raise TableUnavailable(
            target,
            "columns were dropped, renamed or added while rows were written for the old ones: nothing was changed, "
            "and the next attempt writes the new columns",
        )


def window_constants(window: Window, table: Schema) -> pa.RecordBatch:
    """The values of the window columns, with the table's field ids."""
    schema = as_stored(pa.schema(window_fields()), table)
    edges = [pa.array([edge], MOMENT) for edge in (window.start, window.end)]
    return pa.RecordBatch.from_arrays(edges, schema=schema)


def columns_to_add(target: str, table: Schema, rows: pa.Schema, *, widen: bool) -> pa.Schema:
    """See `lake.columns.columns_to_add`; `rows` are as `columns_of_rows` gives them."""
    names = {one.name.lower() for one in (*rows, *window_fields())}
    own = Schema(*(one for one in table.fields if one.required or one.name.lower() in names))
    both = (own, pyarrow_to_schema(columns_of_table(rows)))
    have, wanted = (schema_to_pyarrow(one, include_field_ids=False) for one in both)
    return lake_columns.columns_to_add(target, have, wanted, widen=widen)


def replace_columns(update: UpdateSchema, table: Schema, columns: pa.Schema) -> None:
    """Give a table exactly the columns for these rows. Columns that do not change keep their field ids."""
    wanted = pyarrow_to_schema(columns_of_table(columns)).fields
    alike = {_without_ids(one) for one in wanted}
    kept = {one.name for one in table.fields if _without_ids(one) in alike}
    for one in table.fields:
        if one.name not in kept:
            update.delete_column((one.name,))
    for one in wanted:
        if one.name not in kept:
            update.add_column((one.name,), one.field_type)


def begin_columns(update: UpdateSchema, table: Schema, columns: pa.Schema) -> None:
    """Give a table that holds nothing these columns alone, in their order."""
    for one in table.fields:
        update.delete_column((one.name,))
    for one in pyarrow_to_schema(_with_ids(columns, itertools.count(1).__next__)).fields:
        update.add_column((one.name,), one.field_type)


def as_wide(columns: pa.Schema, table: Schema) -> pa.Schema:
    """The rows' columns, with numbers as wide as the table's."""
    own = Schema(*(one for one in table.fields if one.name in columns.names))
    return wide_as(columns, schema_to_pyarrow(own, include_field_ids=False))


def addition(columns: pa.Schema) -> Schema:
    """What a table must get to have these columns: nullable, for its own rows have no values there."""
    fields = [one.with_nullable(True) for one in columns_of_table(columns)]
    return pyarrow_to_schema(pa.schema(fields))


def _kept(type_: pa.DataType) -> pa.DataType | None:
    match type_:
        case pa.Decimal128Type():
            return type_ if type_.scale >= 0 else None
        case pa.Decimal256Type():
            return None
        case pa.FixedSizeBinaryType():
            return type_
    return _KEPT.get(type_)


def _with_ids(columns: pa.Schema, next_id: Callable[[], int]) -> pa.Schema:
    """Columns with field ids, in the order of `fields_within`."""

    def walk(field: pa.Field[Any]) -> pa.Field[Any]:
        own = {FIELD_ID: str(next_id()).encode()}
        inner = [walk(one) for one in parts_of(field.type)]
        return pa.field(field.name, _rebuilt(field.type, inner), field.nullable, metadata=own)

    return pa.schema([walk(one) for one in columns])


def _rebuilt(type_: pa.DataType, inner: list[pa.Field[Any]]) -> pa.DataType:
    match type_:
        case pa.ListType():
            return pa.list_(inner[0])
        case pa.MapType():
            return map_of(inner[0], inner[1])
        case pa.StructType():
            return pa.struct(inner)
    return type_


def _without_ids(field: NestedField) -> tuple[str, str, bool]:
    type_: Any = schema_to_pyarrow(field.field_type, include_field_ids=False)  # the stubs know only whole schemas
    return field.name, text_of(type_), field.required
