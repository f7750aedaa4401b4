"""Conditions and sequences over a change row's columns, in a small part of Spark SQL.

    condition  := conjunction (OR conjunction)*
    conjunction := negation (AND negation)*
    negation   := NOT negation | predicate
    predicate  := "(" condition ")" | column [test]
    test       := IS [NOT] NULL | (= | == | <=> | <> | != | < | <= | > | >=) literal | [NOT] IN "(" literal, .. ")"
    literal    := 'text' | "text" | [-]digits | [-]digits.digits | TRUE | FALSE
    sequence   := column | STRUCT "(" column, .. ")"
    column     := name (. name)*          a name with other characters stands in `backticks`

Words of the grammar have no case, and columns have the case of the table. As in SQL, a comparison with a missing value
is unknown, and an unknown condition does not hold. A column without a test is a boolean column.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal, NamedTuple, TypeVar

from airflow_provider_streams.errors import InvalidRequest

Comparison = Literal["=", "<=>", "<>", "<", "<=", ">", ">="]
Value = str | int | Decimal | bool
Column = tuple[str, ...]
"""A column, or a path into structs."""

MOST_DEPTH: Final = 100
"""Of parentheses and NOTs within each other."""
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<quoted>`(?:[^`]|``)+`)|(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
    r"""|(?P<number>-?\d+(?:\.\d+)?(?!\w))|(?P<word>[^\W\d]\w*)|(?P<mark><=>|==|<>|!=|<=|>=|[<>=(),.]))"""
)
_SPELLINGS: Final[dict[str, Comparison]] = {"==": "=", "!=": "<>"}
_COMPARISONS: Final[tuple[Comparison, ...]] = ("=", "<=>", "<>", "<", "<=", ">", ">=")
_RESERVED: Final = frozenset(("AND", "OR", "NOT", "IS", "IN", "NULL", "TRUE", "FALSE"))

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class IsNull:
    """`column IS NULL`."""

    column: Column


@dataclass(frozen=True, slots=True)
class Compare:
    """`column < literal`."""

    column: Column
    by: Comparison
    value: Value


@dataclass(frozen=True, slots=True)
class IsIn:
    """`column IN (literal, ..)`."""

    column: Column
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class IsTrue:
    """A boolean column."""

    column: Column


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a condition; an unknown one stays unknown."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class Every:
    """All of several conditions."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """At least one of several conditions."""

    conditions: tuple[Condition, ...]


Condition = IsNull | Compare | IsIn | IsTrue | Not | Every | Some


def parse_condition(text: str) -> Condition:
    """The condition that a text writes.

    Raises:
        InvalidRequest: it is none of this module's grammar.
    """
    return _whole(_Parser(text), _Parser.condition)


def parse_sequence(text: str) -> tuple[Column, ...]:
    """The columns that order changes, the most significant first.

    Raises:
        InvalidRequest: it is none of this module's grammar.
    """
    return _whole(_Parser(text), _Parser.sequence)


class _Token(NamedTuple):
    kind: str
    text: str


def _whole(parser: _Parser, rule: Callable[[_Parser], R]) -> R:
    found = rule(parser)
    if parser.next() is not None:
        raise parser.refused()
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split())
        self._at = self._depth = 0

    def condition(self) -> Condition:
        parts = [self._conjunction()]
        while self._takes("OR"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else Some(tuple(parts))

    def sequence(self) -> tuple[Column, ...]:
        following = self._tokens[1] if len(self._tokens) > 1 else None
        if following != _Token("mark", "(") or not self._takes("STRUCT"):
            return (self._column(),)
        self._must("(")
        columns = [self._column()]
        while self._takes(","):
            columns.append(self._column())
        self._must(")")
        return tuple(columns)

    def next(self) -> _Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def refused(self) -> InvalidRequest:
        found = self.next()
        where = f"{found.text!r:.40} is not expected" if found else "it ends too early"
        return InvalidRequest(
            f"{self._text!r:.200}: {where}. Known are columns, literals, = <=> <> < <= > >=, IS [NOT] NULL, [NOT] IN, "
            "AND, OR, NOT and parentheses; a sequence is a column, or struct(column, ..)"
        )

    def _split(self) -> list[_Token]:
        tokens, at = [], 0
        text = self._text.rstrip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None or found.lastgroup is None:
                raise InvalidRequest(f"{self._text!r:.200}: {text[at:].lstrip()!r:.40} is not understood")
            tokens.append(_Token(found.lastgroup, found[found.lastgroup]))
            at = found.end()
        return tokens

    def _conjunction(self) -> Condition:
        parts = [self._negation()]
        while self._takes("AND"):
            parts.append(self._negation())
        return parts[0] if len(parts) == 1 else Every(tuple(parts))

    def _negation(self) -> Condition:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise InvalidRequest(f"{self._text!r:.200}: more than {MOST_DEPTH} levels")
        found = Not(self._negation()) if self._takes("NOT") else self._predicate()
        self._depth -= 1
        return found

    def _predicate(self) -> Condition:
        if self._takes("("):
            found = self.condition()
            self._must(")")
            return found
        column = self._column()
        if self._takes("IS"):
            is_not = self._takes("NOT")
            self._must("NULL")
            return Not(IsNull(column)) if is_not else IsNull(column)
        if self._takes("NOT"):
            self._must("IN")
            return Not(IsIn(column, self._literals()))
        if self._takes("IN"):
            return IsIn(column, self._literals())
        token = self.next()
        by = None if token is None or token.kind != "mark" else _SPELLINGS.get(token.text, token.text)
        for known in _COMPARISONS:
            if by == known:
                self._at += 1
                return Compare(column, known, self._literal())
        return IsTrue(column)

    def _literals(self) -> tuple[Value, ...]:
        self._must("(")
        values = [self._literal()]
        while self._takes(","):
            values.append(self._literal())
        self._must(")")
        return tuple(values)

    def _literal(self) -> Value:
        token = self.next()
        if token is None or token.kind not in ("text", "number", "word"):
            raise self.refused()
        if token.kind == "word" and token.text.upper() not in ("TRUE", "FALSE"):
            raise self.refused()
        self._at += 1
        if token.kind == "text":
            return re.sub(r"\\(.)", r"\1", token.text[1:-1], flags=re.DOTALL)
        if token.kind == "number":
            return Decimal(token.text) if "." in token.text else int(token.text)
        return token.text.upper() == "TRUE"

    def _column(self) -> Column:
        names = [self._name()]
        while self._takes("."):
            names.append(self._name())
        return tuple(names)

    def _name(self) -> str:
        token = self.next()
        if token is None or token.kind not in ("quoted", "word"):
            raise self.refused()
        if token.kind == "word" and token.text.upper() in _RESERVED:
            raise self.refused()
        self._at += 1
        return token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text

    def _takes(self, text: str) -> bool:
        token = self.next()
        found = token is not None and token.kind in ("word", "mark") and token.text.upper() == text
        self._at += found
        return found

    def _must(self, text: str) -> None:
        if not self._takes(text):
            raise self.refused()
