"""Columns of several messages made one: wide enough for the values of all. No Arrow, no numpy."""

from __future__ import annotations

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.model.schema.type_table import MOST_DIGITS, NUMBERS
from airflow_provider_streams.model.schema.types import ArrayOf, Decimal, Field, MapOf, Simple, StructOf, Type


def united(first: StructOf, second: StructOf, column: str = "") -> StructOf:
    """The columns of both, those that only the second has last.

    Args:
        first: columns, or fields of a column.
        second: others.
        column: the column whose fields these are.

    Raises:
        InvalidSchema: a column of both has types without a common one.
    """
    fields = {one.name: one.type for one in first.fields}
    for one in second.fields:
        fields[one.name] = wider(fields[one.name], one.type, one.name, column) if one.name in fields else one.type
    return StructOf(tuple(Field(name, type_, default=None) for name, type_ in fields.items()))


def is_wider(planned: Type, found: Type) -> bool:
    """Whether a planned column must become wider to hold another type's values, and can."""
    try:
        return wider(planned, found) != planned
    except InvalidSchema:
        return False


def wider(first: Type, second: Type, name: str = "", column: str = "") -> Type:  # noqa: PLR0911  # one for each kind of type
    """A type that holds the values of both.

    Args:
        first: a type.
        second: another one.
        name: the place of both, for messages: a column, or a part of one.
        column: the column that the place is in; empty: it is the column itself.

    Raises:
        InvalidSchema: there is none.
    """
    column = column or name
    if first == second:
        return first
    match first, second:
        case Simple(one), Simple(other):
            for words in NUMBERS:
                if one in words and other in words:
                    return Simple(max(one, other, key=words.index))
        case Decimal(), Decimal():
            scale = max(first.scale, second.scale)
            whole = max(first.precision - first.scale, second.precision - second.scale)
            if whole + scale <= MOST_DIGITS:
                return Decimal(whole + scale, scale)
            # a wider column would not fit: keep what holds the most digits before the point
            return Decimal(MOST_DIGITS, scale)
        case ArrayOf(one), ArrayOf(other):
            return ArrayOf(wider(one, other, f"{name}[]", column))
        case MapOf(key, one), MapOf(_, other):
            return MapOf(key, wider(one, other, f"{name}{{}}", column))
        case StructOf(), StructOf():
            return united(first, second, column)
    raise InvalidSchema(
        name,
        f"messages have it as {first} and as {second}",
        f"Declare the column: value=Debezium('{column} <type>'). Messages whose value is not of the type are then "
        "undecodable.",
    )
