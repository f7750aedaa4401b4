"""The types of a table's columns: times in microseconds, as Spark, Iceberg and Delta have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, cast

import pyarrow as pa

from airflow_provider_streams.model.schema.type_table import SIMPLE_TYPES

MOMENT: Final = pa.timestamp("us", "UTC")

_named: Any = pa.type_for_alias  # the stubs know only literal names
_ARROW: Final[dict[str, pa.DataType]] = {
    one.word: MOMENT if one.word == "timestamp" else _named(one.arrow) for one in SIMPLE_TYPES
}

SPARK_NAMES: Final = {_ARROW[one.word]: one.spark for one in SIMPLE_TYPES}

_WORDS: Final = {
    **{type_: word for word, type_ in _ARROW.items()},
    pa.large_string(): "string",
    pa.large_binary(): "binary",
    pa.time64("us"): "time",
}

Leaf = Callable[[pa.DataType], pa.DataType | None]


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of a table of any kind that is made for rows of a schema."""
    return pa.schema([pa.field(one.name, stored_type(one.type), one.nullable) for one in schema])


def stored_type(type_: pa.DataType) -> pa.DataType:
    """How a table of any kind stores a type."""
    return kept_type(type_, lambda one: one) or type_


def kept_types(kind: Literal["iceberg", "delta"]) -> dict[pa.DataType, pa.DataType]:
    """Which type a kind of table uses for each type: the widest one of the same name in that format."""
    stored = [(getattr(one, kind), stored_type(_ARROW[one.word])) for one in SIMPLE_TYPES]
    widest = dict(stored)
    return {type_: widest[name] for name, type_ in stored if name}


def kept_type(type_: pa.DataType, leaf: Leaf) -> pa.DataType | None:
    """The type in which a table keeps values; None: it cannot. `leaf` decides for types without parts."""
    match type_:
        case pa.ListType() | pa.LargeListType() | pa.FixedSizeListType():
            element = kept_type(type_.value_type, leaf)
            return None if element is None else list_of(element)
        case pa.MapType():
            key, value = kept_type(type_.key_type, leaf), kept_type(type_.item_type, leaf)
            return None if key is None or value is None else pa.map_(key, value)
        case pa.StructType():
            fields = [pa.field(one.name, kept) for one in type_ if (kept := kept_type(one.type, leaf)) is not None]
            names = {one.name.lower() for one in fields}
            return pa.struct(fields) if fields and len(names) == type_.num_fields else None
        case pa.DictionaryType():
            return kept_type(type_.value_type, leaf)
        case pa.TimestampType():
            type_ = pa.timestamp("us", None if type_.tz is None else "UTC")
        case pa.Time64Type():
            type_ = pa.time64("us")
    return leaf(type_)


def text_of(type_: pa.DataType) -> str:
    """A type as users write it."""
    match type_:
        case pa.ListType() | pa.LargeListType():
            return f"list<{text_of(type_.value_type)}>"
        case pa.MapType():
            return f"map<{text_of(type_.key_type)}, {text_of(type_.item_type)}>"
        case pa.StructType():
            return f"struct<{', '.join(f'{one.name} {text_of(one.type)}' for one in type_)}>"
        case pa.Decimal128Type():
            return f"decimal({type_.precision}, {type_.scale})"
    return _WORDS.get(type_, str(type_))


def list_of(element: pa.DataType) -> pa.DataType:
    """A list with Iceberg's and Spark's name for its elements."""
    return cast("pa.DataType", pa.list_(pa.field("element", element)))


def map_of(key: Any, item: Any) -> pa.DataType:
    """A map of fields, which pyarrow's stubs do not know."""
    return cast("pa.DataType", pa.map_(key, item))
