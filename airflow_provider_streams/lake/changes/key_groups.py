"""Rows grouped by their key, and the last row of each group in some order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from airflow_provider_streams.lake.changes.arrow_compute import pc
from airflow_provider_streams.lake.changes.columns import UnusableChanges

Numbers = npt.NDArray[Any]
_WORD: Final = 8


def groups(rows: pa.Table, keys: Sequence[str]) -> Numbers:
    """The number of each row's key: equal for equal keys, dense, from 0 on.

    Raises:
        UnusableChanges: a key is null, or of a type that has no exact equality.
    """
    found = np.zeros(len(rows), np.int64)
    for name in keys:
        column = rows[name]
        check_key(name, column)
        encoded: Any = column.combine_chunks().dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        if name == keys[0]:
            found = codes
        else:
            found = np.unique(found * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1]
    return found


def check_key(name: str, column: pa.ChunkedArray[Any]) -> None:
    """Raise `UnusableChanges` if a column cannot be part of a key."""
    type_ = column.type
    if pa.types.is_nested(type_) or pa.types.is_floating(type_) or pa.types.is_null(type_):
        raise UnusableChanges(f"the key {name!r} is {type_}, and values of this type are not compared for equality")
    if column.null_count:
        raise UnusableChanges(f"{column.null_count} changes have no value for the key {name!r}")


def words_of(texts: Any) -> list[Numbers]:
    """Numbers that sort as texts do, the most significant first. None of the texts is null.

    Texts of one width are words of 64 bits, without those that are equal in all texts.
    """
    texts = pa.concat_arrays(texts.chunks) if isinstance(texts, pa.ChunkedArray) and texts.num_chunks else texts
    if not len(texts):
        return []
    bounds = pc.min_max(pc.binary_length(texts)).as_py()
    if bounds["min"] != bounds["max"]:
        return [pc.rank(texts, tiebreaker="dense").to_numpy().astype(np.int64)]
    width, count = bounds["max"], len(texts)
    if not width:
        return []
    first = int(np.frombuffer(texts.buffers()[1], np.int32)[texts.offset])
    held = np.frombuffer(texts.buffers()[2], np.uint8)[first : first + width * count].reshape(count, width)
    padded = np.zeros((count, -(-width // _WORD) * _WORD), np.uint8)
    padded[:, :width] = held
    words = padded.view(">u8").astype(np.uint64)
    return [word for word in words.T if (word != word[0]).any()]


def last_of_groups(group: Numbers, *order: Numbers) -> Numbers:
    """The row that comes last in each group, by its group's number; of equal rows, the later one.

    Args:
        group: the number of each row's group.
        order: what the rows are ordered by, the most significant first.
    """
    if not len(group):
        return np.zeros(0, np.int64)
    sorted_rows = np.lexsort((*reversed(order), group))
    in_order = group[sorted_rows]
    return np.asarray(sorted_rows[np.flatnonzero(np.append(in_order[1:] != in_order[:-1], True))])


def descending(words: Sequence[Numbers]) -> list[Numbers]:
    """The same words for the reverse order."""
    return [~word for word in words]
