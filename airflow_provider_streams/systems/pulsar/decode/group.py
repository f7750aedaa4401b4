"""A group of entries decoded together: the way is chosen here, and what is not asked for is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from airflow_provider_streams.systems.pulsar.decode import uniform
from airflow_provider_streams.systems.pulsar.decode.arrays import Array
from airflow_provider_streams.systems.pulsar.decode.assemble import Origin, absent_columns, message_columns
from airflow_provider_streams.systems.pulsar.decode.entry import Entry
from airflow_provider_streams.systems.pulsar.decode.loads import Ints
from airflow_provider_streams.systems.pulsar.decode.spans import SpanReader


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


def decode_group(entries: Sequence[Entry], partition: int, columns: Collection[str]) -> Decoded:
    """The rows of these entries, in their order.

    Raises:
        MalformedEntry: a payload is no batch of as many messages as its metadata state.
    """
    matrices = uniform.matrices(entries, columns)
    if matrices is None:
        return _by_spans(entries, partition, columns)
    return _by_matrices(entries, matrices, partition, columns)


def _by_matrices(
    entries: Sequence[Entry], matrices: Sequence[uniform.Matrix], partition: int, columns: Collection[str]
) -> Decoded:
    counts = np.fromiter((entry.asked for entry in entries), np.int64, len(entries))
    first = np.fromiter((entry.first for entry in entries), np.int64, len(entries))
    owner = np.repeat(np.arange(len(entries)), counts)
    index = np.arange(len(owner)) - (np.cumsum(counts) - counts - first)[owner]
    origin = Origin(entries, partition, owner, index)
    found = absent_columns(len(owner), columns)
    found["value"] = uniform.values(entries, matrices, counts)
    value_bytes = sum(matrix.size * count for matrix, count in zip(matrices, counts.tolist(), strict=True))
    stored = origin.each(matrix.stride for matrix in matrices)
    return Decoded(origin, found, stored, value_bytes, Counter(uniform=len(entries)))


def _by_spans(entries: Sequence[Entry], partition: int, columns: Collection[str]) -> Decoded:
    reader = SpanReader(entries, columns)
    reader.read()
    rows = reader.rows
    index = _batch_indexes(entries, rows.owner)
    kept = ~rows.compacted_out
    if not all(entry.is_whole for entry in entries):
        first = np.fromiter((entry.first for entry in entries), np.int64, len(entries))[rows.owner]
        end = np.fromiter((entry.end for entry in entries), np.int64, len(entries))[rows.owner]
        kept &= (index < 0) | ((first <= index) & (index < end))
    if not kept.all():
        rows, index = rows.keep(kept), index[kept]
    sizes = rows.value_end - rows.value_start
    value_bytes = int(sizes.sum(where=~rows.null_value))
    origin = Origin(entries, partition, rows.owner, index)
    stored = rows.value_end - rows.begin
    return Decoded(origin, message_columns(rows, reader.data), stored, value_bytes, reader.paths)


def _batch_indexes(entries: Sequence[Entry], owner: Ints) -> Ints:
    """The batch index of each stored message; -1: its entry is no batch."""
    stored = np.fromiter((entry.stored for entry in entries), np.int64, len(entries))
    first_row = np.cumsum(stored) - stored
    batch = np.fromiter((entry.is_batch for entry in entries), np.bool_, len(entries))
    index = np.where(batch[owner], np.arange(len(owner)) - first_row[owner], -1)
    for number, entry in enumerate(entries):
        if entry.metadata.compacted_batch_indexes:
            index[first_row[number] :][: entry.stored] = entry.metadata.compacted_batch_indexes
    return index
