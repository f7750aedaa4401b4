"""Which schema each payload names: in its message's metadata, in five bytes before it, or nowhere."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrays import (
    Array,
    Bytes,
    Flags,
    Ints,
    memory,
    nulls,
    numbers,
    span_ends,
    spans,
    valid_flags,
)
from airflow_provider_streams.formats.causes import Causes, Codes, blame

HEADER: Final = 5
"""Bytes before the body: 1, and the number of the encoding (big-endian)."""

JAVA: Final = (
    "it is an object of Java's own serializer, which no schema describes: read bytes with value=Bytes(), or write "
    "events with a serializer of a schema"
)


class Framed(NamedTuple):
    """Payloads and the schemas that they name."""

    bodies: Array
    """What is left of each payload."""
    versions: Ints | None
    """The number of each; None: they name none. Those of rows without any mean nothing."""
    named: Flags
    """Which rows name one."""


def none_named(values: Array) -> Framed:
    """Nothing says a version."""
    return Framed(values, None, np.zeros(len(values), np.bool_))


def named_by_message(values: Array, versions: Array | None, codes: Codes, causes: Causes) -> Framed:
    """Eight bytes of the message's metadata."""
    count = len(values)
    if versions is None:
        return Framed(values, np.zeros(count, np.int64), np.zeros(count, np.bool_))
    if (only := _only_version(versions)) is not None:
        return Framed(values, np.full(count, only), np.ones(count, np.bool_))
    data, starts, ends = span_ends(versions)
    there = valid_flags(versions)
    whole = there & (ends - starts == _VERSION)
    blame(codes, there & ~whole, causes.code("its schema version is not of eight bytes"))
    return Framed(values, _big_endian(data, starts, whole, _VERSION), whole)


def named_by_header(values: Array, codes: Codes, causes: Causes) -> Framed:
    """A registry's header before the body."""
    data, starts, ends = span_ends(values)
    there = valid_flags(values)
    sized = there & (ends - starts >= HEADER)
    first = np.zeros(len(values), np.uint8)
    first[sized] = data[starts[sized]]
    named = sized & (first == 1)
    blame(codes, sized & starts_as_java(values) & ~named, causes.code(JAVA))
    blame(codes, there & ~sized, causes.code("it is shorter than a registry's header: was it written without one?"))
    blame(codes, sized & ~named, causes.code("it does not begin with a registry's header: was it written without one?"))
    versions = _big_endian(data, starts + 1, named, HEADER - 1)
    bodies = spans(data, np.where(named, starts + HEADER, starts), ends) if named.any() else values
    return Framed(bodies, versions, named)


def starts_as_java(values: Array) -> Flags:
    """Which payloads begin like a stream of Java's `ObjectOutputStream`."""
    data, starts, ends = span_ends(values)
    long_enough = np.flatnonzero(valid_flags(values) & (ends - starts >= len(_JAVA)))
    found = np.zeros(len(values), np.bool_)
    if len(long_enough):
        heads = data[starts[long_enough, None] + np.arange(len(_JAVA))]
        found[long_enough] = (heads == _JAVA).all(axis=1)
    return found


def version_numbers(framed: Framed) -> Array:
    """The numbers, null where there is none."""
    if framed.versions is None:
        return nulls(pa.int64(), len(framed.named))
    return numbers(pa.int64(), framed.versions, framed.named)


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
    """The version that every message of a batch names, which is the usual case; None: look at each."""
    held = versions.buffers()
    if versions.null_count or not len(versions) or held[1] is None or held[2] is None:
        return None
    offsets = memory(held[1], np.int32)[versions.offset : versions.offset + len(versions) + 1]
    if not (np.diff(offsets) == _VERSION).all():
        return None
    words = memory(held[2], np.uint8)[offsets[0] : offsets[-1]].view(np.int64)
    return int(words[:1].view(">i8")[0]) if (words == words[0]).all() else None


def _big_endian(data: Bytes, starts: Ints, rows: Flags, width: int) -> Ints:
    if len(rows) and rows.all() and (np.diff(starts) == width).all():
        return data[starts[0] : starts[-1] + width].view(f">i{width}").astype(np.int64)
    found = np.zeros(len(rows), np.int64)
    places = np.flatnonzero(rows)
    if len(places):
        raw = np.ascontiguousarray(data[starts[places, None] + np.arange(width)])
        found[places] = raw.view(f">i{width}").reshape(-1)
    return found


_VERSION: Final = 8
_JAVA: Final = np.array([0xAC, 0xED, 0x00, 0x05], np.uint8)
