"""Columns of a table in Spark's catalogs: what it must get to hold rows, and the rows in its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType, TimestampType

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS, check_names, columns_to_add
from airflow_provider_streams.model.schema import types as row_types
from airflow_provider_streams.model.schema.column_type import wider
from airflow_provider_streams.spark.job.dataframes import arrow_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from airflow_provider_streams.model.sinks.landing import Schema
    from airflow_provider_streams.model.window.window import Window


class Change(NamedTuple):
    """A column or field that a table must get, or a number that becomes wider."""

    path: str
    """In SQL."""
    type: DataType
    is_new: bool


_WINDOW_FIELDS: Final = [StructField(name, TimestampType()) for name in WINDOW_COLUMNS]


def columns_of_rows(target: str, rows: StructType) -> StructType:
    """The columns that a table needs for rows, with the window columns. `SinkError`: no table can have them."""
    check_names(target, rows.names)
    return StructType([*rows.fields, *_WINDOW_FIELDS])


def additions(target: str, table: StructType, wanted: StructType, *, widen: bool) -> list[Change]:
    """The columns and fields that a table must get to have all wanted ones. `SinkError`: it may not, or cannot."""
    needed = columns_to_add(target, _arrow(target, table), _arrow(target, wanted), widen=widen)
    found = changes(table, StructType([one for one in wanted if one.name in needed.names]))
    return [one for one in found if one.is_new]


def changes(table: DataType, wanted: DataType, path: tuple[str, ...] = ()) -> Iterator[Change]:
    """What a table must get to hold wanted columns: new ones, new fields, and wider numbers."""
    match table, wanted:
        case StructType(), StructType():
            for one in wanted:
                inside = (*path, one.name)
                if one.name in table.names:
                    yield from changes(table[one.name].dataType, one.dataType, inside)
                else:
                    yield Change(quoted(*inside), one.dataType, is_new=True)
        case ArrayType(), ArrayType():
            yield from changes(table.elementType, wanted.elementType, (*path, "element"))
        case MapType(), MapType():
            yield from changes(table.valueType, wanted.valueType, (*path, "value"))
        case _:
            own = table.simpleString()
            if wider(own, wanted.simpleString()) not in (None, own):
                yield Change(quoted(*path), wanted, is_new=False)


def as_stored(rows: DataFrame, window: Window, table: StructType) -> DataFrame:
    """A window's rows in a table's columns and their order; columns and fields that the rows lack are null."""
    edges = {name: F.lit(edge) for name, edge in zip(WINDOW_COLUMNS, (window.start, window.end), strict=True)}
    wanted = {one.name: one.dataType for one in table}
    own = {one.name: _grown(F.col(quoted(one.name)), one.dataType, wanted.get(one.name)) for one in rows.schema}
    known = own | edges
    return rows.select(
        *(known.get(one.name, F.lit(None).cast(one.dataType)).alias(one.name, metadata={}) for one in table)
    )


def quoted(*names: str) -> str:
    """A name in SQL, whatever is in it."""
    return ".".join(f"`{name.replace('`', '``')}`" for name in names)


def ddl(type_: DataType, name: Callable[[str], str] = quoted) -> str:
    """A type in SQL; `name` writes the names of fields."""
    match type_:
        case StructType():
            return f"struct<{','.join(f'{name(one.name)}:{ddl(one.dataType, name)}' for one in type_)}>"
        case ArrayType():
            return f"array<{ddl(type_.elementType, name)}>"
        case MapType():
            return f"map<{ddl(type_.keyType, name)},{ddl(type_.valueType, name)}>"
    return type_.simpleString()


def table_columns(rows: StructType) -> Schema:
    """The columns of a DataFrame in the journal's form."""
    return tuple((one.name, ddl(one.dataType, row_types.quoted)) for one in rows)


def _grown(values: Column, own: DataType, wanted: DataType | None) -> Column:
    """Values with all fields of the table's structs, which Spark requires, and with numbers as wide as the table's."""
    if wanted is None or own.simpleString() == wanted.simpleString():
        return values
    match own, wanted:
        case StructType(), StructType() if set(own.names) <= set(wanted.names):
            known = {
                one.name: _grown(values.getField(one.name), one.dataType, wanted[one.name].dataType) for one in own
            }
            fields = [known.get(one.name, F.lit(None).cast(one.dataType)).alias(one.name) for one in wanted]
            return F.when(values.isNotNull(), F.struct(*fields))
        case ArrayType(), ArrayType():
            return F.transform(values, lambda one: _grown(one, own.elementType, wanted.elementType))
        case MapType(), MapType():
            return F.transform_values(values, lambda _, one: _grown(one, own.valueType, wanted.valueType))
    is_wider = wider(own.simpleString(), wanted.simpleString()) == wanted.simpleString()
    return values.cast(wanted) if is_wider else values


def _arrow(target: str, columns: StructType) -> pa.Schema:
    """For `columns_to_add`, which compares Arrow's types."""
    try:
        return arrow_columns(columns)
    except PySparkException as error:
        raise SinkError(target, f"a column is of a type that has no rule: {' '.join(str(error).split())}") from error
