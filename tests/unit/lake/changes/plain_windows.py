"""Windows of rows that have no change format."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from airflow_provider_streams.lake.changes.states.change_states import Rules, state_of
from airflow_provider_streams.lake.changes.states.latest import empty, merge
from airflow_provider_streams.lake.changes.states.stored_latest import split
from tests.unit.lake.changes.tables import stored_and_read


def apply_all(windows: list[pa.Table], rules: Rules) -> list[dict[str, Any]]:
    """The rows of the table, in the order of their keys, without versions."""
    names = rules.columns(windows[0])
    state = empty(rules.keys, pa.schema([windows[0].schema.field(name) for name in names]))
    for window in windows:
        state = stored_and_read(merge(state, state_of(window, rules)))
    rows, _ = split(state)
    return sorted(rows.select(names).to_pylist(), key=lambda row: [row[name] for name in rules.keys])
