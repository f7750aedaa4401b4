"""Details of a source that are several values, as command lines and Spark options write them: between commas."""

from __future__ import annotations

import re
from collections.abc import Iterable

from airflow_provider_streams.errors import InvalidRequest

_NUMBER = re.compile(r"[0-9]{1,9}")
_SPAN = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


def write(values: Iterable[object]) -> str:
    """Between commas; pairs as `first-last`."""
    return ",".join("-".join(map(str, one)) if isinstance(one, tuple) else str(one) for one in values)


def words(text: str) -> tuple[str, ...]:
    """Those between commas."""
    return tuple(word for part in text.split(",") if (word := part.strip()))


def numbers(what: str, text: str) -> tuple[int, ...]:
    """Whole numbers between commas.

    Raises:
        InvalidRequest: something else.
    """
    if not all(_NUMBER.fullmatch(word) for word in words(text)):
        raise InvalidRequest(f"{what} are numbers between commas, like 0,3; got {text!r}")
    return tuple(int(word) for word in words(text))


def spans(what: str, text: str) -> tuple[tuple[int, int], ...]:
    """Pairs of numbers between commas.

    Raises:
        InvalidRequest: something else.
    """
    found = [_SPAN.fullmatch(word) for word in words(text)]
    if None in found:
        raise InvalidRequest(f"{what} are ranges between commas, like 0-1023,4096-8191; got {text!r}")
    return tuple((int(span[1]), int(span[2])) for span in found if span)
