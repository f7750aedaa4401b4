"""The types of columns: how each format names them. Code converts by this table, and the documentation prints it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Unit: TypeAlias = Literal["d", "s", "ms", "us", "ns"]
"""What a time counts that is written as a number, from 1970 or from midnight."""

UNITS: Final = ("d", "s", "ms", "us", "ns")
TIMES: Final = ("date", "time", "timestamp", "timestamp_ntz")

MOST_DIGITS: Final = 38
"""Of a decimal, in Spark as in Arrow."""

MOST_LEAVES: Final = 5_000
"""Columns, counted to the innermost: a schema of a few lines may unfold to millions."""

MOST_DEPTH: Final = 64
"""Types within types."""


@dataclass(frozen=True, slots=True)
class TypeNames:
    """One type as each format names it. An empty name: the format has no such type."""

    word: str
    """In the columns that users write, in plans and in messages."""
    spark: str
    """As `DataType.simpleString` writes it; users may write it as well."""
    arrow: str
    """Of the columns of a read, as `str(pa.DataType)` begins."""
    iceberg: str
    delta: str
    parquet: str
    """The physical type, and the logical one."""
    holds: str
    also: tuple[str, ...] = ()
    """Other words that users may write."""


SIMPLE_TYPES: Final = (
    TypeNames("boolean", "boolean", "bool", "boolean", "boolean", "BOOLEAN", "true or false"),
    TypeNames("byte", "tinyint", "int8", "int", "byte", "INT32, Int(8)", "whole numbers of 8 bits"),
    TypeNames("short", "smallint", "int16", "int", "short", "INT32, Int(16)", "whole numbers of 16 bits"),
    TypeNames("int", "int", "int32", "int", "integer", "INT32", "whole numbers of 32 bits", ("integer",)),
    TypeNames("long", "bigint", "int64", "long", "long", "INT64", "whole numbers of 64 bits"),
    TypeNames("float", "float", "float", "float", "float", "FLOAT", "binary fractions of 32 bits", ("real",)),
    TypeNames("double", "double", "double", "double", "double", "DOUBLE", "binary fractions of 64 bits"),
    TypeNames("string", "string", "string", "string", "string", "BYTE_ARRAY, String", "text in UTF-8"),
    TypeNames("binary", "binary", "binary", "binary", "binary", "BYTE_ARRAY", "bytes"),
    TypeNames("date", "date", "date32[day]", "date", "date", "INT32, Date", "days"),
    TypeNames(
        "time", "time(6)", "time64[ns]", "time", "", "INT64, Time(us)", "times of a day; in tables to the microsecond"
    ),
    TypeNames(
        "timestamp", "timestamp", "timestamp[us, tz=UTC]", "timestamptz", "timestamp", "INT64, Timestamp(us, UTC)",
        "moments, to the microsecond", ("timestamp_ltz",),
    ),
    TypeNames(
        "timestamp_ntz", "timestamp_ntz", "timestamp[us]", "timestamp", "timestamp_ntz", "INT64, Timestamp(us)",
        "times of a clock without a zone, to the microsecond",
    ),
)  # fmt: skip
"""The types of one word; of whole numbers and of fractions, the narrow ones come first."""

DECIMAL: Final = TypeNames(
    "decimal(p,s)", "decimal(p,s)", "decimal128(p, s)", "decimal(p, s)", "decimal(p,s)",
    "INT32, INT64 or FIXED_LEN_BYTE_ARRAY, Decimal(p, s)",
    "exact numbers of up to 38 digits, `s` of them after the point", ("dec", "numeric"),
)  # fmt: skip

NESTED_TYPES: Final = (
    TypeNames("array<t>", "array<t>", "list<t>", "list<t>", "array<t>", "a group, List", "values of one type"),
    TypeNames("map<k,v>", "map<k,v>", "map<k, v>", "map<k, v>", "map<k,v>", "a group, Map", "values by key"),
    TypeNames(
        "struct<name: t>", "struct<name:t>", "struct<name: t>", "struct<name: t>", "struct<name:t>", "a group",
        "fields by name",
    ),
)  # fmt: skip

TYPES: Final = (*SIMPLE_TYPES, DECIMAL, *NESTED_TYPES)

WORDS: Final = tuple(one.word for one in SIMPLE_TYPES)
"""Every type of one word. `timestamp` is a moment, `timestamp_ntz` a wall clock's time of no zone."""

SPARK_NAMES: Final = {one.word: one.spark for one in SIMPLE_TYPES}

SPELLINGS: Final = {name: one.word for one in SIMPLE_TYPES for name in (one.word, one.spark, *one.also)}
"""All that users may write for these types, and the word of each."""

NUMBERS: Final = (("byte", "short", "int", "long"), ("float", "double"))
"""Whole numbers and fractions, from narrow to wide: tables may promote each to those after it."""
