"""A state as two tables: the rows that users see, and markers, which hold what the rows do not say.

    rows      the columns, `_sequence`, `_position`, `_snapshot_position`, `_partial`
    markers   the columns, `_kind`, `_sequence`, `_position`, `_snapshot_position`

Markers are deletes, the latest truncate, and rows of snapshots that a change hides: should an earlier copy of that
change turn up before the snapshot, the row is visible again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from airflow_provider_streams.lake.changes.arrow_compute import array, pc
from airflow_provider_streams.lake.changes.columns import (
    KIND,
    LIVE,
    PARTIAL,
    POSITION,
    SEQUENCE,
    SNAPSHOT_POSITION,
    VERSION_FIELDS,
)
from airflow_provider_streams.lake.changes.key_groups import Numbers, groups
from airflow_provider_streams.lake.changes.states.latest import State, Truncate, live_schema, snapshot_schema
from airflow_provider_streams.lake.changes.states.partial_rows import column_versions, no_partial

DELETE, SNAPSHOT, TRUNCATE = "delete", "snapshot", "truncate"
_LOG_POSITION: Final = "_log_position"
_MARKER_FIELDS: Final = (
    pa.field(KIND, pa.string()),
    pa.field(SEQUENCE, pa.string()),
    pa.field(POSITION, pa.string()),
    pa.field(SNAPSHOT_POSITION, pa.string()),
)


def row_schema(columns: pa.Schema) -> pa.Schema:
    """Of the table that users see."""
    return pa.schema([*(pa.field(one.name, one.type) for one in columns), *VERSION_FIELDS])


def marker_schema(columns: pa.Schema) -> pa.Schema:
    """Of the table of markers."""
    return pa.schema([*(pa.field(one.name, one.type) for one in columns), *_MARKER_FIELDS])


def split(state: State) -> tuple[pa.Table, pa.Table]:
    """The rows that users see, and the markers."""
    columns = pa.schema([state.snapshots.field(name) for name in state.names])
    live, snapshots = state.live.combine_chunks(), state.snapshots.combine_chunks()
    of_live, of_snapshot = _partners(live, snapshots, state.keys)
    is_live = live[LIVE].to_numpy()
    has_row = of_live >= 0
    is_newer = ~has_row  # than the snapshot's row
    places = snapshots[SNAPSHOT_POSITION].take(array(of_live[has_row]))
    is_newer[has_row] = pc.greater(live[POSITION].filter(array(has_row)), places).to_numpy()
    shown_live = is_newer & is_live
    shown_snapshot = of_snapshot < 0
    shown_snapshot[of_live[has_row & ~is_newer]] = True
    rows = pa.concat_tables(
        [
            _rows_of_changes(live, snapshots, of_live, shown_live, state),
            _rows_of_snapshots(live, snapshots, of_snapshot, shown_snapshot, state),
        ]
    )
    markers = [
        _markers(live.filter(array(is_newer & ~is_live)), DELETE, columns),
        _markers(snapshots.filter(array(~shown_snapshot)), SNAPSHOT, columns),
    ]
    if state.truncate is not None:
        markers.append(truncate_marker(state.truncate, columns))
    return rows, pa.concat_tables(markers)


def joined(keys: tuple[str, ...], rows: pa.Table, markers: pa.Table) -> State:
    """The reverse of `split`; `latest.reduced` must follow, because a row and a marker may speak of one key.

    That is so for a snapshot's row that is partly hidden: the marker has all of its values.
    """
    columns = pa.schema([one for one in rows.schema if one.name not in {field.name for field in VERSION_FIELDS}])
    names = columns.names
    changed = rows.filter(pc.is_valid(rows[SEQUENCE]))
    deleted = markers.filter(pc.equal(markers[KIND], DELETE))
    snapshot = rows.filter(pc.is_valid(rows[SNAPSHOT_POSITION]))
    hidden = markers.filter(pc.equal(markers[KIND], SNAPSHOT))
    live = pa.concat_tables([_live(changed, names, columns, exists=True), _live(deleted, names, columns, exists=False)])
    wanted = [*names, SNAPSHOT_POSITION]
    schema = snapshot_schema(columns)
    snapshots = pa.concat_tables([one.select(wanted).cast(schema) for one in (snapshot, hidden)])
    return State(keys, live, snapshots, truncate_in(markers))


def truncate_marker(truncate: Truncate, columns: pa.Schema) -> pa.Table:
    """A marker without a key. Its coordinate is where a snapshot's marker has its place."""
    facts: dict[str, str | None] = {
        KIND: TRUNCATE,
        SEQUENCE: truncate.sequence,
        POSITION: truncate.position,
        SNAPSHOT_POSITION: truncate.log_position,
    }
    return pa.Table.from_pylist([facts], schema=marker_schema(columns))


def truncate_in(markers: pa.Table) -> Truncate | None:
    """The latest truncate among markers."""
    found = markers.filter(pc.equal(markers[KIND], TRUNCATE)).select([SEQUENCE, POSITION, SNAPSHOT_POSITION])
    rows: list[Any] = found.to_pylist()
    all_of_them = [Truncate(*row.values()) for row in rows]
    return max(all_of_them, key=Truncate.order, default=None)


def kept(markers: pa.Table, holes: Iterable[str], resent_from: str | None = None) -> pa.Table:
    """The markers that must stay. Others cannot change a row any more.

    A marker matters as long as an older change may come. That is so if a window before its place is missing. It is also
    so if a connector that starts again may send older changes once more.

    Args:
        markers: of a table.
        holes: the positions at which spans of the stream begin that no landed window covers, before the newest landed
            one. Positions of other partitions than a marker's are compared as well; then it may stay for longer.
        resent_from: changes of this sequence or a lower one will not be sent again; None: nothing is sent again.
    """
    first = min(holes, default=None)
    place = pc.if_else(pc.equal(markers[KIND], SNAPSHOT), markers[SNAPSHOT_POSITION], markers[POSITION])
    stays: Any = pa.chunked_array([pa.repeat(False, len(markers))])
    if first is not None:
        stays = pc.greater(place, first)
    if resent_from is not None:
        stays = pc.or_(stays, pc.fill_null(pc.greater(markers[SEQUENCE], resent_from), False))
    return markers.filter(stays)


def _partners(live: pa.Table, snapshots: pa.Table, keys: Sequence[str]) -> tuple[Numbers, Numbers]:
    """For each change its key's row of a snapshot, and the reverse; -1: there is none."""
    group = groups(pa.concat_tables([one.select(list(keys)) for one in (live, snapshots)]), keys)
    count = int(group.max(initial=-1)) + 1
    own, other = group[: len(live)], group[len(live) :]
    at_live, at_snapshot = np.full(count, -1), np.full(count, -1)
    at_live[own], at_snapshot[other] = np.arange(len(live)), np.arange(len(snapshots))
    return at_snapshot[own], at_live[other]


def _rows_of_changes(live: pa.Table, snapshots: pa.Table, partner: Numbers, shown: Numbers, state: State) -> pa.Table:
    """Rows whose latest change is newer than the snapshot's row. That row fills what no newer change set."""
    rows, partner = live.filter(array(shown)).combine_chunks(), partner[shown]
    has_row = partner >= 0
    # a partner that does not exist is null
    at = array(np.where(has_row, partner, 0), mask=~has_row)
    places = snapshots[SNAPSHOT_POSITION].take(at).combine_chunks()
    values: dict[str, Any] = {name: rows[name] for name in state.names}
    if (rows[PARTIAL].null_count < len(rows)) and has_row.any():
        versions = column_versions(rows, [name for name in state.names if name not in state.keys])
        for name, (_, position) in versions.items():
            is_older = pc.fill_null(pc.less(position, places), False)
            values[name] = pc.if_else(is_older, snapshots[name].take(at).combine_chunks(), rows[name].combine_chunks())
    schema = row_schema(pa.schema([rows.field(name) for name in state.names]))
    own: dict[str, Any] = {
        SEQUENCE: rows[SEQUENCE],
        POSITION: rows[POSITION],
        SNAPSHOT_POSITION: places,
        PARTIAL: rows[PARTIAL],
    }
    return pa.table({**values, **own}, schema=schema)


def _rows_of_snapshots(live: pa.Table, snapshots: pa.Table, partner: Numbers, shown: Numbers, state: State) -> pa.Table:
    """Rows of snapshots. The key's changes, which are all older, leave their version: copies of them stay older."""
    rows, partner = snapshots.filter(array(shown)).combine_chunks(), partner[shown]
    at = array(np.where(partner >= 0, partner, 0), mask=partner < 0)
    own: dict[str, Any] = {name: live[name].take(at) for name in (SEQUENCE, POSITION)}
    own |= {SNAPSHOT_POSITION: rows[SNAPSHOT_POSITION], PARTIAL: no_partial(len(rows))}
    schema = row_schema(pa.schema([rows.field(name) for name in state.names]))
    return pa.table({**{name: rows[name] for name in state.names}, **own}, schema=schema)


def _markers(rows: pa.Table, kind: str, columns: pa.Schema) -> pa.Table:
    schema = marker_schema(columns)
    held: dict[str, Any] = {KIND: pa.repeat(kind, len(rows))}
    return pa.table(
        {
            one.name: held.get(
                one.name, rows[one.name] if one.name in rows.column_names else pa.nulls(len(rows), one.type)
            )
            for one in schema
        },
        schema=schema,
    )


def _live(rows: pa.Table, names: Sequence[str], columns: pa.Schema, *, exists: bool) -> pa.Table:
    partial = rows[PARTIAL] if PARTIAL in rows.column_names else no_partial(len(rows))
    held: dict[str, Any] = {name: rows[name] for name in (*names, SEQUENCE, POSITION)}
    held |= {LIVE: pa.repeat(exists, len(rows)), PARTIAL: partial}
    schema = live_schema(columns)
    return pa.table([held[name] for name in schema.names], schema=schema)
