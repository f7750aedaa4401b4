"""Payloads that hold a key and a value: each with its length before it, big-endian; a length of -1 is null."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from airflow_provider_streams.formats.arrays import Array, Bytes, Flags, Ints, span_ends, spans
from airflow_provider_streams.formats.causes import GOOD, Causes, Codes, blame


class Pairs(NamedTuple):
    """Keys and values, null where they are."""

    keys: Array
    values: Array
    codes: Codes


def split(payloads: Array, causes: Causes) -> Pairs:
    """Keys and values of payloads that hold nothing else.

    Args:
        payloads: binary, without nulls.
        causes: where causes get their numbers.
    """
    codes = np.zeros(len(payloads), np.int16)
    data, starts, ends = span_ends(payloads)
    broken = causes.code("it is no pair of a key and a value with their lengths")
    key = _part(data, starts, ends, codes, broken)
    value = _part(data, key.stops, ends, codes, broken)
    blame(codes, value.stops != ends, broken)
    good = codes == GOOD
    return Pairs(_column(data, key, good), _column(data, value, good), codes)


class _Part(NamedTuple):
    starts: Ints
    stops: Ints
    there: Flags


def _part(data: Bytes, at: Ints, ends: Ints, codes: Codes, broken: int) -> _Part:
    good = (codes == GOOD) & (at + _LENGTH <= ends)
    blame(codes, ~good, broken)
    rows = np.flatnonzero(good)
    lengths = np.zeros(len(at), np.int64)
    if len(rows):
        raw = np.ascontiguousarray(data[at[rows, None] + np.arange(_LENGTH)])
        lengths[rows] = raw.view(">i4").reshape(-1)
    starts = at + _LENGTH
    stops = starts + np.maximum(lengths, 0)
    blame(codes, (lengths < -1) | (stops > ends), broken)
    return _Part(starts, stops, lengths >= 0)


def _column(data: Bytes, part: _Part, good: Flags) -> Array:
    there = good & part.there
    rows = np.flatnonzero(there)
    places = np.full(len(there), -1, np.int64)
    places[rows] = np.arange(len(rows))
    return spans(data, part.starts[rows], part.stops[rows], places)


_LENGTH: Final = 4
