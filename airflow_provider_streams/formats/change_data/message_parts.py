"""What messages say of their changes, before rows are columns of a plan: one shape for every connector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array
from airflow_provider_streams.formats.arrow.arrow_types import TIMESTAMP
from airflow_provider_streams.formats.change_data.row_types.column_meanings import Meaning
from airflow_provider_streams.formats.change_data.values import text_columns
from airflow_provider_streams.model.schema.change_rows import KINDS

KIND = {name: np.int8(place) for place, name in enumerate(KINDS)}
"""The number of each kind of message."""

Kinds = np.ndarray[Any, np.dtype[np.int8]]


@dataclass(frozen=True)
class Parts:
    """Changes of messages of one layout.

    Args:
        kinds: what each message is, see `KINDS`.
        op: the operation of each change row; null: it is none.
        row: the meaning of a row; None: there are no rows.
        after: rows after the change, as they were read.
        before: rows before it.
        source_us, seen_us: microseconds since 1970.
        source: fields of the source's log, by their names in Debezium.
        metadata: columns of change rows that are ready, by name.
        wrong: why messages are no change at all, by the text of the cause.
    """

    kinds: Kinds
    op: Array
    row: Meaning | None
    after: Array | None = None
    before: Array | None = None
    source_us: Array | None = None
    seen_us: Array | None = None
    source: Mapping[str, Array] = field(default_factory=dict)
    metadata: Mapping[str, Array] = field(default_factory=dict)
    wrong: Mapping[str, arrays.Flags] = field(default_factory=dict)


class FieldsOf:
    """Fields of read messages, by name; null if messages do not have them."""

    def __init__(self, values: Array) -> None:
        self._values = values
        self._names = {one.name: place for place, one in enumerate(values.type)} if _is_struct(values) else {}

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def __len__(self) -> int:
        return len(self._values)

    @property
    def names(self) -> list[str]:
        """The names of all fields."""
        return list(self._names)

    def get(self, name: str) -> Array | None:
        """A field as it was read; None: there is none."""
        place = self._names.get(name)
        return None if place is None else pc.struct_field(self._values, place)

    def inside(self, name: str) -> FieldsOf:
        """The fields of a struct."""
        found = self.get(name)
        return FieldsOf(arrays.nulls(pa.struct([]), len(self)) if found is None else found)

    def text(self, name: str) -> Array:
        """A field as text."""
        found = self.get(name)
        if found is None or not (_is_simple(found)):
            return arrays.nulls(pa.string(), len(self))
        made: Array = found.cast(pa.string())
        return made

    def number(self, name: str) -> Array:
        """A field as whole numbers; others are null."""
        found = self.get(name)
        if found is None or not pa.types.is_integer(found.type):
            return arrays.nulls(pa.int64(), len(self))
        made: Array = found.cast(pa.int64())
        return made

    def there(self, name: str) -> arrays.Flags:
        """Which messages have the field."""
        found = self.get(name)
        return np.zeros(len(self), np.bool_) if found is None else arrays.valid_flags(found)

    def named(self) -> dict[str, Array]:
        """All simple fields, by name."""
        found = {name: self.get(name) for name in self._names}
        return {name: one for name, one in found.items() if one is not None and _is_simple(one)}

    def microseconds(self, prefix: str = "ts") -> Array:
        """The best of `ts_us` and `ts_ms`, in microseconds since 1970."""
        whole, rough = self.number(f"{prefix}_us"), self.number(f"{prefix}_ms")
        return text_columns.first_of(whole, pc.multiply(_within(rough, _MOST_MS), pa.scalar(1000, pa.int64())))


def as_moments(microseconds: Array | None, count: int) -> Array:
    """Moments; null if they are of no year from 1 to 9999."""
    if microseconds is None:
        return arrays.nulls(TIMESTAMP, count)
    made: Array = _within(microseconds, _MOST_MS * 1000).cast(TIMESTAMP)
    return made


def _within(values: Array, most: int) -> Array:
    inside = pc.less_equal(pc.abs(values), pa.scalar(most, pa.int64()))
    found: Array = pc.if_else(inside, values, pa.scalar(None, values.type))
    return found


def _is_struct(values: Array) -> bool:
    return bool(pa.types.is_struct(values.type))


def _is_simple(values: Array) -> bool:
    kind = values.type
    return bool(
        pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_floating(kind)
    )


_MOST_MS = 62_135_596_800_000
"""Milliseconds from the year 1 to 1970: what is farther away from 1970 on either side is no time of a log."""
