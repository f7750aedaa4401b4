"""Questions about columns of text. Null is never what is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_streams.formats.arrow.arrays import Array, Flags, booleans, texts

_compute: Any = pc  # the stubs know functions of text for literal types only


def equal(values: Array, text: str) -> Flags:
    """Which values are this text."""
    return _flags(_compute.equal(values, text))


def among(values: Array, known: Sequence[str]) -> Flags:
    """Which values are one of these texts."""
    return _flags(_compute.is_in(values, value_set=texts(known)))


def matches(values: Array, pattern: str) -> Flags:
    """Which values a regular expression finds something in."""
    return _flags(_compute.match_substring_regex(values, pattern))


def replaced(values: Array, pattern: str, by: str) -> Array:
    """The values with what a regular expression finds replaced."""
    found: Array = _compute.replace_substring_regex(values, pattern, by)
    return found


def joined(parts: Sequence[Array | str], mark: str) -> Array:
    """Texts with a mark between them; null if a part is."""
    found: Array = _compute.binary_join_element_wise(*parts, mark)
    return found


def only(values: Array, rows: Flags) -> Array:
    """The values of some rows, null elsewhere."""
    found: Array = _compute.if_else(booleans(rows), values, pa.scalar(None, values.type))
    return found


def or_text(values: Array, text: str) -> Array:
    """The values, and a text where they are null."""
    found: Array = _compute.fill_null(values, text)
    return found


def lower(values: Array) -> Array:
    """The values in small letters."""
    found: Array = _compute.utf8_lower(values)
    return found


def upper(values: Array) -> Array:
    """The values in capital letters."""
    found: Array = _compute.utf8_upper(values)
    return found


def first_of(*columns: Array) -> Array:
    """The first value of each row that is not null."""
    found: Array = _compute.coalesce(*columns)
    return found


def _flags(values: pa.BooleanArray) -> Flags:
    found: Flags = values.fill_null(False).to_numpy(zero_copy_only=False)
    return found
