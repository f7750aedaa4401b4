"""Spark's names of Arrow's types, without Spark. Field names have backticks where they need them."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from airflow_provider_streams.formats.arrow.arrow_types import SIMPLE
from airflow_provider_streams.model.schema.type_table import SPARK_NAMES
from airflow_provider_streams.model.schema.types import quoted
from airflow_provider_streams.model.sinks.landing import Schema

_NAMES: Final = {SIMPLE[word]: name for word, name in SPARK_NAMES.items()}


def spark_name(type_: pa.DataType) -> str:
    """The name of a type that reads give."""
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
            name = f"struct<{','.join(f'{quoted(one.name)}:{spark_name(one.type)}' for one in type_)}>"
        case pa.DictionaryType():
            name = spark_name(type_.value_type)
    if name is None:
        raise AssertionError(f"no column of a read has the type {type_}")
    return name


def spark_names(rows: pa.Schema) -> Schema:
    """The columns with Spark's names of their types."""
    return tuple((one.name, spark_name(one.type)) for one in rows)
