"""A group of entries decoded together: the way is chosen here, and what is not asked for is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from airflow_provider_streams.systems.pulsar.decode import fixed_size
from airflow_provider_streams.systems.pulsar.decode.arrays import Array
from airflow_provider_streams.systems.pulsar.decode.assemble import Origin, absent_columns, message_columns
from airflow_provider_streams.systems.pulsar.decode.entry import Group
from airflow_provider_streams.systems.pulsar.decode.spans import SpanReader
from airflow_provider_streams.systems.pulsar.decode.unaligned import Ints
from airflow_provider_streams.systems.pulsar.limits import Limits


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


def decode_group(group: Group, partition: int, columns: Collection[str], limits: Limits) -> Decoded:
    """The rows of these entries, in their order.

    Raises:
        BadEntry: a payload is no batch of as many messages as its metadata state, or has too many properties.
    """
    matrices = fixed_size.matrices(group, columns)
    if matrices is None:
        return _by_spans(group, partition, columns, limits)
    return _by_matrices(group, matrices, partition, columns)


def _by_matrices(
    group: Group, matrices: Sequence[fixed_size.Matrix], partition: int, columns: Collection[str]
) -> Decoded:
    counts = group.asked
    owner = np.repeat(np.arange(len(counts)), counts)
    index = np.arange(len(owner)) - (np.cumsum(counts) - counts - group.first)[owner]
    found = absent_columns(len(owner), columns)
    found["value"] = fixed_size.values(group, matrices)
    sizes = np.array([matrix.size for matrix in matrices])
    strides = np.array([matrix.stride for matrix in matrices])
    origin = Origin(group, partition, owner, index)
    return Decoded(origin, found, strides[owner], int(sizes @ counts), Counter(uniform=len(counts)))


def _by_spans(group: Group, partition: int, columns: Collection[str], limits: Limits) -> Decoded:
    reader = SpanReader(group, columns, limits)
    reader.read()
    rows = reader.rows
    index = _batch_indexes(group, rows.owner)
    kept = ~rows.compacted_out
    if (group.asked != group.messages).any():
        kept &= (index < 0) | ((group.first[rows.owner] <= index) & (index < group.end[rows.owner]))
    if not kept.all():
        rows, index = rows.keep(kept), index[kept]
    sizes = rows.value_end - rows.value_start
    value_bytes = int(sizes.sum(where=~rows.null_value))
    origin = Origin(group, partition, rows.owner, index)
    stored = rows.value_end - rows.begin
    return Decoded(origin, message_columns(rows, reader.data, origin), stored, value_bytes, reader.paths)


def _batch_indexes(group: Group, owner: Ints) -> Ints:
    """The batch index of each stored message; -1: its entry is no batch."""
    first_row = group.first_row
    index = np.where(group.is_batch[owner], np.arange(len(owner)) - first_row[owner], -1)
    for row, metadata in zip(first_row.tolist(), group.metadata, strict=True):
        if metadata.num_messages is not None and metadata.compacted_batch_indexes:
            index[row : row + len(metadata.compacted_batch_indexes)] = metadata.compacted_batch_indexes
    return index
