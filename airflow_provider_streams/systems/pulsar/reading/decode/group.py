"""Decodes a group of entries: chooses how, and leaves out the messages that are not asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from airflow_provider_streams.formats.arrow.arrays import Array
from airflow_provider_streams.systems.pulsar.reading.decode.assemble import (
    Origin,
    absent_columns,
    key_columns,
    message_columns,
)
from airflow_provider_streams.systems.pulsar.reading.decode.batches import fixed_size
from airflow_provider_streams.systems.pulsar.reading.decode.batches.message_spans import SpanReader
from airflow_provider_streams.systems.pulsar.reading.decode.entry import Group
from airflow_provider_streams.systems.pulsar.reading.decode.headers.single_header import Tag
from airflow_provider_streams.systems.pulsar.reading.decode.key_filter import KeyFilter
from airflow_provider_streams.systems.pulsar.reading.decode.unaligned import Ints
from airflow_provider_streams.systems.pulsar.reading.entry_limits import Limits

Span = tuple[int, int]
"""Of event times, in milliseconds since 1970, half-open."""


class Decoded(NamedTuple):
    """The rows of a group."""

    origin: Origin
    message_columns: dict[str, Array]
    stored_bytes: Ints
    """Of each row, including its header."""
    value_bytes: int
    """Of all rows' values."""
    paths: Counter[str]
    """How many entries were decoded in which way."""
    left_out: int = 0
    """Messages left out because of their event times or keys."""
    untimed: int = 0
    """Rows that have no event time, and were kept by their publish time."""
    times: tuple[Ints, Ints] | None = None
    """Of each message whose event time was compared: the number of its entry, and the time."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which messages become rows, and with which columns; without times and keys, all messages."""

    columns: frozenset[str]
    """They include those that times and keys need."""
    times: Span | None = None
    """Only messages with these event times."""
    keys: KeyFilter | None = None
    """Only messages with these keys."""


def decode_group(group: Group, partition: int, limits: Limits, chosen: Chosen, *, views: bool = False) -> Decoded:
    """The chosen messages of these entries, in their order.

    With `views`, values are `binary_view`s of the memory that received them.

    Raises:
        BadEntry: a payload is not a batch of as many messages as its metadata state, or has too many properties.
    """
    takes_all = chosen.times is None and chosen.keys is None
    matrices = fixed_size.matrices(group, chosen.columns) if takes_all else None
    if matrices is None:
        return _by_spans(group, partition, limits, chosen, views=views)
    return _by_matrices(group, matrices, partition, chosen.columns, views=views)


def _by_matrices(
    group: Group, matrices: Sequence[fixed_size.Matrix], partition: int, columns: Collection[str], *, views: bool
) -> Decoded:
    counts = group.asked
    owner = np.repeat(np.arange(len(counts)), counts)
    index = np.arange(len(owner)) - (np.cumsum(counts) - counts - group.first)[owner]
    found = absent_columns(len(owner), columns)
    found["value"] = fixed_size.views(group, matrices, owner, index) if views else fixed_size.values(group, matrices)
    sizes = np.array([matrix.size for matrix in matrices])
    strides = np.array([matrix.stride for matrix in matrices])
    origin = Origin(group, partition, owner, index)
    return Decoded(origin, found, strides[owner], int(sizes @ counts), Counter(uniform=len(counts)))


def _by_spans(group: Group, partition: int, limits: Limits, chosen: Chosen, *, views: bool) -> Decoded:
    reader = SpanReader(group, chosen.columns, limits)
    reader.read()
    rows = reader.rows
    index = _batch_indexes(group, rows.owner)
    kept = ~rows.flags[Tag.COMPACTED_OUT]
    if (group.asked != group.messages).any():
        kept &= (index < 0) | ((group.first[rows.owner] <= index) & (index < group.end[rows.owner]))
    untimed, compared = 0, None
    stored = int(kept.sum())
    if chosen.times is not None:
        # a message without an event time counts with its publish time
        published = np.fromiter((metadata.publish_ms for metadata in group.metadata), np.int64)[rows.owner]
        times = np.where(rows.numbers[Tag.EVENT_TIME] == 0, published, rows.numbers[Tag.EVENT_TIME])
        compared = (rows.owner[kept], times[kept])
        kept &= (times >= chosen.times[0]) & (times < chosen.times[1])
    if not kept.all():
        rows, index = rows.keep(kept), index[kept]
    if chosen.keys is not None:
        keyed = chosen.keys.kept(key_columns(rows, reader.data))
        rows, index = rows.keep(keyed), index[keyed]
    if chosen.times is not None:
        untimed = int((rows.numbers[Tag.EVENT_TIME] == 0).sum())
    sizes = rows.value_end - rows.value_start
    value_bytes = int(sizes.sum()) - int(sizes[rows.flags[Tag.NULL_VALUE]].sum())
    origin = Origin(group, partition, rows.owner, index)
    stored_bytes = rows.value_end - rows.begin
    found = message_columns(rows, reader.data, origin, views=views)
    left_out = stored - len(rows)
    return Decoded(origin, found, stored_bytes, value_bytes, reader.paths, left_out, untimed, compared)


def _batch_indexes(group: Group, owner: Ints) -> Ints:
    """The batch index of each stored message; -1: its entry is not a batch."""
    first_row = group.first_row
    index = np.arange(len(owner)) - first_row[owner]
    if not group.is_batch.all():
        index[~group.is_batch[owner]] = -1
    for row, metadata in zip(first_row.tolist(), group.metadata, strict=True):
        if metadata.num_messages is not None and metadata.compacted_batch_indexes:
            index[row : row + len(metadata.compacted_batch_indexes)] = metadata.compacted_batch_indexes
    return index
