"""Columns as a person writes them: `id long, tags array<string>, at timestamp not null`.

A column may also say what JSON holds for it: `at timestamp(ms)`, `price string(number)`, `rest json`,
`total int from sum`.
"""

from __future__ import annotations

from typing import Final, cast

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.model.schema.type_parser import ParsedField, ParsedType, TypeParser
from airflow_provider_streams.model.schema.type_table import DECIMAL, SPELLINGS, TIMES, UNITS, WORDS, Unit
from airflow_provider_streams.model.schema.types import (
    FORMS,
    MISSING,
    ArrayOf,
    Decimal,
    Field,
    Form,
    MapOf,
    Simple,
    StructOf,
    Type,
    quoted,
)

_NUMBER_DIGITS: Final = 4


def parse_columns(text: str) -> StructOf:
    """The columns of a DDL text. A field that a record lacks is null, unless the text says `not null`.

    Raises:
        InvalidSchema: it is no such list, a type is unknown, or a name occurs twice.
    """
    parser = TypeParser(text)
    fields = parser.parse_fields()
    if not fields:
        raise InvalidSchema(text, "names no column; write for example 'id long, tags array<string>'")
    return _struct(fields, parser)


def parse_type(text: str) -> Type:
    """One type: `array<struct<a: int>>`.

    Raises:
        InvalidSchema: it is something else.
    """
    parser = TypeParser(text)
    return _type(parser.parse(), parser)


def ddl(type_: StructOf) -> str:
    """The columns as DDL text, which `parse_columns` reads again (without defaults, aliases and units)."""
    return ", ".join(f"{quoted(one.name)} {one.type}{'' if one.nullable else ' not null'}" for one in type_.fields)


def _struct(fields: tuple[ParsedField, ...], parser: TypeParser) -> StructOf:
    made = (
        Field(one.name, _type(one.type, parser), not one.required, MISSING if one.required else None, keys=one.keys)
        for one in fields
    )
    return StructOf(tuple(made))


def _type(parsed: ParsedType, parser: TypeParser) -> Type:  # noqa: PLR0911  # one for each kind of type
    word, arguments, parts = parsed
    match word:
        case "array":
            return ArrayOf(_type(parts[0].type, parser))
        case "map":
            return MapOf(_type(parts[0].type, parser), _type(parts[1].type, parser))
        case "struct":
            return _struct(parts, parser)
        case "json" if not arguments:
            return Simple("string", form="json")
    if word in ("decimal", *DECIMAL.also):
        return _decimal(arguments, parser)
    spelled = f"{word}({','.join(arguments)})" if arguments else word
    if spelled in SPELLINGS:
        return Simple(SPELLINGS[spelled])
    if word not in SPELLINGS:
        raise parser.wrong(f"no type {word!r}; known: {', '.join(WORDS)}, decimal, json, array, map, struct")
    return _held(SPELLINGS[word], arguments, parser)


def _held(word: str, arguments: tuple[str, ...], parser: TypeParser) -> Simple:
    """A type of one word, and what JSON holds for it: `timestamp(ms)`, `string(number)`."""
    match [one.lower() for one in arguments]:
        case [how] if how in UNITS and word in TIMES:
            return Simple(word, cast("Unit", how))
        case [how] if how in FORMS and word == "string":
            return Simple(word, form=cast("Form", how))
    shown = f"{word}({', '.join(arguments)})"
    raise parser.wrong(f"{shown} is not known; write timestamp(ms) or string(number)")


def _decimal(arguments: tuple[str, ...], parser: TypeParser) -> Decimal:
    for one in arguments:
        if not one.isascii() or not one.isdigit() or len(one) > _NUMBER_DIGITS:
            raise parser.wrong(f"{one!r} is no number of digits")
    match arguments:
        case ():
            return Decimal(10, 0)
        case (precision,):
            return Decimal(int(precision), 0)
        case (precision, scale):
            return Decimal(int(precision), int(scale))
    raise parser.wrong("a decimal is of its digits, and of those after the point: decimal(10,2)")
