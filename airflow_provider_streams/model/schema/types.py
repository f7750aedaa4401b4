"""The types of decoded rows, in Spark's words. They need neither Arrow nor Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Literal, TypeAlias

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.model.schema.type_table import MOST_DEPTH, MOST_DIGITS, TIMES, UNITS, WORDS, Unit

Form: TypeAlias = Literal["number", "json"]
"""What JSON may hold for text: a number, of which the digits count, or any value, which stays JSON."""

FORMS: Final = ("number", "json")


@dataclass(frozen=True, slots=True)
class Simple:
    """A type of one word.

    Args:
        word: one of `WORDS`.
        unit: what a time counts, in a format that writes times as numbers. The column has the same type without it.
        form: what JSON holds for text. The column has the same type without it.
        symbols: the symbols of an enum, if JSON may hold something else for them. The column is text without them.
        names: names of an Avro enum or fixed, as in `StructOf`. Plans do not keep them.

    Raises:
        InvalidSchema: the word, unit or form is not known.
    """

    word: str
    unit: Unit | None = field(default=None, compare=False)
    form: Form | None = field(default=None, compare=False)
    symbols: tuple[str, ...] = field(default=(), compare=False)
    names: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if self.word not in WORDS:
            raise InvalidSchema(self.word, f"no such type; known: {', '.join(WORDS)}, decimal, array, map, struct")
        if self.unit is not None and (self.unit not in UNITS or self.word not in TIMES):
            raise InvalidSchema(self.word, f"cannot be counted in {self.unit!r}")
        if self.form is not None and (self.form not in FORMS or self.word != "string"):
            raise InvalidSchema(self.word, f"cannot be written as {self.form!r}")

    def __str__(self) -> str:
        return self.word


@dataclass(frozen=True, slots=True)
class Decimal:
    """Exact numbers of up to `precision` digits, `scale` of them after the point.

    Raises:
        InvalidSchema: not 1 to 38 digits, or a scale outside of them.
    """

    precision: int
    scale: int

    def __post_init__(self) -> None:
        if not 1 <= self.precision <= MOST_DIGITS or not 0 <= self.scale <= self.precision:
            raise InvalidSchema(str(self), f"a decimal has 1 to {MOST_DIGITS} digits, 0 to all of them after the point")

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """Any number of values of one type."""

    element: Type

    def __str__(self) -> str:
        return f"array<{self.element}>"


@dataclass(frozen=True, slots=True)
class MapOf:
    """Values by key; each key occurs once."""

    key: Type
    value: Type

    def __post_init__(self) -> None:
        if not isinstance(self.key, Simple):
            raise InvalidSchema(str(self), "keys of a map are of a simple type")

    def __str__(self) -> str:
        return f"map<{self.key},{self.value}>"


class _Missing(Enum):
    """A member is the same object in every process, which types that Spark sends to its workers need."""

    MISSING = "missing"


MISSING: Final = _Missing.MISSING
"""No default: a record without the field has another schema."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column, or a field of a struct.

    Args:
        name: the column's name.
        type: the type of its values.
        nullable: whether a record may have no value. The column can always be null: a tombstone has no fields.
        default: the value, as JSON, for records of a schema without the field; `MISSING`: there is none. Times are
            numbers (days, nanoseconds of a day, microseconds since 1970), decimals are text, bytes are base64.
        aliases: names of the field in earlier schemas.
        keys: the keys of JSON objects that hold the value; empty: the name.
    """

    name: str
    type: Type
    nullable: bool = True
    default: Any = field(default=MISSING, hash=False)
    aliases: tuple[str, ...] = ()
    keys: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return f"{quoted(self.name)}: {self.type}"

    @property
    def in_objects(self) -> tuple[str, ...]:
        """The keys of JSON objects that hold its value."""
        return self.keys or (self.name,)


@dataclass(frozen=True, slots=True)
class StructOf:
    """Fields by name; the outermost struct has the columns of a row.

    Args:
        fields: the fields.
        union: whether it stands for a union: each field is a branch, and one of them is not null in each value.
        names: names of an Avro record, the current one first, written as branches of a union are. They match a record
            outside a union with a branch.

    Raises:
        InvalidSchema: two fields have the same name; Spark does not distinguish upper and lower case.
    """

    fields: tuple[Field, ...]
    union: bool = False
    names: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for one in self.fields:
            if one.name.lower() in seen:
                raise InvalidSchema(one.name, "there are two fields of this name; upper and lower case are the same")
            seen.add(one.name.lower())

    def __str__(self) -> str:
        return f"struct<{', '.join(map(str, self.fields))}>"


Type: TypeAlias = Simple | Decimal | ArrayOf | MapOf | StructOf


def columns(type_: Type) -> tuple[Field, ...]:
    """The columns of a row: a record's fields, or the one column `value`."""
    return type_.fields if isinstance(type_, StructOf) else (Field(VALUE, type_),)


VALUE: Final = "value"
"""The column of values that are no records."""


def below(path: str, name: str) -> str:
    """The path of a field, for messages."""
    return f"{path}.{name}" if path else name


def empty_records(type_: Type, path: str = "") -> Iterator[str]:
    """The paths of records without fields: no table can hold a column of them."""
    match type_:
        case StructOf(()):
            yield path or "the value"
        case StructOf(fields):
            for one in fields:
                yield from empty_records(one.type, below(path, one.name))
        case ArrayOf(element):
            yield from empty_records(element, f"{path}[]")
        case MapOf(_, value):
            yield from empty_records(value, f"{path}{{}}")


def quoted(name: str) -> str:
    """A name as DDL writes it: in backticks, if it needs them."""
    return name if name.isidentifier() and name.isascii() else f"`{name.replace('`', '``')}`"


def leaves(type_: Type, depth: int = 0) -> Iterator[Type]:
    """The innermost types.

    Raises:
        InvalidSchema: types are nested deeper than `MOST_DEPTH`.
    """
    if depth > MOST_DEPTH:
        raise InvalidSchema(f"{str(type_)[:40]}..", f"types are nested deeper than {MOST_DEPTH} levels")
    match type_:
        case ArrayOf(element):
            yield from leaves(element, depth + 1)
        case MapOf(key, value):
            yield from (*leaves(key, depth + 1), *leaves(value, depth + 1))
        case StructOf(fields):
            for one in fields:
                yield from leaves(one.type, depth + 1)
        case _:
            yield type_
