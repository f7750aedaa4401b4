"""Bytes as text."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrays import Array, Flags, span_ends


def as_text(values: Array) -> Array:
    """A binary array as strings; bytes that are all ASCII are not looked at value by value.

    Raises:
        pa.ArrowInvalid: a value is not UTF-8.
    """
    if not is_ascii(values):
        return values.cast(pa.string())
    return pa.Array.from_buffers(pa.string(), len(values), values.buffers(), offset=values.offset)


def is_ascii(values: Array) -> bool:
    """Whether all bytes of a binary array are below 128; also those between its values are."""
    data, starts, ends = span_ends(values)
    return not len(starts) or ends[-1] <= starts[0] or bool(data[starts[0] : ends[-1]].max() < _BEYOND_ASCII)


def not_utf8(values: Array) -> Flags:
    """Which values of a binary array are not UTF-8 (nulls are). Surrogates and overlong forms are not, as in Java."""
    try:
        as_text(values)
    except pa.ArrowInvalid:
        return np.array([value is not None and not _is_utf8(value) for value in values.to_pylist()], np.bool_)
    return np.zeros(len(values), np.bool_)


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


_BEYOND_ASCII: Final = 128
