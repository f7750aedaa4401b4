"""Which rows of decoded batches are a window's, by a field that is the event's time. Pure."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.plan.row_filter import FieldFilter, Stored

if TYPE_CHECKING:
    Array = pa.Array[Any]

_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_MICROSECONDS: Final = 10**6
_DAY: Final = 86_400 * _MICROSECONDS
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


class KeptRows(NamedTuple):
    """Which rows of a batch are the window's."""

    mask: pa.BooleanArray
    """Of each row; never null."""
    filtered: int
    """How many rows are not the window's."""
    untimed: int
    """How many of the window's rows have no event time: they were stored in the window's time."""


def place_column(row_filter: FieldFilter) -> str | None:
    """The system's column to read in addition to the payloads; None: none is needed."""
    return row_filter.stored.column if row_filter.stored else None


def keep(value: Array, row_filter: FieldFilter, place: Array | None, shard: str) -> KeptRows:
    """The rows of a batch that are the window's.

    A row without an event time has a null field, is a tombstone, or could not be decoded. It is the window's if it was
    stored in the window's time, so each row is in exactly one window.

    Args:
        value: decoded values: structs, or the column `value`; null if there is none.
        row_filter: the plan's.
        place: `place_column` of the same rows.
        shard: of their split.

    Raises:
        InvalidRequest: there is no such field, or it is no time.
    """
    times = _field(value, row_filter.column)
    untimed = pc.and_(pc.is_null(times), _stored_in_time(row_filter, place, shard, len(value)))
    mask: pa.BooleanArray = pc.or_(_known(_within(times, row_filter)), untimed)
    return KeptRows(mask, len(value) - mask.true_count, untimed.true_count)


class RowTimes(NamedTuple):
    """Times in whole numbers of a unit."""

    numbers: Array
    """Null: the row has no time."""
    unit: Fraction
    """In microseconds."""


def own_times(value: Array, row_filter: FieldFilter) -> RowTimes:
    """The event times of decoded rows. `InvalidRequest`: there is no such field, or it is no time."""
    times = _field(value, row_filter.column)
    return RowTimes(_numbers(times), _microseconds(row_filter, times.type))


def stored_times(row_filter: FieldFilter, place: Array | None) -> RowTimes | None:
    """The times that count for rows without an event time; None: their place counts, not a time."""
    if row_filter.stored is None or row_filter.stored.spans is not None or place is None or place.null_count:
        return None
    return RowTimes(_numbers(place), _microseconds(FieldFilter(row_filter.stored.column, 0, 0), place.type))


def _field(value: Array, path: str) -> Array:
    """A field by its name or path; null if a struct on the path is."""
    if not pa.types.is_struct(value.type):
        if path != "value":
            raise _missing(path, value.type)
        return value
    names = [path] if value.type.get_field_index(path) >= 0 else path.split(".")
    found = value
    for name in names:
        if not pa.types.is_struct(found.type) or found.type.get_field_index(name) < 0:
            raise _missing(path, value.type)
        found = pc.struct_field(found, [name])
    return found


def _missing(path: str, kind: pa.DataType) -> InvalidRequest:
    return InvalidRequest(f"event_time={path!r}: decoded values have no such field; they are {str(kind)[:300]}")


def _within(times: Array, row_filter: FieldFilter) -> pa.BooleanArray:
    """Whether each time is in the window; null without a time. The field's own unit counts, so nothing is rounded."""
    kind, numbers = times.type, _numbers(times)
    first = _first(row_filter.start_us, row_filter, kind)
    last = _first(row_filter.end_us, row_filter, kind) - 1
    if first > _MOST or last < _LEAST:
        return pc.and_(pc.is_valid(times), pa.scalar(value=False))
    after = pc.greater_equal(numbers, pa.scalar(max(first, _LEAST), pa.int64()))
    return pc.and_(after, pc.less_equal(numbers, pa.scalar(min(last, _MOST), pa.int64())))


def _known(mask: pa.BooleanArray) -> pa.BooleanArray:
    """Null means no."""
    sure: pa.BooleanArray = pc.if_else(pc.is_valid(mask), mask, pa.scalar(value=False))
    return sure


def _numbers(times: Array) -> Array:
    """In the field's own unit."""
    return times.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date32(times.type) else times.cast(pa.int64())


def _first(moment_us: int, row_filter: FieldFilter, kind: pa.DataType) -> int:
    """The first whole number of the field's unit that is at or after a time."""
    return math.ceil(moment_us / _microseconds(row_filter, kind))


def _microseconds(row_filter: FieldFilter, kind: pa.DataType) -> Fraction:
    """The unit in which whole numbers of a type count time."""
    if pa.types.is_date32(kind):
        return Fraction(_DAY)
    unit = row_filter.unit if pa.types.is_integer(kind) else getattr(kind, "unit", None)
    if unit is None or (pa.types.is_timestamp(kind) and row_filter.unit is not None):
        raise InvalidRequest(f"event_time={row_filter.column!r} is of type {kind}, with the unit {row_filter.unit}")
    return Fraction(_MICROSECONDS, _PER_SECOND[unit])


def _stored_in_time(row_filter: FieldFilter, place: Array | None, shard: str, count: int) -> pa.BooleanArray:
    stored = row_filter.stored
    if stored is None or place is None:
        return pa.repeat(pa.scalar(value=False), count)
    if stored.spans is None:
        by_time = FieldFilter(stored.column, row_filter.start_us, row_filter.end_us)
        return _known(_within(place, by_time))
    return _in_span(stored, place, shard)


def _in_span(stored: Stored, place: Array, shard: str) -> pa.BooleanArray:
    first, end = (stored.spans or {}).get(shard, (0, 0))
    return pc.and_(pc.greater_equal(place, pa.scalar(first, pa.int64())), pc.less(place, pa.scalar(end, pa.int64())))
