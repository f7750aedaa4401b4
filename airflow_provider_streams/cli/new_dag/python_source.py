"""Values as Python source, laid out as `ruff format` and `black` leave it. No text of a user can leave its literal."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import timedelta
from typing import Any, Final, TypeAlias

from airflow_provider_streams.model.schema.payload import Auto

WIDTH: Final = 88
"""Of a line, unless a text in it is longer: the formatters' own default."""
_INDENT: Final = 4
_UNITS: Final = ("days", "hours", "minutes", "seconds")


@dataclass(frozen=True, slots=True)
class Bracketed:
    """A call, a list or a dictionary: one line if it fits, else one line for each part, with a comma after it."""

    opening: str
    """Up to the bracket, like `PulsarSource(`."""
    parts: tuple[Part, ...]
    closing: str


@dataclass(frozen=True, slots=True)
class Part:
    """An argument or an element."""

    expression: Expression
    prefix: str = ""
    """Like `conn_id=`."""


Expression: TypeAlias = str | Bracketed


def literal(text: str) -> str:
    """A text as Python writes it: between double quotes, unless single ones need fewer escapes. Printable only."""
    quote = "'" if text.count('"') > text.count("'") else '"'
    return quote + "".join(_escaped(letter, quote) for letter in text) + quote


def _escaped(letter: str, quote: str) -> str:
    if letter in {"\\", quote}:
        return f"\\{letter}"
    return letter if letter.isprintable() else repr(letter)[1:-1]


def comment(text: str) -> str:
    """A text as comment lines. What does not print, such as a line's end in a name, is escaped."""
    shown = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
    return textwrap.fill(
        shown,
        WIDTH,
        initial_indent="# ",
        subsequent_indent="# ",
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )


def call(name: str, *positional: Expression, **named: Expression) -> Bracketed:
    """A call with these arguments."""
    parts = (*map(Part, positional), *(Part(one, f"{argument}=") for argument, one in named.items()))
    return Bracketed(f"{name}(", parts, ")")


def mapping(entries: Mapping[str, Expression]) -> Bracketed:
    """A dictionary with these keys."""
    return Bracketed("{", tuple(Part(one, f"{literal(key)}: ") for key, one in entries.items()), "}")


def expression_of(value: Any) -> Expression:
    """A value whose `==` is what the expression gives: plain ones, lengths of time, and our dataclasses."""
    match value:
        case str():
            return literal(value)
        case timedelta():
            return _length(value)
        case Mapping():
            return mapping({str(key): expression_of(one) for key, one in value.items()})
        case tuple() | list():
            return Bracketed("[", tuple(Part(expression_of(one)) for one in value), "]")
        case Auto() if value == Auto():
            return literal("auto")
    return _construction(value) if is_dataclass(value) else repr(value)


def classes_in(value: Any) -> Iterator[type]:
    """The classes that `expression_of` names."""
    if isinstance(value, Auto) and value == Auto():
        return
    if is_dataclass(value) and not isinstance(value, type):
        yield type(value)
        for _, one, _ in _arguments(value):
            yield from classes_in(one)
    elif isinstance(value, timedelta):
        yield timedelta


def lines(expression: Expression, prefix: str = "", suffix: str = "", indent: int = 0) -> str:
    """A statement: the expression, with what precedes and follows it, from a column on."""
    margin = " " * indent
    short = f"{prefix}{_in_line(expression)}{suffix}"
    is_short = short.isascii() and indent + len(short) <= WIDTH
    if isinstance(expression, str) or not expression.parts or is_short:
        return margin + short
    inner = "\n".join(lines(one.expression, one.prefix, ",", indent + _INDENT) for one in expression.parts)
    return f"{margin}{prefix}{expression.opening}\n{inner}\n{margin}{expression.closing}{suffix}"


def _in_line(expression: Expression) -> str:
    if isinstance(expression, str):
        return expression
    inner = ", ".join(part.prefix + _in_line(part.expression) for part in expression.parts)
    return f"{expression.opening}{inner}{expression.closing}"


def _length(value: timedelta) -> Expression:
    if value.microseconds:
        whole = str(value // timedelta(seconds=1))
        return call("timedelta", seconds=whole, microseconds=str(value.microseconds))
    unit = next((one for one in _UNITS if value and not value % timedelta(**{one: 1})), "seconds")
    return call("timedelta", **{unit: str(value // timedelta(**{unit: 1}))})


def _construction(value: Any) -> Bracketed:
    positional, named = [], {}
    for name, one, is_nameless in _arguments(value):
        if is_nameless:
            positional.append(expression_of(one))
        else:
            named[name] = expression_of(one)
    return call(type(value).__name__, *positional, **named)


def _arguments(value: Any) -> Iterator[tuple[str, Any, bool]]:
    """The arguments that make a dataclass: name, value, and whether its name is left out; without defaults."""
    stored = {one.metadata.get("argument", one.name): one.name for one in fields(value)}
    for place, (name, parameter) in enumerate(inspect.signature(type(value)).parameters.items()):
        given = getattr(value, stored[name])
        if given == parameter.default or (not given and isinstance(given, Mapping | tuple)):
            continue
        is_name = place == 0 and isinstance(given, str | tuple)
        is_one = is_name and isinstance(given, tuple) and len(given) == 1 and "str |" in str(parameter.annotation)
        yield name, given[0] if is_one else given, is_name
