"""The types of a table's columns: times in microseconds, as Spark, Iceberg and Delta have them."""

from __future__ import annotations

from typing import Final, cast

import pyarrow as pa

MOMENT: Final = pa.timestamp("us", "UTC")


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of a table that rows of a schema make."""
    return pa.schema([pa.field(one.name, stored_type(one.type), one.nullable) for one in schema])


def stored_type(type_: pa.DataType) -> pa.DataType:
    """What a column of a type is in a table."""
    stored = type_
    match type_:
        case pa.TimestampType():
            stored = pa.timestamp("us", None if type_.tz is None else "UTC")
        case pa.Time64Type():
            stored = pa.time64("us")
        case pa.DictionaryType():
            stored = stored_type(type_.value_type)
        case pa.ListType():
            stored = list_of(stored_type(type_.value_type))
        case pa.MapType():
            stored = pa.map_(stored_type(type_.key_type), stored_type(type_.item_type))
        case pa.StructType():
            stored = pa.struct([pa.field(one.name, stored_type(one.type)) for one in type_])
    return stored


def list_of(element: pa.DataType) -> pa.DataType:
    """A list, its elements named as in a table."""
    return cast("pa.DataType", pa.list_(pa.field("element", element)))
