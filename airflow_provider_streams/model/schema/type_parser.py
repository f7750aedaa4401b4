"""The one parser of types as text, users' and Spark's: `array<struct<id: long, at: timestamp(ms)>>`.

It knows the grammar only. `ddl` makes row types of what it parsed, and `column_type` types of a table's columns.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.model.schema.type_table import MOST_DEPTH

R = TypeVar("R")

_MARKS: Final = frozenset("<>(),:")
_TOKEN: Final = re.compile(r"\s*(?:(?P<quoted>`(?:[^`]|``)+`)|(?P<word>\w+)|(?P<mark>[<>(),:]))")
_SHOWN: Final = 120


class ParsedType(NamedTuple):
    """A type as it was written."""

    word: str
    arguments: tuple[str, ...] = ()
    """`10` and `2` of `decimal(10,2)`."""
    parts: tuple[ParsedField, ...] = ()
    """The fields of a struct, `element` of an array, or `key` and `value` of a map."""


class ParsedField(NamedTuple):
    """A column, or a field of a struct: `total int from sum not null`."""

    name: str
    type: ParsedType
    keys: tuple[str, ...] = ()
    """What follows `from`."""
    required: bool = False


class TypeParser:
    """Reads one text from left to right. Every method raises InvalidSchema if the text is something else.

    Args:
        text: the text.
        spark: whether it has Spark's types: their words may be several (`interval day to second`), and have a case.
    """

    def __init__(self, text: str, *, spark: bool = False) -> None:
        self._text, self._spark = text, spark
        self._tokens = self._split(text)
        self._depth = 0

    def parse(self) -> ParsedType:
        """The whole text as one type."""
        return self._whole(self._type)

    def parse_fields(self) -> tuple[ParsedField, ...]:
        """The whole text as columns."""
        return self._whole(lambda: self._fields(None))

    def wrong(self, reason: str) -> InvalidSchema:
        """The error to raise, with the start of the text."""
        return InvalidSchema(self._text if len(self._text) <= _SHOWN else self._text[:_SHOWN] + "..", reason)

    @property
    def _next(self) -> str | None:
        """The next token; None: the text ends here."""
        return self._tokens[0] if self._tokens else None

    def _word(self) -> str:
        """A name, or a word of a type."""
        token = self._next
        if token is None or token in _MARKS:
            raise self._expected("a word")
        self._tokens.popleft()
        return token[1:-1].replace("``", "`") if token.startswith("`") else token

    def _type_word(self) -> str:
        words = [self._word()]
        while self._spark and self._next is not None and self._next not in _MARKS:
            words.append(self._word())
        return " ".join(words) if self._spark else words[0].lower()

    def _whole(self, read: Callable[[], R]) -> R:
        found = read()
        if self._next is not None:
            raise self._expected("the end")
        return found

    def _type(self) -> ParsedType:
        word = self._type_word()
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise self.wrong(f"types are nested deeper than {MOST_DEPTH} levels")
        match word:
            case "array":
                found = ParsedType(word, parts=self._inner("element"))
            case "map":
                found = ParsedType(word, parts=self._inner("key", "value"))
            case "struct":
                self._take("<")
                found = ParsedType(word, parts=self._fields(">"))
                self._take(">")
            case _:
                found = ParsedType(word, self._arguments())
        self._depth -= 1
        return found

    def _inner(self, *names: str) -> tuple[ParsedField, ...]:
        found: list[ParsedField] = []
        for name in names:
            self._take("," if found else "<")
            found.append(ParsedField(name, self._type()))
        self._take(">")
        return tuple(found)

    def _arguments(self) -> tuple[str, ...]:
        found: list[str] = []
        if self._next == "(":
            while self._next != ")":
                self._take("," if found else "(")
                found.append(self._word())
            self._take(")")
        return tuple(found)

    def _fields(self, end: str | None) -> tuple[ParsedField, ...]:
        found: list[ParsedField] = []
        while self._next != end:
            if found:
                self._take(",")
            found.append(self._field())
        return tuple(found)

    def _field(self) -> ParsedField:
        name = self._word()
        if self._next == ":":
            self._take(":")
        type_ = self._type()
        keys = (self._word(),) if self._skipped("from") else ()
        required = self._skipped("not")
        if required and not self._skipped("null"):
            raise self._expected("null")
        return ParsedField(name, type_, keys, required)

    def _skipped(self, word: str) -> bool:
        is_next = (self._next or "").lower() == word
        if is_next:
            self._tokens.popleft()
        return is_next

    def _take(self, mark: str) -> None:
        if self._next != mark:
            raise self._expected(repr(mark))
        self._tokens.popleft()

    def _expected(self, what: str) -> InvalidSchema:
        return self.wrong(f"{what} is expected before {self._next or 'the end'!r}")

    def _split(self, text: str) -> deque[str]:
        tokens: deque[str] = deque()
        at = 0
        text = text.rstrip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if not found:
                raise self.wrong(f"{text[at : at + 10].strip()!r} is not understood")
            tokens.append(found[0].strip())
            at = found.end()
        return tokens
