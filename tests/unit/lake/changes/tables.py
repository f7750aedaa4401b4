"""Change rows of many histories as Arrow tables: a history's number is part of the key, so one merge serves all."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from airflow_provider_streams.lake.changes.states.change_states import Rules, state_of
from airflow_provider_streams.lake.changes.states.latest import State, empty, merge, reduced
from airflow_provider_streams.lake.changes.states.stored_latest import joined, split
from airflow_provider_streams.model.changes.auto_cdc import AutoCdc
from airflow_provider_streams.model.changes.source_order import SourceOrder
from tests.unit.lake.changes.histories import COLUMNS, Event, Row

SCHEMA = pa.schema(
    [
        ("h", pa.int64()),
        ("id", pa.int32()),
        *((name, pa.int64()) for name in COLUMNS),
        ("_op", pa.string()),
        ("_position", pa.string()),
        ("_log_position", pa.string()),
        ("_source_ts", pa.timestamp("us", "UTC")),
        ("_unavailable", pa.list_(pa.string())),
    ]
)
WRITTEN = Rules(AutoCdc(), ("h", "id"), SourceOrder("written"))
COMMITTED = Rules(AutoCdc(), ("h", "id"), SourceOrder("committed"))
EXACT = Rules(AutoCdc(), ("h", "id"), SourceOrder("committed", exact_snapshots=True))


def change_rows(events: list[tuple[int, Event]]) -> pa.Table:
    """Events, each with the number of its history."""
    return pa.Table.from_pylist([event.row(history) for history, event in events], SCHEMA)


def nothing(rules: Rules) -> State:
    """The state of an empty table."""
    rows = change_rows([])
    return empty(rules.keys, pa.schema([rows.schema.field(name) for name in rules.columns(rows)]))


def visible(state: State) -> dict[int, dict[int, Row]]:
    """The rows that users see, by history and key."""
    rows, _ = split(state)
    found: dict[int, dict[int, Row]] = {}
    for row in rows.to_pylist():
        held = found.setdefault(row["h"], {})
        assert row["id"] not in held, "a key has two rows"
        held[row["id"]] = {name: row[name] for name in COLUMNS}
    return found


def stored_and_read(state: State) -> State:
    """What is left of a state in the table and its markers."""
    return reduced(joined(state.keys, *split(state)))


def applied(windows: list[pa.Table], rules: Rules, *, store: bool = True) -> State:
    """Windows one after the other, as an engine does: each result is stored, and read again."""
    state = nothing(rules)
    for window in windows:
        state = merge(state, state_of(window, rules))
        if store:
            state = stored_and_read(state)
    return state


def canonical(state: State) -> Any:
    """All that a state says, in one order."""
    return tuple(sorted(map(repr, table.to_pylist())) for table in (state.live, state.snapshots)), state.truncate
