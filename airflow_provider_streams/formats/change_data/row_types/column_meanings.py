"""What the values of a column mean: how messages write them, and the column that they become.

| how | written as | column |
|---|---|---|
| `plain` | what the column holds | any |
| `bytes` | base64 in JSON, or bytes | binary |
| `decimal` | the unscaled number's bytes, as base64 in JSON | decimal |
| `digits` | text of a number, or base64 of a decimal's bytes, see `ChangeFormat.decimal_text` | decimal |
| `scaled` | `{scale, value}`: each value has its own scale | text of the number |
| `count` | a number of the unit | date, time, timestamp, timestamp_ntz |
| `iso` | ISO 8601 | date, time, timestamp, timestamp_ntz |
| `geometry` | `{wkb, srid}` | binary: the well-known binary form |
| `list`, `map`, `struct` | values that have meanings themselves | array, map, struct |
| `text` | text of the value, as Canal writes all of them | any that has no parts |
| `odd` | a time as a number, though nothing tells its unit | the time |

No Arrow, no numpy: planning uses it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from airflow_provider_streams.model.schema.type_table import Unit
from airflow_provider_streams.model.schema.types import ArrayOf, Decimal, Field, MapOf, Simple, StructOf, Type

How: TypeAlias = Literal[
    "plain", "bytes", "decimal", "digits", "scaled", "count", "iso", "geometry", "list", "map", "struct", "text", "odd"
]


@dataclass(frozen=True, slots=True)
class Meaning:
    """How values are written, and what they become.

    Args:
        how: see the table of this module.
        wire: the type that a reader of JSON reads them as.
        type: the column.
        unit: `count`: of the numbers.
        scale: `decimal`: digits after the point. It may be negative, or larger than a column allows.
        parts: the meanings inside: of an element, of a map's values, or of a struct's fields.
    """

    how: How
    wire: Type
    type: Type
    unit: Unit = "us"
    scale: int = 0
    parts: tuple[Meaning, ...] = ()


TEXT = Simple("string")
LONG = Simple("long")


def plain(type_: Type) -> Meaning:
    """Values that are written as the column holds them."""
    return Meaning("plain", type_, type_)


def count(word: str, unit: Unit) -> Meaning:
    """Times that are numbers."""
    return Meaning("count", LONG, Simple(word), unit=unit)


def iso(word: str) -> Meaning:
    """Times that are texts."""
    return Meaning("iso", TEXT, Simple(word))


def list_of(element: Meaning) -> Meaning:
    """Lists of such values."""
    return Meaning("list", ArrayOf(element.wire), ArrayOf(element.type), parts=(element,))


def map_of(value: Meaning) -> Meaning:
    """Maps from texts to such values."""
    return Meaning("map", MapOf(TEXT, value.wire), MapOf(TEXT, value.type), parts=(value,))


def struct_of(fields: dict[str, Meaning]) -> Meaning:
    """Structs of such fields."""
    wire = StructOf(tuple(Field(name, one.wire) for name, one in fields.items()))
    type_ = StructOf(tuple(Field(name, one.type) for name, one in fields.items()))
    return Meaning("struct", wire, type_, parts=tuple(fields.values()))


BYTES = Meaning("bytes", TEXT, Simple("binary"))
SCALED = Meaning("scaled", StructOf((Field("scale", Simple("int")), Field("value", TEXT))), TEXT)
GEOMETRY = Meaning("geometry", StructOf((Field("wkb", TEXT),)), Simple("binary"))

MOST_DIGITS = 38


def decimal(scale: int, precision: int | None) -> Meaning:
    """Decimals of a scale. A column that could not hold it is text of the number."""
    if scale > MOST_DIGITS:
        return Meaning("decimal", TEXT, TEXT, scale=scale)
    digits = max((precision or MOST_DIGITS) - min(scale, 0), scale, 1)
    return Meaning("decimal", TEXT, Decimal(min(digits, MOST_DIGITS), max(scale, 0)), scale=scale)
