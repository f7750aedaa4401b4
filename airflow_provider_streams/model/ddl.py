"""Columns as a person writes them: `id long, tags array<string>, at timestamp not null`."""

from __future__ import annotations

import re
from collections import deque
from typing import Final

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.model.row_type import (
    MISSING,
    MOST_DEPTH,
    WORDS,
    ArrayOf,
    Decimal,
    Field,
    MapOf,
    Simple,
    StructOf,
    Type,
    quoted,
)

OTHER_WORDS: Final = {
    "tinyint": "byte",
    "smallint": "short",
    "integer": "int",
    "bigint": "long",
    "real": "float",
    "timestamp_ltz": "timestamp",
}
"""SQL's own words for the same types."""

_TOKEN: Final = re.compile(r"\s*(?:(?P<quoted>`(?:[^`]|``)+`)|(?P<word>\w+)|(?P<mark>[<>(),:]))")
_DEFAULT_DECIMAL: Final = Decimal(10, 0)


def parse_columns(text: str) -> StructOf:
    """The columns that a DDL text names; a field that a record lacks is null, unless it says `not null`.

    Raises:
        InvalidSchema: not such a list, an unknown type, or a name twice.
    """
    parser = _Parser(text)
    fields = parser.fields(end=None)
    if not fields:
        raise InvalidSchema(text, "names no column; write for example 'id long, tags array<string>'")
    return StructOf(fields)


def parse_type(text: str) -> Type:
    """One type: `array<struct<a: int>>`.

    Raises:
        InvalidSchema: otherwise.
    """
    parser = _Parser(text)
    type_ = parser.type()
    parser.finish()
    return type_


def ddl(type_: StructOf) -> str:
    """The columns as DDL text, which `parse_columns` reads again (without defaults, aliases and units)."""
    return ", ".join(f"{quoted(one.name)} {one.type}{'' if one.nullable else ' not null'}" for one in type_.fields)


class _Parser:
    """Reads one text from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split(text)
        self._depth = 0

    def fields(self, end: str | None) -> tuple[Field, ...]:
        """`name type [not null], ..` up to a mark, or to the end of the text."""
        found: list[Field] = []
        while self._next != end:
            if found:
                self._take(",")
            found.append(self._field())
        if end is None:
            self.finish()
        return tuple(found)

    def type(self) -> Type:
        """A type, with what it holds."""
        word = self._take_word().lower()
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise InvalidSchema(self._shown, f"types are nested deeper than {MOST_DEPTH} levels")
        found = self._known(OTHER_WORDS.get(word, word))
        self._depth -= 1
        return found

    def finish(self) -> None:
        """Nothing may follow."""
        if self._next is not None:
            raise self._wrong("the end")

    def _known(self, word: str) -> Type:
        match word:
            case "array":
                return ArrayOf(self._between("<", ">", 1)[0])
            case "map":
                return MapOf(*self._between("<", ">", 2))
            case "struct":
                self._take("<")
                fields = self.fields(">")
                self._take(">")
                return StructOf(fields)
            case "decimal" | "dec" | "numeric":
                return self._decimal()
            case _ if word in WORDS:
                return Simple(word)
        raise InvalidSchema(self._shown, f"no type {word!r}; known: {', '.join(WORDS)}, decimal, array, map, struct")

    def _between(self, opening: str, closing: str, count: int) -> list[Type]:
        self._take(opening)
        inner = [self.type()]
        for _ in range(count - 1):
            self._take(",")
            inner.append(self.type())
        self._take(closing)
        return inner

    def _decimal(self) -> Decimal:
        if self._next != "(":
            return _DEFAULT_DECIMAL
        self._take("(")
        precision, scale = self._number(), 0
        if self._next == ",":
            self._take(",")
            scale = self._number()
        self._take(")")
        return Decimal(precision, scale)

    def _field(self) -> Field:
        name = self._take_word()
        if self._next == ":":
            self._take(":")
        type_ = self.type()
        required = (self._next or "").lower() == "not"
        if required:
            self._take_word()
            if self._take_word().lower() != "null":
                raise self._wrong("null")
        return Field(name, type_, nullable=not required, default=MISSING if required else None)

    @property
    def _next(self) -> str | None:
        return self._tokens[0] if self._tokens else None

    @property
    def _shown(self) -> str:
        return self._text if len(self._text) <= _SHOWN else self._text[:_SHOWN] + ".."

    def _take(self, mark: str) -> None:
        if self._next != mark:
            raise self._wrong(repr(mark))
        self._tokens.popleft()

    def _take_word(self) -> str:
        token = self._next
        if token is None or token in _MARKS:
            raise self._wrong("a word")
        self._tokens.popleft()
        return token[1:-1].replace("``", "`") if token.startswith("`") else token

    def _number(self) -> int:
        word = self._take_word()
        if not word.isascii() or not word.isdigit() or len(word) > _NUMBER_DIGITS:
            raise InvalidSchema(self._shown, f"{word!r} is no number of digits")
        return int(word)

    def _wrong(self, expected: str) -> InvalidSchema:
        return InvalidSchema(self._shown, f"{expected} is expected before {self._next or 'the end'!r}")

    def _split(self, text: str) -> deque[str]:
        tokens: deque[str] = deque()
        at = 0
        text = text.rstrip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if not found:
                raise InvalidSchema(self._shown, f"{text[at : at + 10].strip()!r} is not understood")
            tokens.append(found[0].strip())
            at = found.end()
        return tokens


_MARKS: Final = frozenset("<>(),:")
_SHOWN: Final = 120
_NUMBER_DIGITS: Final = 4
