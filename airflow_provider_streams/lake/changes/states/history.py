"""The versions of each key: rows that were valid in `[__START_AT, __END_AT)`, derived from all changes of the key.

- The changes of a key are in the order of `lake.changes.order`. Columns that a change leaves open have the value of the
  change before it; after a delete, they are null.
- `__START_AT` is the value of `sequence_by`, else the commit time, else the place in the stream. It never decreases:
  a change that would start after a later one starts with it. So does a snapshot's row, which is read late.
- **Ties**: of changes that start at the same moment, the last one counts. The others would be valid for no time.
- **Equal rows**: a change that leaves all tracked columns as they were makes no version, and prolongs the one that is.
  Tracked are the columns of `track_history_column_list`, else all but the keys. The version shows the latest values of
  untracked columns.
- **Deletes** end the version that is valid, and make none. If the row comes back equal at that very moment, its version
  goes on.
- **Truncates** end the valid version of every key. They are compared by positions with rows of snapshots, which needs a
  stream of one partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from airflow_provider_streams.lake.changes.arrow_compute import array, pc
from airflow_provider_streams.lake.changes.columns import KIND, LIVE, PARTIAL
from airflow_provider_streams.lake.changes.key_groups import Numbers, groups
from airflow_provider_streams.lake.changes.states.events import (
    FROM_MARKER,
    FROM_ROW,
    SOURCE,
    START,
    VERSION,
    Events,
    event_schema,
    parts,
)
from airflow_provider_streams.lake.changes.states.partial_rows import no_partial
from airflow_provider_streams.lake.changes.states.timelines import Timelines, timelines
from airflow_provider_streams.model.changes.auto_cdc import END_COLUMN, START_COLUMN

FIRST, LAST, END = "_version", "_last_version", "_end_version"
"""Of a stored version: the change that began it, the latest one that prolonged it, and the delete that ended it."""
CHANGE, TRUNCATE = "change", "truncate"
_TEXT: Final = pa.string()


def row_schema(columns: pa.Schema, start: pa.DataType) -> pa.Schema:
    """Of the table that users see."""
    own = ((START_COLUMN, start), (END_COLUMN, start), (FIRST, _TEXT), (LAST, _TEXT), (END, _TEXT))
    return pa.schema([*(pa.field(one.name, one.type) for one in columns), *(pa.field(*one) for one in own)])


def marker_schema(columns: pa.Schema, start: pa.DataType) -> pa.Schema:
    """Of the table of markers."""
    fields = [one for one in event_schema(columns, start) if one.name != SOURCE]
    return pa.schema([*fields, pa.field(KIND, _TEXT)])


@dataclass(frozen=True, slots=True)
class _Runs:
    """The changes that count for more than no time, and how they make versions."""

    rows: Numbers
    """Their numbers in the timelines."""
    group: Numbers
    live: Numbers
    prolongs: Numbers
    """Whether each one leaves the version as it is that was valid before it."""


def stored(events: Events, tracked: Sequence[str] | None = None) -> tuple[pa.Table, pa.Table]:
    """The versions that users see, and the markers: changes that the versions do not stand for exactly."""
    columns = pa.schema([events.changes.field(name) for name in events.names])
    lines = timelines(_with_truncates(events), events)
    runs = _runs(lines, [name for name in (tracked or events.names) if name not in events.keys])
    rows, ends = _versions(lines, runs, columns)
    return rows, pa.concat_tables([_markers(lines, runs, ends, columns), truncate_markers(events, columns)])


def _runs(lines: Timelines, compared: Sequence[str]) -> _Runs:
    count = len(lines.group)
    is_followed = np.append(lines.group[1:] == lines.group[:-1], False)[:count]
    takes_no_time = is_followed & (lines.starts == np.append(lines.starts[1:], -1)[:count])
    rows = np.flatnonzero(~takes_no_time)
    group, live = lines.group[rows], lines.changes[LIVE].to_numpy()[rows].astype(bool)
    follows = np.append(False, (group[1:] == group[:-1]) & live[:-1])[: len(rows)]
    return _Runs(rows, group, live, follows & live & _alike(lines.changes, rows, compared))


def truncate_markers(events: Events, columns: pa.Schema) -> pa.Table:
    """Markers of truncates, which have no key."""
    cuts = events.truncates
    held: dict[str, Any] = {VERSION: cuts[VERSION], START: cuts[START], KIND: pa.repeat(TRUNCATE, len(cuts))}
    return _table(held, marker_schema(columns, events.changes.schema.field(START).type), len(cuts))


def loaded(keys: tuple[str, ...], rows: pa.Table, markers: pa.Table) -> Events:
    """The changes that stored versions and markers stand for; `events.merge` must follow."""
    own = {START_COLUMN, END_COLUMN, FIRST, LAST, END}
    columns = pa.schema([one for one in rows.schema if one.name not in own])
    start = rows.schema.field(START_COLUMN).type
    schema = event_schema(columns, start)
    prolonged = rows.filter(pc.not_equal(rows[FIRST], rows[LAST]))
    ended = rows.filter(pc.is_valid(rows[END]))
    nothing = {one.name: pa.nulls(len(ended), one.type) for one in columns if one.name not in keys}
    changes = [
        _event(rows, schema, {VERSION: rows[FIRST], START: rows[START_COLUMN]}),
        # it began within the version; when is only known to a marker, and matters only if an older change comes
        _event(prolonged, schema, {VERSION: prolonged[LAST], START: prolonged[START_COLUMN]}),
        _event(
            ended,
            schema,
            {**nothing, LIVE: pa.repeat(False, len(ended)), VERSION: ended[END], START: ended[END_COLUMN]},
        ),
    ]
    exact = markers.filter(pc.equal(markers[KIND], CHANGE))
    source = {SOURCE: pa.repeat(pa.scalar(FROM_MARKER, pa.int8()), len(exact))}
    changes.append(_table({**{name: exact[name] for name in exact.column_names}, **source}, schema, len(exact)))
    cuts = markers.filter(pc.equal(markers[KIND], TRUNCATE)).select([VERSION, START])
    return Events(keys, pa.concat_tables(changes), cuts)


def kept(markers: pa.Table, keys: Sequence[str], holes: Iterable[str], resent_from: str | None = None) -> pa.Table:
    """The markers that must stay, as in `stored_latest.kept`: all of a key, or none.

    Of a key's changes, one may be needed to give the next one the values that it leaves open. A truncate stays as long
    as any marker does.
    """
    first = min(holes, default=None)
    kind, head, tail = parts(markers[VERSION])
    is_change = pc.equal(kind, "c")
    stays: Any = array(np.zeros(len(markers), bool))
    if first is not None:
        stays = pc.greater(pc.if_else(is_change, tail, head), first)
    if resent_from is not None:
        stays = pc.or_(stays, pc.and_(is_change, pc.greater(head, resent_from)))
    found = stays.to_numpy(zero_copy_only=False).astype(bool)
    of_key = pc.equal(markers[KIND], CHANGE).to_numpy().astype(bool)
    group = groups(markers.filter(array(of_key)), keys)
    any_of = np.zeros(int(group.max(initial=-1)) + 1, bool)
    any_of[group[found[of_key]]] = True
    found[of_key] = any_of[group]
    found[~of_key] |= bool(found.any())
    return markers.filter(array(found))


def _with_truncates(events: Events) -> pa.Table:
    """The changes, and for each truncate a delete of every key."""
    changes = events.changes
    if not len(events.truncates) or not len(changes):
        return changes
    keys = changes.select(list(events.keys)).group_by(list(events.keys)).aggregate([])
    tables = [changes]
    for cut in events.truncates.to_pylist():
        held: dict[str, Any] = {name: keys[name] for name in events.keys}
        held |= {LIVE: pa.repeat(False, len(keys)), VERSION: pa.repeat(cut[VERSION], len(keys))}
        held |= {START: array([cut[START]] * len(keys), changes.schema.field(START).type)}
        held |= {SOURCE: pa.repeat(pa.scalar(-1, pa.int8()), len(keys))}
        tables.append(_table(held, changes.schema, len(keys)))
    return pa.concat_tables(tables)


def _alike(changes: pa.Table, kept: Numbers, names: Sequence[str]) -> Numbers:
    """Whether each change has the same values as the one before."""
    found = np.ones(len(kept), bool)
    for name in names:
        values: Any = changes[name].combine_chunks().take(array(kept))
        if pa.types.is_nested(values.type):
            values = array([repr(one) for one in values.to_pylist()], _TEXT)
        codes = pc.fill_null(values.dictionary_encode().indices, -1).to_numpy()
        found[1:] &= codes[1:] == codes[:-1]
    return found


def _versions(lines: Timelines, runs: _Runs, columns: pa.Schema) -> tuple[pa.Table, Numbers]:
    """The versions, and which of the runs' changes are deletes that end one."""
    count = len(runs.rows)
    edges = np.flatnonzero(~runs.prolongs)  # versions that begin, and deletes
    begins = runs.live[edges]
    beyond = np.append(edges[1:], count)[: len(edges)]
    first, following = edges[begins], beyond[begins]
    last = following - 1
    is_followed = following < count
    is_followed[is_followed] = runs.group[following[is_followed]] == runs.group[first[is_followed]]
    ends = np.zeros(count, bool)
    is_ended = is_followed.copy()
    is_ended[is_followed] = ~runs.live[following[is_followed]]
    ends[following[is_ended]] = True
    at = runs.rows[np.where(is_followed, following, first)]
    versions, values = lines.changes[VERSION].combine_chunks(), lines.changes.take(array(runs.rows[last]))
    held: dict[str, Any] = {name: values[name] for name in columns.names}
    held |= {
        START_COLUMN: lines.moments.take(array(lines.starts[runs.rows[first]])),
        END_COLUMN: lines.moments.take(array(lines.starts[at], mask=~is_followed)),
        FIRST: versions.take(array(runs.rows[first])),
        LAST: versions.take(array(runs.rows[last])),
        END: versions.take(array(at, mask=~is_ended)),
    }
    return _table(held, row_schema(columns, lines.changes.schema.field(START).type), len(first)), ends


def _markers(lines: Timelines, runs: _Runs, ends: Numbers, columns: pa.Schema) -> pa.Table:
    """Changes that no version stands for exactly."""
    is_stood_for = np.zeros(len(lines.group), bool)
    is_prolonged = np.append(runs.prolongs[1:], False)[: len(runs.rows)]
    is_stood_for[runs.rows] = (runs.live & ~runs.prolongs & ~is_prolonged) | ends
    is_stood_for &= pc.is_null(lines.exact[PARTIAL]).to_numpy().astype(bool) & ~lines.is_moved
    is_stood_for |= lines.exact[SOURCE].to_numpy() < 0  # of a truncate, which has a marker itself
    exact = lines.exact.filter(array(~is_stood_for))
    held: dict[str, Any] = {name: exact[name] for name in exact.column_names}
    schema = marker_schema(columns, lines.exact.schema.field(START).type)
    return _table({**held, KIND: pa.repeat(CHANGE, len(exact))}, schema, len(exact))


def _event(rows: pa.Table, schema: pa.Schema, more: dict[str, Any]) -> pa.Table:
    held: dict[str, Any] = {name: rows[name] for name in schema.names if name in rows.column_names}
    held |= {LIVE: pa.repeat(True, len(rows)), PARTIAL: no_partial(len(rows))}
    held |= {SOURCE: pa.repeat(pa.scalar(FROM_ROW, pa.int8()), len(rows)), **more}
    return _table(held, schema, len(rows))


def _table(held: dict[str, Any], schema: pa.Schema, count: int) -> pa.Table:
    """A table of some columns; the others are null."""
    return pa.table([held.get(one.name, pa.nulls(count, one.type)) for one in schema], schema=schema)
