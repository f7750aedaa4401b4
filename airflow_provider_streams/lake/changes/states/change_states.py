"""Change rows as states: what each of them alone says of its key, or of the whole table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from airflow_provider_streams.lake.changes.arrow_compute import array, pc
from airflow_provider_streams.lake.changes.columns import (
    CHANGE_COLUMNS,
    LIVE,
    LOG_POSITION,
    OP,
    PARTIAL,
    POSITION,
    SEPARATOR,
    SEQUENCE,
    SNAPSHOT_POSITION,
    UNAVAILABLE,
    UnusableChanges,
)
from airflow_provider_streams.lake.changes.conditions import holds
from airflow_provider_streams.lake.changes.key_groups import Numbers, check_key
from airflow_provider_streams.lake.changes.order import sequences
from airflow_provider_streams.lake.changes.states.latest import State, Truncate, live_schema, reduced, snapshot_schema
from airflow_provider_streams.lake.changes.states.partial_rows import UNSET, partial_column
from airflow_provider_streams.model.changes.auto_cdc import AutoCdc
from airflow_provider_streams.model.changes.source_order import STREAM_ORDER, SourceOrder

_SNAPSHOT, _DELETE, _TRUNCATE = "r", "d", "t"
_OPS: Final = (_SNAPSHOT, "c", "u", _DELETE, _TRUNCATE)


@dataclass(frozen=True, slots=True)
class Rules:
    """How the change rows of one table are applied."""

    cdc: AutoCdc
    keys: tuple[str, ...]
    """Those of the declaration, or else those that the format found."""
    order: SourceOrder = STREAM_ORDER

    @property
    def has_snapshot_places(self) -> bool:
        """Whether snapshots' rows are ordered by their place in the stream, and other changes by coordinates."""
        return self.cdc.sequence_by is None and self.order.log is not None and not self.order.exact_snapshots

    def columns(self, rows: pa.Table) -> list[str]:
        """The columns of the table that change rows bring."""
        own = [name for name in rows.column_names if name not in CHANGE_COLUMNS or name in self.keys]
        return self.cdc.chosen(own, self.keys)


@dataclass(frozen=True, slots=True)
class Changes:
    """Change rows by what they speak of."""

    names: list[str]
    live: pa.Table
    """States of single changes, see `latest.State.live`."""
    snapshots: pa.Table
    """The same of snapshots' rows whose place in the stream counts."""
    truncates: pa.Table
    """Change rows that empty the table, with `_sequence`."""
    live_extra: pa.Table
    """Further columns of the rows of `live`."""
    snapshot_extra: pa.Table


def state_of(rows: pa.Table, rules: Rules) -> State:
    """The state that change rows of a window give, in any order, and with any of them twice.

    Raises:
        UnusableChanges: a change has no place in the order, no key, or an unknown operation.
        InvalidRequest: the rows lack a column that the declaration names.
    """
    found = changes_of(rows, rules)
    return reduced(State(rules.keys, found.live, found.snapshots, _last_truncate(found.truncates)))


def changes_of(rows: pa.Table, rules: Rules, with_columns: Sequence[str] = ()) -> Changes:
    """Each change row as the state that it alone gives; raises as `state_of`."""
    names = rules.columns(rows.drop_columns(list(with_columns)))
    deletes, truncates = _removals(rows, rules)
    by_place = _mask(_is(rows, _SNAPSHOT)) if rules.has_snapshot_places else np.zeros(len(rows), bool)
    of_row = ~_mask(truncates)
    for name in rules.keys:
        check_key(name, rows[name].filter(array(of_row)))
    changes, removing = rows.filter(array(~by_place)), pc.or_(deletes, truncates).filter(array(~by_place))
    changes = changes.append_column(SEQUENCE, sequences(changes, rules.order, rules.cdc.sequence, removing))
    is_live = of_row[~by_place]
    live, snapshots = changes.filter(array(is_live)), rows.filter(array(by_place))
    return Changes(
        names,
        _live(live, names, _mask(deletes)[of_row & ~by_place], rules),
        _snapshots(snapshots, names),
        changes.filter(array(~is_live)),
        live.select(with_columns),
        snapshots.select(with_columns),
    )


def _removals(rows: pa.Table, rules: Rules) -> tuple[Any, Any]:
    """Which rows are deletes, and which are truncates."""
    if OP in rows.column_names:
        known = pc.is_in(rows[OP], array(_OPS))
        if not pc.all(known, min_count=0).as_py():
            other = rows[OP].filter(pc.invert(known))[0].as_py()
            raise UnusableChanges(f"a change has the operation {other!r}; known are {', '.join(_OPS)}")
    deletes, truncates = _is(rows, _DELETE), _is(rows, _TRUNCATE)
    if rules.cdc.truncates is not None:
        truncates = pc.or_(truncates, holds(rules.cdc.truncates, rows))
    if rules.cdc.deletes is not None:
        deletes = pc.or_(deletes, holds(rules.cdc.deletes, rows))
    return pc.and_not(deletes, truncates), truncates


def _is(rows: pa.Table, op: str) -> Any:
    if OP not in rows.column_names:
        return pa.chunked_array([pa.repeat(False, len(rows))])
    return pc.fill_null(pc.equal(rows[OP], op), False)


def _live(rows: pa.Table, names: Sequence[str], deleted: Numbers, rules: Rules) -> pa.Table:
    """States of changes. Deletes, inserts and snapshots' rows set all columns; updates set those that they have."""
    is_update = ~deleted
    if OP in rows.column_names:
        is_update &= _mask(pc.equal(rows[OP], "u"))
    unset = _unset(rows, [name for name in names if name not in rules.keys], is_update, rules)
    columns: dict[str, Any] = {name: rows[name] for name in names}
    for name, missing in unset.items():
        columns[name] = _nulled(columns[name], missing)
    for name in names:
        if name not in rules.keys:
            columns[name] = _nulled(columns[name], deleted)
    at = {name: np.flatnonzero(missing) for name, missing in unset.items()}
    versions = {name: (one, array([UNSET] * len(one), pa.string())) for name, one in at.items()}
    columns |= {
        LIVE: array(~deleted),
        SEQUENCE: rows[SEQUENCE],
        POSITION: rows[POSITION],
        PARTIAL: partial_column(len(rows), versions),
    }
    return pa.table(columns, schema=live_schema(rows.select(names).schema))


def _unset(rows: pa.Table, names: Sequence[str], is_update: Numbers, rules: Rules) -> dict[str, Numbers]:
    """By column, which rows do not set it. An insert sets a column that it lacks to null: it had no earlier value."""
    unset = {}
    if UNAVAILABLE in rows.column_names:
        lists: Any = rows[UNAVAILABLE].combine_chunks()
        lists = lists if isinstance(lists, pa.Array) else pa.concat_arrays(lists.chunks or [array([], lists.type)])
        parents = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False)
        flat = lists.flatten()
        for name in pc.unique(flat).to_pylist():
            if name in names:
                missing = np.zeros(len(rows), bool)
                missing[parents[_mask(pc.fill_null(pc.equal(flat, name), False))]] = True
                rows_of = missing & is_update
                unset[name] = rows_of
    if rules.cdc.ignore_null_updates:
        for name in names:
            missing = _mask(pc.is_null(rows[name])) & is_update
            unset[name] = missing | unset.get(name, False)
    return {name: missing for name, missing in unset.items() if missing.any()}


def _snapshots(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """States of a snapshot's rows: their place in the stream, and their coordinate, by which a truncate is compared."""
    if rows[POSITION].null_count:
        raise UnusableChanges(f"{rows[POSITION].null_count} changes have no {POSITION}, which orders them")
    place: Any = pc.fill_null(rows[LOG_POSITION], "") if LOG_POSITION in rows.column_names else ""
    version = pc.binary_join_element_wise(rows[POSITION], place, SEPARATOR)
    columns = {**{name: rows[name] for name in names}, SNAPSHOT_POSITION: version}
    return pa.table(columns, schema=snapshot_schema(rows.select(names).schema))


def _last_truncate(rows: pa.Table) -> Truncate | None:
    if not len(rows):
        return None
    places = rows[LOG_POSITION].to_pylist() if LOG_POSITION in rows.column_names else [None] * len(rows)
    facts: Any = zip(rows[SEQUENCE].to_pylist(), rows[POSITION].to_pylist(), places, strict=True)
    return max((Truncate(sequence, position, place or "") for sequence, position, place in facts), key=Truncate.order)


def _nulled(column: Any, missing: Numbers) -> Any:
    if not missing.any():
        return column
    return pc.if_else(array(missing), pa.scalar(None, column.type), column)


def _mask(column: Any) -> Numbers:
    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    found: Numbers = values.to_numpy(zero_copy_only=False)
    return found.astype(bool)
