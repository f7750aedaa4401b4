"""Row types as Arrow types: the same ones that Spark's types become."""

from __future__ import annotations

from typing import Any, Final, cast

import pyarrow as pa

from airflow_provider_streams.model.schema.type_table import SIMPLE_TYPES
from airflow_provider_streams.model.schema.types import ArrayOf, Decimal, MapOf, Simple, StructOf, Type

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")

_named: Any = pa.type_for_alias  # the stubs know only literal names

SIMPLE: Final[dict[str, pa.DataType]] = {
    one.word: TIMESTAMP if one.word == "timestamp" else _named(one.arrow) for one in SIMPLE_TYPES
}


def arrow_type(type_: Type) -> pa.DataType:
    """The Arrow type of values: everything can be null except keys of maps."""
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
            return pa.struct([pa.field(one.name, arrow_type(one.type)) for one in fields])


def entry_type(kind: pa.DataType) -> pa.StructType:
    """The Arrow type of a map's entries."""
    found = cast("pa.MapType[Any, Any]", kind)
    return pa.struct([found.key_field, found.item_field])
