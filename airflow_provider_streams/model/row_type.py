"""The type of decoded rows, in Spark's words and as JSON; nothing of Arrow or Spark is needed for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast

from airflow_provider_streams.errors import InvalidSchema

Unit: TypeAlias = Literal["d", "s", "ms", "us", "ns"]
"""Of a time that is written as a number, counted from 1970 or from midnight."""

UNITS: Final = ("d", "s", "ms", "us", "ns")

WORDS: Final = (
    "boolean", "byte", "short", "int", "long", "float", "double", "string", "binary",
    "date", "time", "timestamp", "timestamp_ntz",
)  # fmt: skip
"""Every simple type: Spark's words. `timestamp` is a moment, `timestamp_ntz` a wall clock's time of no zone."""

TIMES: Final = ("date", "time", "timestamp", "timestamp_ntz")

MOST_DIGITS: Final = 38
"""Of a decimal, in Spark as in Arrow."""

MOST_LEAVES: Final = 5_000
"""Columns, counted to the innermost: a schema of a few lines may unfold to millions."""

MOST_DEPTH: Final = 64
"""Types within types."""


@dataclass(frozen=True, slots=True)
class Simple:
    """A type of one word.

    Args:
        word: one of `WORDS`.
        unit: of a time, how a number means one, where a format writes times as numbers. The column's type is the same.

    Raises:
        InvalidSchema: another word or unit.
    """

    word: str
    unit: Unit | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.word not in WORDS:
            raise InvalidSchema(self.word, f"no such type; known: {', '.join(WORDS)}, decimal, array, map, struct")
        if self.unit is not None and (self.unit not in UNITS or self.word not in TIMES):
            raise InvalidSchema(self.word, f"cannot be counted in {self.unit!r}")

    def __str__(self) -> str:
        return self.word


@dataclass(frozen=True, slots=True)
class Decimal:
    """Exact numbers of up to `precision` digits, `scale` of them behind the point.

    Raises:
        InvalidSchema: not 1 to 38 digits, or a scale outside of them.
    """

    precision: int
    scale: int

    def __post_init__(self) -> None:
        if not 1 <= self.precision <= MOST_DIGITS or not 0 <= self.scale <= self.precision:
            raise InvalidSchema(
                str(self), f"a decimal has 1 to {MOST_DIGITS} digits, 0 to all of them behind the point"
            )

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
    """Values by key; no key twice."""

    key: Type
    value: Type

    def __post_init__(self) -> None:
        if not isinstance(self.key, Simple):
            raise InvalidSchema(str(self), "keys of a map are of a simple type")

    def __str__(self) -> str:
        return f"map<{self.key},{self.value}>"


MISSING: Final = object()
"""No default: a record that lacks the field is of another schema."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column, or a field of a struct.

    Args:
        name: of the column.
        type: of its values.
        nullable: whether a record may do without a value. What lands can be null in any case: a tombstone has no
            fields.
        default: the value in records of a schema that lacks the field, as JSON; `MISSING`: there is none. Times are
            numbers (days, nanoseconds of a day, microseconds since 1970), decimals are text, bytes are base64.
        aliases: names that the field had in earlier schemas.
    """

    name: str
    type: Type
    nullable: bool = True
    default: Any = field(default=MISSING, hash=False)
    aliases: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{quoted(self.name)}: {self.type}"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; what is as usual is left out."""
        rest: dict[str, Any] = {} if self.nullable else {"nullable": False}
        if self.default is not MISSING:
            rest["default"] = self.default
        if self.aliases:
            rest["aliases"] = list(self.aliases)
        return {"name": self.name, "type": to_json(self.type), **rest}


@dataclass(frozen=True, slots=True)
class StructOf:
    """Fields by name; as the outermost type: the columns of a row.

    Args:
        fields: of the struct.
        union: it stands for a union: each field is a branch, and of each value one of them is not null.
        names: of a record's own type, the present one first, as the fields of a union are named. A record beside a
            union is found by them.

    Raises:
        InvalidSchema: two fields of one name; case does not tell them apart, as Spark's columns go.
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
    return type_.fields if isinstance(type_, StructOf) else (Field("value", type_),)


def empty_records(type_: Type, path: str = "") -> Iterator[str]:
    """Where records without fields are: no table can hold a column of them."""
    match type_:
        case StructOf(()):
            yield path or "the value"
        case StructOf(fields):
            for one in fields:
                yield from empty_records(one.type, f"{path}.{one.name}" if path else one.name)
        case ArrayOf(element):
            yield from empty_records(element, f"{path}[]")
        case MapOf(_, value):
            yield from empty_records(value, f"{path}{{}}")


def quoted(name: str) -> str:
    """A name as DDL writes it: in backticks, where it needs them."""
    return name if name.isidentifier() and name.isascii() else f"`{name.replace('`', '``')}`"


def to_json(type_: Type) -> Any:
    """As JSON: the words of simple types and decimals, objects for others."""
    match type_:
        case Simple(word, unit):
            return f"{word}/{unit}" if unit else word
        case Decimal():
            return str(type_)
        case ArrayOf(element):
            return {"array": to_json(element)}
        case MapOf(key, value):
            return {"map": [to_json(key), to_json(value)]}
        case StructOf(fields, union, names):
            inner = [one.to_json() for one in fields]
            return {"union" if union else "struct": inner, **({"names": list(names)} if names else {})}


def from_json(data: Any) -> Type:
    """The reverse of `to_json`.

    Raises:
        InvalidSchema: it is no type.
    """
    match data:
        case str():
            return _simple(data)
        case {"array": element}:
            return ArrayOf(from_json(element))
        case {"map": [key, value]}:
            return MapOf(from_json(key), from_json(value))
        case {"struct": [*fields]}:
            return StructOf(tuple(map(_field, fields)), names=tuple(data.get("names", ())))
        case {"union": [*fields]}:
            return StructOf(tuple(map(_field, fields)), union=True)
    raise InvalidSchema(str(data)[:80], "not a type")


def _simple(text: str) -> Type:
    if found := _DECIMAL.fullmatch(text):
        return Decimal(int(found[1]), int(found[2]))
    word, _, unit = text.partition("/")
    return Simple(word, cast("Unit", unit) if unit else None)


_DECIMAL: Final = re.compile(r"decimal\((\d{1,4}),(\d{1,4})\)")


def _field(data: Any) -> Field:
    if not isinstance(data, dict) or not isinstance(data.get("name"), str) or "type" not in data:
        raise InvalidSchema(str(data)[:80], "not a field")
    return Field(
        data["name"],
        from_json(data["type"]),
        data.get("nullable", True),
        data.get("default", MISSING),
        tuple(data.get("aliases", ())),
    )


def leaves(type_: Type, depth: int = 0) -> Iterator[Type]:
    """The innermost types.

    Raises:
        InvalidSchema: types nested deeper than `MOST_DEPTH`.
    """
    if depth > MOST_DEPTH:
        raise InvalidSchema(f"{str(type_)[:40]}..", f"types are nested deeper than {MOST_DEPTH} levels")
    inner: tuple[Type, ...] = ()
    match type_:
        case ArrayOf(element):
            inner = (element,)
        case MapOf(key, value):
            inner = (key, value)
        case StructOf(fields):
            inner = tuple(one.type for one in fields)
        case _:
            yield type_
    for one in inner:
        yield from leaves(one, depth + 1)
