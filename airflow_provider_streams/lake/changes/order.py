"""The order of the changes of one key, as texts that compare like it.

Each change gets a sequence, the column `_sequence`:

| the table is ordered by | sequence of a change |
|---|---|
| `sequence_by` | the values of its columns, then `_position` |
| a log of commits (`SourceOrder.log` is `committed`) | `_log_position` |
| a log of writes (`written`) | `_source_ts`, which is the commit time, then `_log_position` |
| the stream alone | `_position` |

**Why it is the source's order.** A source publishes its log in the order of commits. A log of commits has coordinates
in this order. In a log of writes, they are not: an insert may be written before a transaction deletes the same key, and
commit after it. But a transaction that changes a key waits until the one before it has committed, so of one key, commit
times never decrease in the order of commits. Changes of one transaction share the time, and are written one by one.

**Why it is total.** Two changes of a key have different sequences: the log has one place for each, and so has the
stream. A rank follows the coordinate, because a changed key is a delete and an insert at one place: deletes come first.

**Why copies do no harm.** A connector that starts again sends changes again. A copy has the coordinates of its
original, and therefore its sequence, wherever it is in the stream, and also if the original is in a window that is not
there. Copies of changes that have no coordinates are not recognised.

**Where rows of a snapshot are.** Their coordinate is no border in the log: a transaction that was open during the
snapshot was written before it, and is not in it. So their place in the stream decides. A row is newer than an earlier
row of a snapshot, newer than changes that come earlier in the stream, and older than changes that come later. A copy
counts where its earliest known occurrence is, and with it all changes of the key that have lower sequences. Rows of
exact snapshots (`SourceOrder.exact_snapshots`) have a sequence like changes.

**Truncates** are compared by their sequence. A snapshot's row and a truncate are compared by `_log_position`, because
they may be in different partitions; without coordinates, by `_position`, which needs a stream of one partition.

**What is refused.** Coordinates of two lives of a source do not compare, and neither do positions of two lives of a
stream: see `check_one_life`. A change without the value that orders it has no place, and is refused as well.

**What no order can know.** If a clock is set back, commit times of one key can decrease. Then a log of writes is not
ordered by them, and a change of the time that passed twice may lose. If a copy comes after a later snapshot's row, and
no occurrence before that row is known, it counts as newer than the row, until a window with its original is applied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow as pa

from airflow_provider_streams.lake.changes.arrow_compute import pc
from airflow_provider_streams.lake.changes.columns import (
    LIFE,
    LOG_POSITION,
    OP,
    POSITION,
    SEPARATOR,
    SOURCE_TIME,
    TABLE,
    UnusableChanges,
    column_at,
)
from airflow_provider_streams.lake.changes.sortable_text import hex_of, sortable
from airflow_provider_streams.model.changes.expressions import Column
from airflow_provider_streams.model.changes.source_order import SourceOrder

DELETE_RANK, CHANGE_RANK, SNAPSHOT_RANK = "0", "1", "2"
_MOMENT: Final = pa.timestamp("us", "UTC")


def sequences(rows: pa.Table, order: SourceOrder, by: Sequence[Column] | None, deletes: pa.ChunkedArray[Any]) -> Any:
    """The sequence of each change.

    Args:
        rows: change rows.
        order: of the source.
        by: the columns of `sequence_by`; None: the source's order counts.
        deletes: which of the rows remove something.

    Raises:
        UnusableChanges: a change lacks what orders it.
    """
    position = _given(rows, POSITION)
    if by is not None:
        parts = [sortable(".".join(one), column_at(rows, one)) for one in by]
        return _joined([*parts, position], SEPARATOR)
    if order.log is None:
        return position
    rank = pc.if_else(deletes, DELETE_RANK, CHANGE_RANK)
    if OP in rows.column_names:
        rank = pc.if_else(pc.fill_null(pc.equal(rows[OP], "r"), False), SNAPSHOT_RANK, rank)
    place = _given(rows, LOG_POSITION)
    if order.log == "committed":
        return _joined([place, rank])
    committed = pc.cast(pc.cast(_given(rows, SOURCE_TIME), _MOMENT), pa.int64())
    times = pa.chunked_array([hex_of(committed.to_numpy())])
    return _joined([times, place, rank])


def check_one_life(changes: Iterable[pa.Table], known: str | None) -> str | None:
    """The life of the source that change rows are of; None: neither they nor the table name one.

    MySQL's snapshots do not name their server: they are of the life that live changes name in full.

    Args:
        changes: change rows.
        known: the life that the table's rows are of.

    Raises:
        UnusableChanges: the rows are of several lives, or of another one than the table's rows.
    """
    named = _named(changes, LIFE, known)
    found = [one for one in named if not any(_is_named_in_full(one, other) for other in named)]
    if len(found) > 1:
        raise UnusableChanges(
            f"the changes are of several lives of the source ({', '.join(map(repr, found[:3]))}), and positions of two "
            "lives do not compare: it failed over, or was restored or made again. Apply the changes of its new life to "
            "another table, or to this one with full_refresh=True, from a snapshot on"
        )
    return found[0] if found else None


def check_one_table(changes: Iterable[pa.Table], known: str | None, keys: Sequence[str]) -> str | None:
    """The database's table that change rows are of; None: it is not known, or is part of the key.

    Args:
        changes: change rows.
        known: the table that the table's rows are of.
        keys: the columns of the key.

    Raises:
        UnusableChanges: the rows are of several tables, whose keys may be equal.
    """
    found = [] if TABLE in keys else _named(changes, TABLE, known)
    if len(found) > 1:
        raise UnusableChanges(
            f"the changes are of several tables of the database ({', '.join(map(repr, found[:3]))}), in which equal "
            "keys are different rows. Let the connector write a topic for each table, choose rows in a transform, or "
            f"apply them with the table in the key, like AutoCdc(keys=[{TABLE!r}, {', '.join(map(repr, keys))}])"
        )
    return found[0] if found else None


def _is_named_in_full(life: str, other: str) -> bool:
    """Whether another name has the server that a life's name leaves open."""
    return life != other and life.endswith("/") and other.startswith(life)


def _named(changes: Iterable[pa.Table], column: str, known: str | None) -> list[str]:
    columns = (rows[column] for rows in changes if column in rows.column_names)
    every = {known, *(one for values in columns for one in pc.unique(values).to_pylist())}
    return sorted(one for one in every if one is not None)


def _given(rows: pa.Table, name: str) -> Any:
    if name not in rows.column_names:
        raise UnusableChanges(f"the changes have no column {name}, which orders them")
    column = rows[name]
    if column.null_count:
        raise UnusableChanges(f"{column.null_count} changes have no {name}, which orders them")
    return column


def _joined(parts: Sequence[Any], separator: str = "") -> Any:
    joined: Any = pc.binary_join_element_wise(*parts, separator)
    return joined if isinstance(joined, pa.ChunkedArray) else pa.chunked_array([joined])
