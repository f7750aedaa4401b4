"""Rows of which some columns were set by other changes than the row's latest one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from airflow_provider_streams.lake.changes.arrow_compute import array, pc
from airflow_provider_streams.lake.changes.columns import PARTIAL, POSITION, SEPARATOR, SEQUENCE, VERSION_FIELDS
from airflow_provider_streams.lake.changes.key_groups import Numbers

PARTIAL_TYPE: Final = VERSION_FIELDS[-1].type
UNSET: Final = ""
"""The version of a column that no known change set."""
_VERSION: Final = rf"(?s)^(?P<sequence>.*){SEPARATOR}(?P<position>[^{SEPARATOR}]*)$"


def no_partial(count: int) -> Any:
    """The column `_partial` of rows that one change set as a whole."""
    return pa.chunked_array([pa.nulls(count, PARTIAL_TYPE)])


def partial_column(count: int, versions: Mapping[str, tuple[Numbers, pa.Array[Any]]]) -> Any:
    """The column `_partial` of some rows.

    Args:
        count: how many rows there are.
        versions: by column, the numbers of the rows that another change set there, and its versions.
    """
    if not any(len(rows) for rows, _ in versions.values()):
        return no_partial(count)
    row = np.concatenate([rows for rows, _ in versions.values()])
    names = pa.concat_arrays([array([name] * len(rows), pa.string()) for name, (rows, _) in versions.items()])
    order = np.argsort(row, kind="stable")
    counts = np.bincount(row, minlength=count)
    ends = np.cumsum(counts)
    offsets = array(np.concatenate([[0], ends]).astype(np.int32), mask=np.append(counts == 0, False))
    items = pa.concat_arrays([pc.cast(versions_of, pa.string()) for _, versions_of in versions.values()])
    return pa.chunked_array([pa.MapArray.from_arrays(offsets, names.take(array(order)), items.take(array(order)))])


def column_versions(rows: pa.Table, names: Sequence[str]) -> dict[str, tuple[Any, Any]]:
    """Sequence and position of the change that set each column of each row; empty texts where none did."""
    sequence, position = (rows[name].combine_chunks() for name in (SEQUENCE, POSITION))
    parents, columns, texts = partial_entries(rows[PARTIAL].combine_chunks())
    parts = pc.extract_regex(pc.if_else(pc.equal(texts, UNSET), SEPARATOR, texts), _VERSION)
    found = {}
    for name in names:
        named = pc.equal(columns, name)
        at = parents[named.to_numpy(zero_copy_only=False)]
        new = parts.filter(named)
        found[name] = (_replaced(sequence, at, new.field("sequence")), _replaced(position, at, new.field("position")))
    return found


def partial_entries(partial: Any) -> tuple[Numbers, Any, Any]:
    """All entries of `_partial`: the number of the row, the column, and its version."""
    lengths = np.where(pc.is_valid(partial).to_numpy(zero_copy_only=False), np.diff(partial.offsets.to_numpy()), 0)
    parents = np.repeat(np.arange(len(partial)), lengths)
    first = np.repeat(partial.offsets.to_numpy()[:-1] - (np.cumsum(lengths) - lengths), lengths)
    entries = array(first + np.arange(len(first)))
    return parents, partial.keys.take(entries), partial.items.take(entries)


def version_text(sequence: Any, position: Any) -> Any:
    """As `_partial` has it; an empty text if no change set the column."""
    text = pc.binary_join_element_wise(sequence, position, SEPARATOR)
    return pc.if_else(pc.equal(sequence, UNSET), UNSET, text)


def _replaced(texts: pa.Array[Any], at: Numbers, new: Any) -> Any:
    """Texts with others at some places."""
    if not len(at):
        return texts
    where = np.arange(len(texts))
    where[at] = len(texts) + np.arange(len(at))
    return pa.concat_arrays([texts, pc.cast(new, texts.type)]).take(array(where))
