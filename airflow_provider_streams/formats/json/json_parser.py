"""JSON texts to Python values that keep what Python's own would lose."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import numpy as np

from airflow_provider_streams.formats.arrow.arrays import Array, Bytes, Flags, Ints, span_ends
from airflow_provider_streams.formats.json.jackson import Number, Refused

MOST_DEPTH: Final = 100
"""Values within values."""

MOST_DIGITS: Final = 4000
"""Bytes of a text whose numbers Python reads in any case. It takes long for longer ones, and refuses them."""


class JsonParser:
    """Parses single texts. An object becomes a tuple of its keys and values, in their order.

    Args:
        exact: whether a fraction is a `Number`, not the nearest number that Python has.
    """

    def __init__(self, *, exact: bool) -> None:
        self._scan = _EXACT_SCAN if exact else _SCAN

    def quickly(self, data: bytes) -> Any:
        """The same as `parsed`, for a text that `plain_rows` has found."""
        try:
            text = data.decode()
            parsed, end = self._scan(text, 0)
            if end == len(text):
                return parsed
        except (ValueError, StopIteration, RecursionError):
            pass
        return self.parsed(data)  # which says why

    def parsed(self, data: bytes) -> Any:
        """The value of a text. Raises Refused if it is not JSON."""
        if len(data) > 2 * MOST_DEPTH and data.count(b"{") + data.count(b"[") > MOST_DEPTH and _is_deep(data):
            raise Refused(f"is nested deeper than {MOST_DEPTH} levels")
        try:
            # Python's whole numbers have no -0, and Python refuses those of thousands of digits, as they take long
            odd = len(data) > MOST_DIGITS or (b"-0" in data and _MINUS_ZERO.search(data))
            text = data.decode().strip(" \t\n\r")
            parsed, end = (_TEXT_SCAN if odd else self._scan)(text, 0)
        except UnicodeDecodeError:
            raise Refused("is not UTF-8") from None
        except (ValueError, StopIteration, RecursionError):
            raise Refused("is not JSON") from None
        if end < len(text):
            raise Refused("more follows its JSON")
        return parsed


def plain_rows(payloads: Array) -> Flags:
    """Which texts `JsonParser.quickly` may parse: they are short, not deep, and no number of them is -0."""
    data, starts, ends = span_ends(payloads)
    if not len(starts):
        return np.zeros(0, np.bool_)
    held, first = data[starts[0] : ends[-1]], starts - starts[0]
    lengths = ends - starts
    found = lengths <= MOST_DIGITS
    if lengths.max() > 2 * MOST_DEPTH:
        found &= openers(held, first) <= MOST_DEPTH
    zeros = (held[1:-1] == ord("-")) & (held[2:] == ord("0"))
    if zeros.any():
        places = np.flatnonzero(zeros)  # of the bytes before
        places = places[_BEFORE_NUMBERS[held[places]]]
        found[np.searchsorted(first, places, "right") - 1] = False
    return found


def openers(data: Bytes, starts: Ints) -> Ints:
    """How many brackets each span opens. The spans begin at these places, one after the other."""
    places = np.flatnonzero((data & _WITHOUT_CASE) == ord("["))
    return np.diff(np.append(np.searchsorted(places, starts), len(places)))


def _is_deep(data: bytes) -> bool:
    depth = 0
    for token in _TOKENS.finditer(data):
        if token[0] in (b"{", b"["):
            depth += 1
            if depth > MOST_DEPTH:
                return True
        elif token[0] in (b"}", b"]"):
            depth -= 1
    return False


def _scanner(fraction: type, whole: type) -> Any:
    decoder = json.JSONDecoder(object_pairs_hook=tuple, parse_float=fraction, parse_int=whole, parse_constant=Number)
    return decoder.scan_once  # type: ignore[attr-defined]  # what `raw_decode` calls


_SCAN, _EXACT_SCAN, _TEXT_SCAN = _scanner(float, int), _scanner(Number, int), _scanner(Number, Number)
_MINUS_ZERO: Final = re.compile(rb"[:,\[\s]-0")
_TOKENS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)
_BEFORE_NUMBERS: Final[Flags] = np.zeros(256, np.bool_)
_BEFORE_NUMBERS[list(b":,[ \t\n\r\f\v")] = True
_WITHOUT_CASE: Final = np.uint8(0xDF)
"""A bit distinguishes both kinds of brackets, as it does capital letters and others."""
