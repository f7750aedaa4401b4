"""What is around a payload's value: the schema version that it names, or a key.

A payload names its version in its message's metadata, in five bytes before it, or nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array, Bytes, Flags, Ints
from airflow_provider_streams.formats.decode_failures import GOOD, Causes, Codes, blame
from airflow_provider_streams.model.window.basis import SLACK

HEADER: Final = 5
"""Bytes before the body: 1, and the number of the encoding (big-endian)."""

JAVA: Final = (
    "it is an object of Java's own serializer, which no schema describes: read bytes with value=Bytes(), or write "
    "events with a serializer of a schema"
)


class Framed(NamedTuple):
    """Payloads and the schemas that they name."""

    bodies: Array
    """The rest of each payload."""
    versions: Ints | None
    """The number of each row's version; None: no row names one."""
    named: Flags
    """Which rows name one. The numbers of others mean nothing."""


def named_by_message(values: Array, versions: Array | None, codes: Codes, causes: Causes) -> Framed:
    """Eight bytes of the message's metadata name the version."""
    count = len(values)
    if versions is None:
        return Framed(values, np.zeros(count, np.int64), np.zeros(count, np.bool_))
    if (only := _only_version(versions)) is not None:
        return Framed(values, np.full(count, only), np.ones(count, np.bool_))
    data, starts, ends = arrays.span_ends(versions)
    there = arrays.valid_flags(versions)
    whole = there & (ends - starts == _VERSION)
    blame(codes, there & ~whole, causes.code("its schema version is not of eight bytes"))
    return Framed(values, _big_endian(data, starts, whole, _VERSION), whole)


def named_by_header(values: Array, codes: Codes, causes: Causes) -> Framed:
    """A registry's header before the body names the version."""
    data, starts, ends = arrays.span_ends(values)
    there = arrays.valid_flags(values)
    sized = there & (ends - starts >= HEADER)
    first = np.zeros(len(values), np.uint8)
    first[sized] = data[starts[sized]]
    named = sized & (first == 1)
    blame(codes, sized & starts_as_java(values) & ~named, causes.code(JAVA))
    blame(codes, there & ~sized, causes.code("it is shorter than a registry's header: was it written without one?"))
    blame(codes, sized & ~named, causes.code("it does not begin with a registry's header: was it written without one?"))
    versions = _big_endian(data, starts + 1, named, HEADER - 1)
    bodies = arrays.spans(data, np.where(named, starts + HEADER, starts), ends) if named.any() else values
    return Framed(bodies, versions, named)


def starts_as_java(values: Array) -> Flags:
    """Which payloads begin as a stream of Java's `ObjectOutputStream` does."""
    data, starts, ends = arrays.span_ends(values)
    long_enough = np.flatnonzero(arrays.valid_flags(values) & (ends - starts >= len(_JAVA)))
    found = np.zeros(len(values), np.bool_)
    if len(long_enough):
        heads = data[starts[long_enough, None] + np.arange(len(_JAVA))]
        found[long_enough] = (heads == _JAVA).all(axis=1)
    return found


def version_numbers(framed: Framed) -> Array:
    """The numbers of the versions, null for rows without one."""
    if framed.versions is None:
        return arrays.nulls(pa.int64(), len(framed.named))
    return arrays.numbers(pa.int64(), framed.versions, framed.named)


def of_version(framed: Framed, wanted: Flags) -> dict[int, Ints]:
    """The wanted rows of each version, in order."""
    if framed.versions is None:
        return {}
    asked = framed.named & wanted
    whole = bool(asked.all())
    rows = np.arange(len(asked)) if whole else np.flatnonzero(asked)
    numbers_ = framed.versions if whole else framed.versions[rows]
    if len(rows) and (numbers_ == numbers_[0]).all():
        return {int(numbers_[0]): rows}
    order = np.argsort(numbers_, kind="stable")
    found, firsts = np.unique(numbers_[order], return_index=True)
    return dict(zip(found.tolist(), np.split(rows[order], firsts[1:]), strict=True)) if len(found) else {}


def _only_version(versions: Array) -> int | None:
    """The version that every message of a batch names, as usual; None: they may differ."""
    held = versions.buffers()
    if versions.null_count or not len(versions) or held[1] is None or held[2] is None:
        return None
    offsets = arrays.memory(held[1], np.int32)[versions.offset : versions.offset + len(versions) + 1]
    if not (np.diff(offsets) == _VERSION).all():
        return None
    words = arrays.memory(held[2], np.uint8)[offsets[0] : offsets[-1]].view(np.int64)
    return int(words[:1].view(">i8")[0]) if (words == words[0]).all() else None


def _big_endian(data: Bytes, starts: Ints, rows: Flags, width: int) -> Ints:
    """The numbers that start at these places, 0 for other rows."""
    if len(rows) and rows.all() and (np.diff(starts) == width).all():
        return data[starts[0] : starts[-1] + width].view(f">i{width}").astype(np.int64)
    found = np.zeros(len(rows), np.int64)
    places = np.flatnonzero(rows)
    if len(places):
        raw = np.ascontiguousarray(data[starts[places, None] + np.arange(width)])
        found[places] = raw.view(f">i{width}").reshape(-1)
    return found


class Registered:
    """When the versions of one name were registered: a payload that is older names a deleted schema of the same number.

    If all versions of a topic are deleted, their numbers start again. Producers' clocks may lag by `SLACK`.

    Args:
        made: milliseconds by version; a version that it lacks may be of any time.
        causes: numbers the causes.
    """

    def __init__(self, made: Mapping[str, int], causes: Causes) -> None:
        self._first = {int(version): (ms - _SLACK_MS) * 1000 for version, ms in made.items()}
        self._last_of_all = max(self._first.values(), default=0)
        self._causes = causes

    def times(self, written: Array | None) -> Ints | None:
        """When rows were written; None: none of them is too old for any version.

        Args:
            written: timestamps in microseconds; null: not known.
        """
        if written is None or not len(written) or not self._first:
            return None
        times = np.where(arrays.valid_flags(written), arrays.number_values(written), _LATEST)
        return times if times.min() < self._last_of_all else None

    def in_time(self, version: int, rows: Ints, times: Ints | None, codes: Codes) -> Ints:
        """The rows of a version that were not written before it. The others get their cause."""
        if times is None or version not in self._first:
            return rows
        early = times[rows] < self._first[version]
        if not early.any():
            return rows
        codes[rows[early]] = self._causes.code(
            f"its schema version {version} was registered after it was written: the schema it was written with was "
            "deleted"
        )
        return rows[~early]


class Pairs(NamedTuple):
    """Keys and values, which may be null."""

    keys: Array
    values: Array
    codes: Codes


def split_pairs(payloads: Array, causes: Causes) -> Pairs:
    """Keys and values of payloads: each after its length, big-endian; a length of -1 is null.

    Args:
        payloads: binary, without nulls.
        causes: numbers the causes.
    """
    codes = np.zeros(len(payloads), np.int16)
    data, starts, ends = arrays.span_ends(payloads)
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
    lengths = _big_endian(data, at, good, _LENGTH)
    starts = at + _LENGTH
    stops = starts + np.maximum(lengths, 0)
    blame(codes, (lengths < -1) | (stops > ends), broken)
    return _Part(starts, stops, lengths >= 0)


def _column(data: Bytes, part: _Part, good: Flags) -> Array:
    there = good & part.there
    return arrays.spans(data, part.starts[there], part.stops[there], np.where(there, np.cumsum(there) - 1, -1))


_VERSION: Final = 8
_JAVA: Final = np.array([0xAC, 0xED, 0x00, 0x05], np.uint8)
_LENGTH: Final = 4
_SLACK_MS: Final = round(SLACK.total_seconds() * 1000)
_LATEST: Final = np.iinfo(np.int64).max
