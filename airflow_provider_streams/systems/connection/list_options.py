"""Details of a source that are several values, as command lines and Spark options write them: between commas.

A value with a comma, with space at its ends, or of no characters is in double quotes, as in CSV (RFC 4180).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from airflow_provider_streams.errors import InvalidRequest

_VALUE = re.compile(r'\s*(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<plain>[^",\s](?:[^,]*[^,\s])?))\s*(?:(?P<more>,)|$)')
_NUMBER = re.compile(r"[0-9]{1,9}")
_SPAN = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


def write(values: Iterable[object]) -> str:
    """Between commas; pairs as `first-last`."""
    return ",".join("-".join(map(str, one)) if isinstance(one, tuple) else _written(str(one)) for one in values)


def _written(value: str) -> str:
    found = _VALUE.fullmatch(value)
    is_plain = found is not None and found["plain"] == value
    return value if is_plain else '"' + value.replace('"', '""') + '"'


def words(what: str, text: str | None) -> tuple[str, ...]:
    """Those between commas, of which one may follow the last; None: the option is not given.

    Raises:
        InvalidRequest: there is none, or one is blank: taken as not given, an empty variable would read everything.
    """
    found: list[str] = []
    end, goes_on = 0, text is not None
    while text is not None and goes_on:
        value = _VALUE.match(text, end)
        if value is None:
            raise InvalidRequest(
                f"{what} are values between commas, none of them blank; got {text!r}. Leave the option out to choose "
                "none. Put a value with a comma, or with space at its ends, in double quotes"
            )
        found.append(value["plain"] or value["quoted"].replace('""', '"'))
        end = value.end()
        goes_on = bool(value["more"]) and bool(text[end:].strip())
    return tuple(found)


def numbers(what: str, text: str | None) -> tuple[int, ...]:
    """Whole numbers between commas.

    Raises:
        InvalidRequest: something else.
    """
    found = words(what, text)
    if not all(_NUMBER.fullmatch(word) for word in found):
        raise InvalidRequest(f"{what} are numbers between commas, like 0,3; got {text!r}")
    return tuple(int(word) for word in found)


def spans(what: str, text: str | None) -> tuple[tuple[int, int], ...]:
    """Pairs of numbers between commas.

    Raises:
        InvalidRequest: something else.
    """
    found = [_SPAN.fullmatch(word) for word in words(what, text)]
    if None in found:
        raise InvalidRequest(f"{what} are ranges between commas, like 0-1023,4096-8191; got {text!r}")
    return tuple((int(span[1]), int(span[2])) for span in found if span)
