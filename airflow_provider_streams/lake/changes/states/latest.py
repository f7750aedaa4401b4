"""The latest state of each key: a join of states that may come in any order, any subset, and any number of times.

A state has three parts, and each of them keeps the greatest of what it saw:

- **Changes**, by key: for each column a register with the value that the latest change set (by `_sequence`), and a
  register of whether the row exists. A delete sets all columns to null, so nothing from before it can come back. A
  change that leaves columns open does not set their registers, so an older change still fills them.
- **Rows of snapshots**, by key: the one that comes last in the stream.
- **The latest truncate** of the table. Whatever is older is dropped.

Greatest elements of total orders are associative, commutative and idempotent, and so is `merge`, which takes them part
by part. Of equal sequences, which copies have, the earliest position is kept: it is the best bound for the place of the
original. `visible_rows` then decides for each key between its changes and its snapshot's row. See `lake.changes.order`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from airflow_provider_streams.lake.changes.arrow_compute import array, pc
from airflow_provider_streams.lake.changes.columns import (
    LIVE,
    PARTIAL,
    POSITION,
    SEPARATOR,
    SEQUENCE,
    SNAPSHOT_POSITION,
)
from airflow_provider_streams.lake.changes.key_groups import Numbers, descending, groups, last_of_groups, words_of
from airflow_provider_streams.lake.changes.states.partial_rows import (
    PARTIAL_TYPE,
    UNSET,
    column_versions,
    partial_column,
    version_text,
)


@dataclass(frozen=True, slots=True)
class Truncate:
    """A change that emptied the table."""

    sequence: str
    position: str
    log_position: str = ""
    """Empty: unknown."""

    def order(self) -> tuple[str, str, tuple[int, ...]]:
        """The greatest is the latest; of copies, the one with the earliest position."""
        return self.sequence, self.log_position, tuple(-ord(letter) for letter in self.position)


@dataclass(frozen=True, slots=True)
class State:
    """What is known of the keys of a table, or of some of them."""

    keys: tuple[str, ...]
    live: pa.Table
    """By key: the columns, `_live`, `_sequence`, `_position`, `_partial`."""
    snapshots: pa.Table
    """By key: the columns, and `_snapshot_position`, which is the place in the stream and the coordinate."""
    truncate: Truncate | None = None

    @property
    def names(self) -> list[str]:
        """The columns of the table, keys included."""
        return self.snapshots.column_names[:-1]


def live_schema(columns: pa.Schema) -> pa.Schema:
    """Of `State.live`."""
    text = pa.string()
    fields = [pa.field(one.name, one.type) for one in columns]
    own = ((LIVE, pa.bool_()), (SEQUENCE, text), (POSITION, text), (PARTIAL, PARTIAL_TYPE))
    return pa.schema([*fields, *(pa.field(name, type_) for name, type_ in own)])


def snapshot_schema(columns: pa.Schema) -> pa.Schema:
    """Of `State.snapshots`."""
    return pa.schema([*(pa.field(one.name, one.type) for one in columns), pa.field(SNAPSHOT_POSITION, pa.string())])


def merge(one: State, other: State) -> State:
    """The state that both give. Where versions are equal, values of the second one count."""
    live, snapshots = (
        pa.concat_tables([mine, theirs]) for mine, theirs in ((one.live, other.live), (one.snapshots, other.snapshots))
    )
    found = [state.truncate for state in (one, other) if state.truncate is not None]
    return reduced(State(one.keys, live, snapshots, max(found, key=Truncate.order, default=None)))


def reduced(state: State) -> State:
    """The same with one row for each key, and without what is older than the truncate."""
    cut = _after_truncate(state)
    return replace(cut, live=_latest_changes(cut), snapshots=_latest_snapshots(cut))


def _latest_snapshots(state: State) -> pa.Table:
    rows = state.snapshots
    group = groups(rows, state.keys)
    if _is_unique(group):
        return rows
    return rows.take(array(last_of_groups(group, *words_of(rows[SNAPSHOT_POSITION]))))


def _latest_changes(state: State) -> pa.Table:
    rows = state.live
    group = groups(rows, state.keys)
    if _is_unique(group):
        return rows
    order = _by_version(rows[SEQUENCE], rows[POSITION])
    latest = last_of_groups(group, *order)
    is_partial = pc.is_valid(rows[PARTIAL]).to_numpy()
    if not is_partial.any():
        return rows.take(array(latest))
    mixed = np.zeros(len(latest), bool)
    mixed[group[is_partial]] = True
    whole = rows.take(array(latest[~mixed[group[latest]]]))
    some = mixed[group]
    columns = [name for name in state.names if name not in state.keys]
    return pa.concat_tables([whole, _by_column(rows.filter(array(some)), group[some], columns)])


def _by_column(rows: pa.Table, group: Numbers, columns: Sequence[str]) -> pa.Table:
    """One row for each group, of which each column has the value that was set last."""
    rows = rows.combine_chunks()
    latest = last_of_groups(group, *_by_version(rows[SEQUENCE], rows[POSITION]))
    made = rows.take(array(latest))
    own, versions = made[SEQUENCE].combine_chunks(), {}
    for name, (sequence, position) in column_versions(rows, columns).items():
        setting = array(last_of_groups(group, *_by_version(sequence, position)))
        made = made.set_column(made.column_names.index(name), made.field(name), rows[name].take(setting))
        differs = pc.not_equal(sequence.take(setting), own)
        texts = version_text(sequence.take(setting), position.take(setting))
        versions[name] = (np.flatnonzero(differs.to_numpy(zero_copy_only=False)), texts.filter(differs))
    at = made.column_names.index(PARTIAL)
    return made.set_column(at, made.field(PARTIAL), partial_column(len(made), versions))


def _by_version(sequence: Any, position: Any) -> list[Numbers]:
    """Later sequences last; of copies, the one that comes first in the stream."""
    return [*words_of(sequence), *descending(words_of(position))]


def _after_truncate(state: State) -> State:
    """Without rows, and values of columns, that are older than the truncate."""
    cut = state.truncate
    if cut is None:
        return state
    live = state.live.filter(pc.greater_equal(state.live[SEQUENCE], cut.sequence))
    if live[PARTIAL].null_count < len(live):
        live = _columns_after(live.combine_chunks(), cut, [name for name in state.names if name not in state.keys])
    return replace(state, live=live, snapshots=state.snapshots.filter(_is_newer(state.snapshots, cut)))


def _columns_after(live: pa.Table, cut: Truncate, columns: Sequence[str]) -> pa.Table:
    own, versions = live[SEQUENCE].combine_chunks(), {}
    for name, (sequence, position) in column_versions(live, columns).items():
        is_old = pc.less(sequence, cut.sequence)
        kept = pc.if_else(is_old, UNSET, sequence)
        values = pc.if_else(is_old, pa.scalar(None, live.field(name).type), live[name])
        live = live.set_column(live.column_names.index(name), live.field(name), values)
        differs = pc.not_equal(kept, own)
        versions[name] = (
            np.flatnonzero(differs.to_numpy(zero_copy_only=False)),
            version_text(kept, position).filter(differs),
        )
    at = live.column_names.index(PARTIAL)
    return live.set_column(at, live.field(PARTIAL), partial_column(len(live), versions))


def _is_newer(snapshots: pa.Table, cut: Truncate) -> Any:
    """Whether a snapshot's row is newer than a truncate: by coordinates, else by places in the stream."""
    parts = pc.split_pattern(snapshots[SNAPSHOT_POSITION], SEPARATOR, max_splits=1)
    position, place = (pc.list_element(parts, number) for number in (0, 1))
    is_known = pc.and_(pc.not_equal(place, ""), bool(cut.log_position))
    return pc.if_else(is_known, pc.greater_equal(place, cut.log_position), pc.greater(position, cut.position))


def _is_unique(group: Numbers) -> bool:
    return len(group) == int(group.max(initial=-1)) + 1


def empty(keys: tuple[str, ...], columns: pa.Schema) -> State:
    """The state of a table without rows."""
    return State(keys, live_schema(columns).empty_table(), snapshot_schema(columns).empty_table())
