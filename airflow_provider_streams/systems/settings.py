"""Settings by option name as the fields of an endpoint, and back: what every system's endpoint does alike."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.systems.base import Option

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Parser = Callable[[str, str], object]
"""The value of a field, from an option's name and text.

Raises:
    InvalidRequest: the text is none; the name is for the message.
"""


def parse(settings: Mapping[str, str], options: Iterable[Option], parsers: Mapping[str, Parser]) -> dict[str, Any]:
    """The given options' values by their names; names and aliases are compared without case, unknown ones ignored.

    Args:
        settings: texts; empty ones count as not given.
        options: the known ones.
        parsers: by option name; an option without one stays a text.

    Raises:
        InvalidRequest: a setting is malformed.
    """
    given = {name.lower(): str(value).strip() for name, value in settings.items() if value not in {None, ""}}
    values: dict[str, Any] = {}
    for option in options:
        for name in (option.name, *option.aliases):
            text = given.get(name.lower())
            if text:
                parser = parsers.get(option.name)
                values.setdefault(option.name, parser(option.name, text) if parser else text)
    return values


def texts(endpoint: DataclassInstance) -> dict[str, str]:
    """The fields of an endpoint that are not their defaults, secrets included: the reverse of `parse`."""
    values = {item: getattr(endpoint, item.name) for item in fields(endpoint)}
    return {item.name: _text(value) for item, value in values.items() if value != item.default}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, tuple) else str(value)


# Parsers


def flag(name: str, text: str) -> bool:
    """`true` or `false`, and what people write for them."""
    try:
        return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[text.lower()]
    except KeyError:
        raise InvalidRequest(f"{name} must be true or false, got {text!r}") from None


def seconds(name: str, text: str) -> float:
    """A duration."""
    try:
        return float(text)
    except ValueError:
        raise InvalidRequest(f"{name} must be a number of seconds, got {text!r}") from None


def count(name: str, text: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError:
        raise InvalidRequest(f"{name} must be a whole number, got {text!r}") from None


def names(_name: str, text: str) -> tuple[str, ...]:
    """Names between commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def lower(_name: str, text: str) -> str:
    """A word, without case."""
    return text.lower()


# What settings hold


def without_credentials(url: str) -> str:
    """An address as a message may show it."""
    scheme, mark, rest = url.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"


def token_end(token: str) -> float | None:
    """When a JWT says that it expires, in seconds since 1970, unverified; None: it is none, or does not say."""
    try:
        _header, claims, _signature = token.split(".")
        return float(json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
