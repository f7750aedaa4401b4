"""Row types as Arrow types: exactly those that Spark's types become."""

from __future__ import annotations

from typing import Final, cast

import pyarrow as pa

from airflow_provider_streams.model.row_type import ArrayOf, Decimal, Field, MapOf, Simple, StructOf, Type

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")

SIMPLE: Final[dict[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "time": pa.time64("ns"),
    "timestamp": TIMESTAMP,
    "timestamp_ntz": pa.timestamp("us"),
}


def arrow_type(type_: Type) -> pa.DataType:
    """The Arrow type of values; everything can be null but the keys of maps."""
    match type_:
        case Simple(word):
            return SIMPLE[word]
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case ArrayOf(element):
            return cast("pa.DataType", pa.list_(pa.field("element", arrow_type(element))))
        case MapOf(key, value):
            return cast("pa.DataType", pa.map_(arrow_type(key), arrow_type(value)))
        case StructOf(fields):
            return struct_type(fields)


def struct_type(fields: tuple[Field, ...]) -> pa.StructType:
    """The Arrow type of records."""
    return pa.struct([pa.field(one.name, arrow_type(one.type)) for one in fields])
