"""Columns of a table of Spark's: what it lacks of a window's rows, and rows as the table has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType, TimestampType

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS, check_names, columns_to_add
from airflow_provider_streams.spark.frames import arrow_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from airflow_provider_streams.model.window import Window

Addition = tuple[str, DataType]
"""Where a new column or field goes, as SQL names it; and its type."""

_WINDOW_FIELDS: Final = [StructField(name, TimestampType()) for name in WINDOW_COLUMNS]


def columns_of_rows(target: str, rows: StructType) -> StructType:
    """The columns that a table needs for rows, those of the window among them.

    Raises:
        SinkError: the rows have columns that no table can have.
    """
    check_names(target, rows.names)
    return StructType([*rows.fields, *_WINDOW_FIELDS])


def additions(target: str, table: StructType, wanted: StructType, *, widen: bool) -> list[Addition]:
    """What a table must get to have all wanted columns; mostly nothing.

    Raises:
        SinkError: it must not get it, or it has columns that these cannot go into, with the difference.
    """
    needed = columns_to_add(target, _arrow(target, table), _arrow(target, wanted), widen=widen)
    return list(_new(table, StructType([one for one in wanted if one.name in needed.names]), ()))


def as_stored(rows: DataFrame, window: Window, table: StructType) -> DataFrame:
    """A window's rows with the columns of a table, in their order; what they and their structs lack is null."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - only where Spark runs

    edges = {name: F.lit(edge) for name, edge in zip(WINDOW_COLUMNS, (window.start, window.end), strict=True)}
    wanted = {one.name: one.dataType for one in table}
    own = {one.name: _grown(F.col(quoted(one.name)), one.dataType, wanted.get(one.name)) for one in rows.schema}
    known = own | edges
    return rows.select(
        *(known.get(one.name, F.lit(None).cast(one.dataType)).alias(one.name, metadata={}) for one in table)
    )


def quoted(*names: str) -> str:
    """A name as SQL takes it, whatever is in it."""
    return ".".join(f"`{name.replace('`', '``')}`" for name in names)


def ddl(type_: DataType) -> str:
    """A type as SQL takes it."""
    match type_:
        case StructType():
            return f"struct<{', '.join(f'{quoted(one.name)}: {ddl(one.dataType)}' for one in type_)}>"
        case ArrayType():
            return f"array<{ddl(type_.elementType)}>"
        case MapType():
            return f"map<{ddl(type_.keyType)}, {ddl(type_.valueType)}>"
    return type_.simpleString()


def _grown(values: Column, own: DataType, wanted: DataType | None) -> Column:
    """Values whose structs have all fields of a table's, which Spark asks for; what a table's lack is left to it."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - only where Spark runs

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
    return values


def _new(own: DataType, wanted: DataType, path: tuple[str, ...]) -> Iterator[Addition]:
    match own, wanted:
        case StructType(), StructType():
            known = {one.name: one.dataType for one in own}
            for one in wanted:
                inside = (*path, one.name)
                if one.name in known:
                    yield from _new(known[one.name], one.dataType, inside)
                else:
                    yield quoted(*inside), one.dataType
        case ArrayType(), ArrayType():
            yield from _new(own.elementType, wanted.elementType, (*path, "element"))
        case MapType(), MapType():
            yield from _new(own.valueType, wanted.valueType, (*path, "value"))


def _arrow(target: str, columns: StructType) -> pa.Schema:
    """For the rule that is the same for all kinds of tables."""
    try:
        return arrow_columns(columns)
    except PySparkException as error:
        raise SinkError(target, f"a column is of a type that has no rule: {' '.join(str(error).split())}") from error
