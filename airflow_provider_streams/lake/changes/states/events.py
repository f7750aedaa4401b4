"""All changes of each key, once each, which is the state of a table with history.

A set of changes joins by union: in any order, any subset, and any number of times. `history` derives the versions.

A row of the table stands for the changes that made it: see `history.stored`. It knows them well enough unless an older
change still comes, so exact changes stay in the markers for as long as that may happen. Of a marker, a row and a change
row that name the same change, the marker is exact. A row is what remains of exact changes, so it precedes a change row
that comes once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

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
    SOURCE_TIME,
    column_at,
)
from airflow_provider_streams.lake.changes.key_groups import groups, last_of_groups
from airflow_provider_streams.lake.changes.states.change_states import Rules, changes_of
from airflow_provider_streams.lake.changes.states.partial_rows import PARTIAL_TYPE, no_partial

VERSION: Final = "_version"
"""Of a change `c`, its sequence and its position; of a snapshot's row `s`, its position and its coordinate."""
START: Final = "_start"
SOURCE: Final = "_source"
FROM_WINDOW, FROM_ROW, FROM_MARKER = 0, 1, 2
_PARTS: Final = rf"(?s)^(?P<kind>.)(?P<head>.*){SEPARATOR}(?P<tail>[^{SEPARATOR}]*)$"


@dataclass(frozen=True, slots=True)
class Events:
    """The known changes of keys."""

    keys: tuple[str, ...]
    changes: pa.Table
    """The columns, `_live`, `_version`, `_start`, `_partial`, `_source`."""
    truncates: pa.Table
    """`_version`, `_start`."""

    @property
    def names(self) -> list[str]:
        """The columns of the table, keys included."""
        return [name for name in self.changes.column_names if name not in (LIVE, VERSION, START, PARTIAL, SOURCE)]


def event_schema(columns: pa.Schema, start: pa.DataType) -> pa.Schema:
    """Of `Events.changes`."""
    own = ((LIVE, pa.bool_()), (VERSION, pa.string()), (START, start), (PARTIAL, PARTIAL_TYPE), (SOURCE, pa.int8()))
    return pa.schema([*(pa.field(one.name, one.type) for one in columns), *(pa.field(*one) for one in own)])


def events_of(rows: pa.Table, rules: Rules) -> Events:
    """The changes that change rows of a window are.

    Raises:
        UnusableChanges: a change has no place in the order, no key, or an unknown operation.
    """
    rows = rows.append_column(START, starts_of(rows, rules))
    found = changes_of(rows, rules, with_columns=(START,))
    columns = pa.schema([found.live.field(name) for name in found.names])
    schema = event_schema(columns, rows[START].type)
    live, snapshots = found.live, found.snapshots
    version = pc.binary_join_element_wise(
        pc.binary_join_element_wise("c", live[SEQUENCE], ""), live[POSITION], SEPARATOR
    )
    place = pc.binary_join_element_wise("s", snapshots[SNAPSHOT_POSITION], "")
    more: dict[str, Any] = {
        LIVE: pa.repeat(True, len(snapshots)),
        VERSION: place,
        PARTIAL: no_partial(len(snapshots)),
    }
    changes = pa.concat_tables(
        [
            _as(schema, live, {VERSION: version, START: found.live_extra[START]}),
            _as(schema, snapshots, {**more, START: found.snapshot_extra[START]}),
        ]
    )
    cut = found.truncates
    text = pc.binary_join_element_wise(pc.binary_join_element_wise("c", cut[SEQUENCE], ""), cut[POSITION], SEPARATOR)
    truncates = pa.table({VERSION: pc.cast(text, pa.string()), START: cut[START]})
    return united(Events(rules.keys, changes, truncates))


def starts_of(rows: pa.Table, rules: Rules) -> Any:
    """From when on each change counts: the sequence of the declaration, the commit time, or the place in the stream."""
    by = rules.cdc.sequence
    if by is not None and len(by) == 1:
        return column_at(rows, by[0])
    if by is not None:
        return pc.make_struct(*(column_at(rows, one) for one in by), field_names=[one[-1] for one in by])
    name = SOURCE_TIME if rules.order.log is not None and SOURCE_TIME in rows.column_names else POSITION
    return rows[name]


def merge(*several: Events) -> Events:
    """All changes that some of several states know."""
    changes = pa.concat_tables([one.changes for one in several])
    truncates = pa.concat_tables([one.truncates for one in several])
    return united(Events(several[0].keys, changes, truncates))


def united(events: Events) -> Events:
    """Each change once, with the earliest position of its copies."""
    return Events(events.keys, _once(events.changes, events.keys), _once(events.truncates, ()))


def parts(versions: Any) -> tuple[Any, Any, Any]:
    """Kind, head and tail of versions: `c`, sequence, position; or `s`, position, coordinate."""
    found: Any = pc.extract_regex(versions, _PARTS)
    found = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    return found.field("kind"), found.field("head"), found.field("tail")


def _once(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    if not len(rows):
        return rows
    rows = rows.combine_chunks()
    kind, head, tail = parts(rows[VERSION])
    same = pc.if_else(pc.equal(kind, "c"), pc.binary_join_element_wise(kind, head, ""), rows[VERSION].combine_chunks())
    group = np.unique(
        groups(rows, keys) * len(rows) + same.dictionary_encode().indices.to_numpy(), return_inverse=True
    )[1]
    position = pc.rank(tail, tiebreaker="dense").to_numpy().astype(np.int64)
    earliest = last_of_groups(group, ~position)
    source = rows[SOURCE].to_numpy() if SOURCE in rows.column_names else np.zeros(len(rows), np.int8)
    kept = rows.take(array(last_of_groups(group, source)))
    return kept.set_column(kept.column_names.index(VERSION), VERSION, rows[VERSION].take(array(earliest)))


def _as(schema: pa.Schema, rows: pa.Table, more: dict[str, Any]) -> pa.Table:
    held: dict[str, Any] = {SOURCE: pa.repeat(pa.scalar(FROM_WINDOW, pa.int8()), len(rows)), **more}
    return pa.table([held[name] if name in held else rows[name] for name in schema.names], schema=schema)
