"""How long the longest window of an Iceberg table may be, which says how far back windows begin that share time.

Partitions tell when a window begins, and not when it ends. Without this, a window from any time before might reach into
the one that is landed, and each landing would open every manifest of the table.

Each landing notes the length in its snapshot, as of the snapshot that it was judged on. What followed that snapshot is
looked at again: commits of others that came first, rollbacks, and landings by versions that note nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot

from airflow_provider_streams.lake.table_properties import CLAIM, COMPACTED, WINDOW
from airflow_provider_streams.model.window.window import Window

LONGEST: Final = "streams.longest-window-seconds"
AS_OF: Final = "streams.longest-window-as-of"
"""The snapshot whose windows, and all before, `LONGEST` counts; empty: the table had none."""

_NO_NEW_ROWS: Final = (Operation.DELETE, Operation.REPLACE)


def facts_of(snapshot: Snapshot) -> Mapping[str, str]:
    """What a snapshot says of itself."""
    return {} if snapshot.summary is None else snapshot.summary.additional_properties


def length_facts(table: Table, longest: timedelta) -> dict[str, str]:
    """What a landing that was judged on this table notes; `longest` counts its own window."""
    newest = table.current_snapshot()
    return {LONGEST: str(longest.total_seconds()), AS_OF: "" if newest is None else str(newest.snapshot_id)}


def longest_window(table: Table) -> timedelta | None:
    """At least the length of each window that the table holds; None: its snapshots do not tell."""
    known = {one.snapshot_id: one for one in table.snapshots()}
    longest, as_of = timedelta(0), ""
    newest = table.current_snapshot()
    at = None if newest is None else newest.snapshot_id
    while at is not None and str(at) != as_of:
        if at not in known:
            return None  # it expired
        facts = facts_of(known[at])
        if not as_of and LONGEST in facts:
            longest, as_of = max(longest, timedelta(seconds=float(facts[LONGEST]))), facts.get(AS_OF, "")
        if WINDOW in facts:
            window = Window.parse(facts[WINDOW])
            longest = max(longest, window.end - window.start)
        elif not _adds_no_window(known[at]):
            return None
        at = known[at].parent_snapshot_id
    return longest


def _adds_no_window(snapshot: Snapshot) -> bool:
    """Whether all its rows were in the table before."""
    facts, summary = facts_of(snapshot), snapshot.summary
    return CLAIM in facts or COMPACTED in facts or (summary is not None and summary.operation in _NO_NEW_ROWS)
