"""Arrow's types as Spark names them (`simpleString`), where there is no Spark."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from airflow_provider_streams.model.landing import Schema

_NAMES: Final[dict[pa.DataType, str]] = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.time64("ns"): "time(6)",
    pa.timestamp("us"): "timestamp_ntz",
}


def spark_name(type_: pa.DataType) -> str:
    """Of a type that reads give."""
    name = _NAMES.get(type_)
    match type_:
        case pa.TimestampType() if type_.tz is not None:
            name = "timestamp"
        case pa.Decimal128Type():
            name = f"decimal({type_.precision},{type_.scale})"
        case pa.MapType():
            name = f"map<{spark_name(type_.key_type)},{spark_name(type_.item_type)}>"
        case pa.ListType():
            name = f"array<{spark_name(type_.value_type)}>"
        case pa.StructType():
            name = f"struct<{','.join(f'{one.name}:{spark_name(one.type)}' for one in type_)}>"
        case pa.DictionaryType():
            name = spark_name(type_.value_type)
    if name is None:
        raise AssertionError(f"no column of a read has the type {type_}")
    return name


def spark_names(rows: pa.Schema) -> Schema:
    """Of all columns."""
    return tuple((one.name, spark_name(one.type)) for one in rows)
