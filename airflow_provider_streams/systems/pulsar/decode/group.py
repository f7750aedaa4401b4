"""A group of entries decoded together: the way is chosen here, and what is not asked for is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from airflow_provider_streams.formats.arrays import Array
from airflow_provider_streams.systems.pulsar.decode import fixed_size
from airflow_provider_streams.systems.pulsar.decode.assemble import (
    Origin,
    absent_columns,
    key_columns,
    message_columns,
)
from airflow_provider_streams.systems.pulsar.decode.entry import Group
from airflow_provider_streams.systems.pulsar.decode.key_filter import KeyFilter
from airflow_provider_streams.systems.pulsar.decode.rows import Rows
from airflow_provider_streams.systems.pulsar.decode.spans import SpanReader
from airflow_provider_streams.systems.pulsar.decode.unaligned import Ints
from airflow_provider_streams.systems.pulsar.limits import Limits

Span = tuple[int, int]
"""Of event times, in milliseconds since 1970, half-open."""


class Decoded(NamedTuple):
    """The rows of a group."""

    origin: Origin
    message_columns: dict[str, Array]
    stored_bytes: Ints
    """Of each row, its header included."""
    value_bytes: int
    """Of all rows' values."""
    paths: Counter[str]
    """How many entries were decoded in which way."""
    elsewhen: int = 0
    """Messages whose event time is not asked for, left out."""
    untimed: int = 0
    """Rows without an event time, kept by their publish time."""
    unchosen: int = 0
    """Rows left out because of their keys."""
    times: tuple[Ints, Ints] | None = None
    """Of each message that was compared with the times asked for: the number of its entry, and its time."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which messages become rows; by default all."""

    times: Span | None = None
    """Those of these event times."""
    keys: KeyFilter | None = None
    """Those of these keys."""

    @property
    def all(self) -> bool:
        """Nothing is left out."""
        return self.times is None and self.keys is None

    @property
    def columns(self) -> frozenset[str]:
        """What it takes to tell."""
        return frozenset({"event_time"} if self.times else ()) | (self.keys.columns if self.keys else frozenset())


ALL: Final = Chosen()


def decode_group(
    group: Group,
    partition: int,
    columns: Collection[str],
    limits: Limits,
    chosen: Chosen = ALL,
    *,
    views: bool = False,
) -> Decoded:
    """The rows of these entries, in their order; of those that are chosen, by what `columns` must have.

    With `views`, values are `binary_view`s of the memory that was received into.

    Raises:
        BadEntry: a payload is no batch of as many messages as its metadata state, or has too many properties.
    """
    matrices = fixed_size.matrices(group, columns) if chosen.all else None
    if matrices is None:
        return _by_spans(group, partition, columns, limits, chosen, views=views)
    return _by_matrices(group, matrices, partition, columns, views=views)


def _by_matrices(
    group: Group, matrices: Sequence[fixed_size.Matrix], partition: int, columns: Collection[str], *, views: bool
) -> Decoded:
    counts = group.asked
    owner = np.repeat(np.arange(len(counts)), counts)
    index = np.arange(len(owner)) - (np.cumsum(counts) - counts - group.first)[owner]
    found = absent_columns(len(owner), columns)
    values = fixed_size.views(group, matrices, owner, index) if views else fixed_size.values(group, matrices)
    found["value"] = values
    sizes = np.array([matrix.size for matrix in matrices])
    strides = np.array([matrix.stride for matrix in matrices])
    origin = Origin(group, partition, owner, index)
    return Decoded(origin, found, strides[owner], int(sizes @ counts), Counter(uniform=len(counts)))


def _by_spans(
    group: Group, partition: int, columns: Collection[str], limits: Limits, chosen: Chosen, *, views: bool
) -> Decoded:
    reader = SpanReader(group, columns, limits)
    reader.read()
    rows = reader.rows
    index = _batch_indexes(group, rows.owner)
    kept = ~rows.compacted_out
    if (group.asked != group.messages).any():
        kept &= (index < 0) | ((group.first[rows.owner] <= index) & (index < group.end[rows.owner]))
    elsewhen = untimed = 0
    compared = None
    if chosen.times is not None:
        times = _times_ms(group, rows)
        compared = (rows.owner[kept], times[kept])
        timed = kept & (times >= chosen.times[0]) & (times < chosen.times[1])
        elsewhen, kept = int(kept.sum() - timed.sum()), timed
    if not kept.all():
        rows, index = rows.keep(kept), index[kept]
    before = len(rows)
    if chosen.keys is not None:
        keyed = chosen.keys.kept(key_columns(rows, reader.data))
        rows, index = rows.keep(keyed), index[keyed]
    if chosen.times is not None:
        untimed = int((_event_ms(rows) == 0).sum())
    sizes = rows.value_end - rows.value_start
    value_bytes = int(sizes.sum()) - int(sizes[rows.null_value].sum())
    origin = Origin(group, partition, rows.owner, index)
    stored = rows.value_end - rows.begin
    found = message_columns(rows, reader.data, origin, views=views)
    return Decoded(origin, found, stored, value_bytes, reader.paths, elsewhen, untimed, before - len(rows), compared)


def _times_ms(group: Group, rows: Rows) -> Ints:
    """Their event times; of those without one, their publish times."""
    own = _event_ms(rows)
    published = np.fromiter((metadata.publish_ms for metadata in group.metadata), np.int64)[rows.owner]
    return np.where(own == 0, published, own)


def _event_ms(rows: Rows) -> Ints:
    return np.zeros(len(rows), np.int64) if rows.event_ms is None else rows.event_ms


def _batch_indexes(group: Group, owner: Ints) -> Ints:
    """The batch index of each stored message; -1: its entry is no batch."""
    first_row = group.first_row
    index = np.arange(len(owner)) - first_row[owner]
    if not group.is_batch.all():
        index[~group.is_batch[owner]] = -1
    for row, metadata in zip(first_row.tolist(), group.metadata, strict=True):
        if metadata.num_messages is not None and metadata.compacted_batch_indexes:
            index[row : row + len(metadata.compacted_batch_indexes)] = metadata.compacted_batch_indexes
    return index
