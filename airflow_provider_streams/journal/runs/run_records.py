"""Runs as the journal remembers them: who tried to cover a window, and how that ended."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, select

from airflow_provider_streams.journal.tables import is_window, pins, runs
from airflow_provider_streams.model.plan.receipt import Receipt
from airflow_provider_streams.model.sinks.landing import Held
from airflow_provider_streams.model.window.coverage import RunRef, State
from airflow_provider_streams.model.window.window import Window

SUPERSEDED: Final = "Superseded"
"""Cause of a run that never reported its end (it was killed) when a later one of its window did more."""
OVERWRITTEN: Final = "Overwritten"
"""Cause of a covered run whose rows were replaced by a run of an earlier plan that ended later."""
REPLACED: Final = "Replaced"
"""Cause of a covered run whose window was taken out of the table, by one that shares time with it."""
REMOVED: Final = "Removed"
"""Cause of a covered run whose rows are no longer in the table."""

_MESSAGE_LENGTH = 4000
_PASSWORD = re.compile(r"(?<=://)([^/\s:@]*):[^/\s@]+@")
_REF = ("id", "dag_id", "run_id", "task_id", "try_number", "map_index", "started_at", "finished_at")
"""The columns of a `RunRef`, in its order."""


@dataclass(frozen=True, slots=True)
class TaskInstanceKey:
    """The Airflow task instance that reads a window; the command line names itself as `cli`."""

    dag_id: str
    run_id: str
    task_id: str
    try_number: int
    map_index: int = -1


class Announcer(NamedTuple):
    """A task instance that gave asset events to Airflow; its tries are one."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run did not cover its window."""

    error_type: str
    message: str
    lost: bool = False
    """The stream no longer holds what the window needs."""

    def to_row(self) -> dict[str, Any]:
        """Its columns of `streams_runs`, ended now; passwords in URLs are masked."""
        # Postgres takes no NUL in a text, no database a lone surrogate
        clean = self.message.replace("\0", "").encode(errors="replace").decode()
        return {
            "state": "lost" if self.lost else "failed",
            "finished_at": datetime.now(UTC),
            "error_type": self.error_type,
            "error_message": _PASSWORD.sub(r"\1:***@", clean)[:_MESSAGE_LENGTH],
        }


@dataclass(frozen=True, slots=True)
class Run:
    """One try to cover a window, as the journal remembers it."""

    ref: RunRef
    window: Window
    state: State
    generation: int | None
    """Of the pinned plan it read; None: it failed before it had a plan."""
    fingerprint: str
    rows: int
    bytes: int
    error_type: str
    error_message: str
    receipt: Receipt | None
    landing_id: int | None = None
    """Under which landing; None: its rows were proven only."""
    written: int | None = None
    """Rows in the table; None: not counted."""
    announced_by: Announcer | None = None
    """The task instance that gave its asset event to Airflow, as long as it is not known to have succeeded."""

    def facts(self, reader: str) -> dict[str, Any]:
        """What an asset's event says of a covered window, as plain JSON values."""
        return {
            "window": self.window.to_json(),
            "reader": reader,
            "fingerprint": self.fingerprint,
            "rows": self.rows,
            "written": self.written,
            "verdict": self.receipt.verdict if self.receipt else "complete",
        }


@dataclass(frozen=True, slots=True)
class Started:
    """A run that may begin."""

    run: int
    held: Held | None
    """What the table holds of this window now; None: nothing."""
    later: tuple[str, ...] = ()
    """The columns that the table got after the plan was pinned."""


def of_window(connection: Connection, reader_id: int | None, window: Window) -> tuple[Run, ...]:
    """Every run of a window, oldest first."""
    return found_runs(connection, is_window(runs, reader_id, window))


def found_runs(connection: Connection, *rules: ColumnElement[bool]) -> tuple[Run, ...]:
    """The runs of which these rules are true, in order of their windows."""
    statement = with_plan().where(*rules).order_by(runs.c.window_start, runs.c.id)
    return tuple(_run(row) for row in connection.execute(statement).mappings())


def with_plan() -> Select[Any]:
    """Rows of `runs`, with what their pins say of the plan that they read."""
    read = (pins.c.generation, pins.c.fingerprint, pins.c.void_at)
    return select(runs, *read).outerjoin(pins, runs.c.pin_id == pins.c.id)


def run_ref(row: RowMapping) -> RunRef:
    """The task run of a row of `streams_runs`."""
    return RunRef(*(row[name] for name in _REF))


def _run(row: RowMapping) -> Run:
    return Run(
        run_ref(row),
        Window(row["window_start"], row["window_end"]),
        row["state"],
        row["generation"],
        row["fingerprint"] or "",
        row["rows"],
        row["bytes"],
        row["error_type"] or "",
        row["error_message"] or "",
        Receipt.from_json(row["receipt"]) if row["receipt"] else None,
        row["landing_id"],
        row["written"],
        Announcer(*row["announced_by"]) if row["announced_by"] else None,
    )
