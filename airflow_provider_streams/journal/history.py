"""From pins and runs to the state of each window.

The newest generation's runs decide: covered if one of them covered the window (a later failed run of the same plan
takes nothing away), else what became of the last one. A window that is pinned but was never started is missing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, RowMapping, Table, and_, select

from airflow_provider_streams.journal.runs import run_ref
from airflow_provider_streams.journal.tables import pins, runs
from airflow_provider_streams.model.coverage import WindowState
from airflow_provider_streams.model.window import Window

_Key = tuple[datetime, datetime]


def window_states(connection: Connection, reader_id: int, span: Window) -> Iterator[WindowState]:
    """The state of every window known in the span."""
    newest: dict[_Key, RowMapping] = {}
    # not the plans: they may be megabytes each
    of_pin = (column for column in pins.c if column.name != "plan")
    statement = select(*of_pin).where(_touches(pins, reader_id, span)).order_by(pins.c.generation)
    for row in connection.execute(statement).mappings():
        newest[row["window_start"], row["window_end"]] = row
    tries: dict[_Key, list[RowMapping]] = defaultdict(list)
    of_run = (column for column in runs.c if column.name != "receipt")
    for row in connection.execute(
        select(*of_run).where(_touches(runs, reader_id, span)).order_by(runs.c.id)
    ).mappings():
        tries[row["window_start"], row["window_end"]].append(row)
    for key in newest.keys() | tries.keys():
        yield _state(Window(*key), newest.get(key), tries[key])


def _touches(table: Table, reader_id: int, span: Window) -> ColumnElement[bool]:
    return and_(table.c.reader_id == reader_id, table.c.window_start < span.end, table.c.window_end > span.start)


def _state(window: Window, pin: RowMapping | None, tries: list[RowMapping]) -> WindowState:
    fingerprint = pin["fingerprint"] if pin else ""
    counting = [row for row in tries if row["pin_id"] is None or (pin and row["pin_id"] == pin["id"])]
    if not counting:
        cause = "planned again, not read yet" if tries else "planned, not read yet"
        return WindowState(
            window, "missing", cause=cause, fingerprint=fingerprint, attempts=len(tries), skew_seconds=_skew(pin)
        )
    covered = [row for row in counting if row["state"] == "covered"]
    decisive = (covered or counting)[-1]
    return WindowState(
        window,
        decisive["state"],
        rows=decisive["rows"] if covered else 0,
        bytes=decisive["bytes"] if covered else 0,
        cause=_cause(decisive),
        fingerprint=fingerprint,
        attempts=len(tries),
        run=run_ref(decisive),
        skew_seconds=_skew(pin),
        late_rows=decisive["late_rows"] if covered else None,
    )


def _skew(pin: RowMapping | None) -> tuple[float, float] | None:
    if pin is None or pin["start_skew_ms"] is None:
        return None
    return pin["start_skew_ms"] / 1000, pin["end_skew_ms"] / 1000


def _cause(row: RowMapping) -> str:
    if row["state"] == "covered":
        return "" if row["verdict"] == "complete" else row["verdict"] or ""
    if row["state"] == "running":
        return f"running since {row['started_at']:%Y-%m-%dT%H:%M:%SZ}"
    return f"{row['error_type']}: {row['error_message']}"
