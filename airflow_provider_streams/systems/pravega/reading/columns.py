"""The columns of a Pravega read: their Arrow types, and how each is made for a batch of events."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import pyarrow as pa

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.systems.pravega.declaration import Pravega
from airflow_provider_streams.systems.pravega.metadata.event_pointer import EventPointer
from airflow_provider_streams.systems.pravega.metadata.segment_names import Segment
from airflow_provider_streams.systems.pravega.reading.event_decoder import Events

ArrowArray: TypeAlias = "pa.Array[Any]"

MAX_ROWS = 20_000
"""Rows of the largest batch."""


class Column(NamedTuple):
    """One column."""

    type: pa.DataType
    help: str
    make: Callable[[Segment, Events], ArrowArray]


def _same(kind: pa.DataType, help_: str, value: Callable[[Segment], Any]) -> Column:
    """A column with one value in all rows of a segment."""
    return Column(
        kind, help_, lambda segment, events: pa.repeat(cast("Any", pa.scalar(value(segment), kind)), len(events))
    )


def _next_offsets(_: Segment, events: Events) -> ArrowArray:
    following = np.empty(len(events), dtype=np.int64)
    following[:-1] = events.offsets[1:]
    following[-1:] = events.end
    return pa.array(following)


def _pointers(segment: Segment, events: Events) -> ArrowArray:
    starts = events.offsets.tolist()
    ends = [*starts[1:], events.end]
    name = segment.name
    pointers = [EventPointer(name, at, end - at).to_bytes() for at, end in zip(starts, ends, strict=True)]
    return pa.array(pointers, pa.binary())


COLUMNS: dict[str, Column] = {
    "event": Column(pa.binary(), "the event's bytes", lambda _, events: events.payloads),
    "scope": _same(pa.string(), "its scope", lambda segment: segment.stream.partition("/")[0]),
    "stream": _same(pa.string(), "its stream, without the scope", lambda s: s.stream.partition("/")[2]),
    "segment_id": _same(pa.int64(), "its segment: epoch << 32 | number", lambda segment: segment.id),
    "offset": Column(pa.int64(), "where it is stored in the segment", lambda _, events: pa.array(events.offsets)),
    "event_pointer": Column(pa.binary(), "what Java's EventPointer.fromBytes takes", _pointers),
    "segment": _same(pa.string(), "its segment's qualified name", lambda segment: segment.name),
    "next_offset": Column(pa.int64(), "where the event after it is stored", _next_offsets),
}


def schema(columns: Sequence[str] | None) -> pa.Schema:
    """The Arrow schema of these columns, by default `Pravega.default_columns`; `InvalidRequest` for unknown ones."""
    names = Pravega.default_columns if columns is None else tuple(columns)
    if not names or len(set(names)) != len(names):
        raise InvalidRequest(f"columns must be named once each, and at least one: {', '.join(names) or 'none'}")
    for name in names:
        if name not in COLUMNS:
            near = difflib.get_close_matches(name, COLUMNS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(COLUMNS)}"
            raise InvalidRequest(f"Pravega has no column {name!r}; {hint}")
    return pa.schema([pa.field(name, COLUMNS[name].type) for name in names])


class BatchMaker:
    """Makes the batches of one segment; what is the same in every row is made once."""

    def __init__(self, segment: Segment, columns: Sequence[str] | None) -> None:
        self.schema = schema(columns)
        self._segment = segment
        self._constant: dict[str, ArrowArray] = {}

    def batch(self, events: Events) -> pa.RecordBatch:
        """The columns of at most `MAX_ROWS` events."""
        return pa.RecordBatch.from_arrays(
            [self._column(name, events) for name in self.schema.names], schema=self.schema
        )

    def _column(self, name: str, events: Events) -> ArrowArray:
        if name not in Pravega.shard_columns:
            return COLUMNS[name].make(self._segment, events)
        known = self._constant.get(name)
        if known is None or len(known) < len(events):
            known = self._constant[name] = COLUMNS[name].make(self._segment, events)
        return known.slice(0, len(events))
