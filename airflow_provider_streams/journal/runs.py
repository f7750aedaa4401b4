"""Window runs: who tried to cover a window, and what became of it.

All changes to one reader's runs happen one after another (its row is locked), so that two runs of a window see each
other. A run that covered its window never becomes anything else, with one exception: see `_overwritten`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, and_, insert, select, update

from airflow_provider_streams.errors import JournalError, PlanMismatch
from airflow_provider_streams.journal import pins as pinned
from airflow_provider_streams.journal.tables import pins, readers, runs
from airflow_provider_streams.model.coverage import RunRef, State
from airflow_provider_streams.model.plan import Plan
from airflow_provider_streams.model.receipt import Receipt
from airflow_provider_streams.model.window import Window

SUPERSEDED: Final = "Superseded"
"""Cause of a run that never reported its end (it was killed) when a later one of its window did more."""
OVERWRITTEN: Final = "Overwritten"
"""Cause of a covered run whose rows were replaced by a run of an earlier plan that ended later."""

_MESSAGE_LENGTH = 4000
_PASSWORD = re.compile(r"(?<=://)([^/\s:@]*):[^/\s@]+@")


@dataclass(frozen=True, slots=True)
class Task:
    """The Airflow task instance that reads a window."""

    dag_id: str
    run_id: str
    task_id: str
    try_number: int
    map_index: int = -1

    def to_row(self) -> dict[str, Any]:
        """Its columns of `streams_runs`."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run did not cover its window."""

    error_type: str
    message: str
    lost: bool = False
    """The stream no longer holds what the window needs."""

    def to_row(self) -> dict[str, Any]:
        """Its columns of `streams_runs`, as of now; passwords in URLs are masked."""
        # Postgres takes no NUL in a text, no database a lone surrogate
        clean = self.message.replace("\0", "").encode(errors="replace").decode()
        return {
            "state": "lost" if self.lost else "failed",
            "finished_at": _now(),
            "error_type": self.error_type,
            "error_message": _PASSWORD.sub(r"\1:***@", clean)[:_MESSAGE_LENGTH],
        }


@dataclass(frozen=True, slots=True)
class Run:
    """One try to cover a window, as the journal remembers it."""

    ref: RunRef
    state: State
    generation: int | None
    """Of the pinned plan it read; None: it failed before it had a plan."""
    fingerprint: str
    rows: int
    bytes: int
    error_type: str
    error_message: str
    receipt: Receipt | None


def start(connection: Connection, reader_id: int, plan: Plan, task: Task) -> int:
    """A new running run of a pinned plan; older running ones of the window are superseded.

    Raises:
        PlanMismatch: the plan is not the one that is pinned.
    """
    _lock(connection, readers.c.id == reader_id)
    pin = pinned.newest(connection, reader_id, plan.window)
    if pin is None or pin.fingerprint != plan.fingerprint:
        found = f"{pin.fingerprint[:12]} is" if pin else "none is"
        raise PlanMismatch(
            f"window {plan.window} of reader {plan.reader!r}: plan {plan.fingerprint[:12]} is not pinned, {found}. "
            "Run the task again: it will read the pinned one."
        )
    run = _insert(connection, reader_id, plan.window, task, pin_id=pin.id, state="running", started_at=_now())
    _supersede(connection, reader_id, plan.window, run, f"run {run} of the same window started")
    return run


def finish(connection: Connection, run: int, receipt: Receipt) -> None:
    """The run covered its window. Does nothing if it already had.

    Raises:
        JournalError: no such run.
        PlanMismatch: the receipt is of another plan than the run.
    """
    _lock(connection, readers.c.id == _reader_of(connection, run))
    row = _one(connection, run)
    if row["fingerprint"] != receipt.fingerprint:
        raise PlanMismatch(
            f"run {run} reads plan {(row['fingerprint'] or 'none')[:12]}, the receipt is of {receipt.fingerprint[:12]}"
        )
    if row["state"] == "covered":
        return
    done = {
        "state": "covered",
        "finished_at": _now(),
        "rows": receipt.rows,
        "bytes": receipt.bytes,
        "verdict": receipt.verdict,
        "receipt": json.dumps(receipt.to_json(), separators=(",", ":")),
        "error_type": None,
        "error_message": None,
    }
    connection.execute(update(runs).where(runs.c.id == run).values(done))
    window = Window(row["window_start"], row["window_end"])
    _supersede(connection, row["reader_id"], window, run, f"run {run} covered the window")
    _overwritten(connection, row["reader_id"], window, run, row["generation"])


def fail(connection: Connection, run: int, failure: Failure) -> None:
    """The run failed. Does nothing if it had covered its window: what is in the table stays true.

    Raises:
        JournalError: no such run.
    """
    _lock(connection, readers.c.id == _reader_of(connection, run))
    if _one(connection, run)["state"] != "covered":
        connection.execute(update(runs).where(runs.c.id == run).values(failure.to_row()))


def fail_unplanned(connection: Connection, reader_id: int, window: Window, task: Task, failure: Failure) -> int:
    """A run that ended before it had a plan, for example because the window's start is no longer held."""
    _lock(connection, readers.c.id == reader_id)
    return _insert(connection, reader_id, window, task, started_at=_now(), **failure.to_row())


def count_late(connection: Connection, run: int, rows: int) -> None:
    """How many rows of its window appeared after a covered run had read it. Does nothing for any other run."""
    _lock(connection, readers.c.id == _reader_of(connection, run))
    connection.execute(update(runs).where(runs.c.id == run, runs.c.state == "covered").values(late_rows=rows))


def of_window(connection: Connection, reader_id: int | None, window: Window) -> tuple[Run, ...]:
    """Every run of a window, oldest first."""
    statement = _joined().where(_same_window(reader_id, window)).order_by(runs.c.id)
    return tuple(_run(row) for row in connection.execute(statement).mappings())


def run_ref(row: RowMapping) -> RunRef:
    """Who ran, from a row of `streams_runs`."""
    return RunRef(
        id=row["id"],
        dag_id=row["dag_id"],
        run_id=row["run_id"],
        task_id=row["task_id"],
        try_number=row["try_number"],
        map_index=row["map_index"],
        started=row["started_at"],
        finished=row["finished_at"],
    )


def _run(row: RowMapping) -> Run:
    return Run(
        ref=run_ref(row),
        state=row["state"],
        generation=row["generation"],
        fingerprint=row["fingerprint"] or "",
        rows=row["rows"],
        bytes=row["bytes"],
        error_type=row["error_type"] or "",
        error_message=row["error_message"] or "",
        receipt=Receipt.from_json(json.loads(row["receipt"])) if row["receipt"] else None,
    )


def _supersede(connection: Connection, reader_id: int, window: Window, run: int, message: str) -> None:
    """Older runs that still look running were killed, or are about to be overtaken; each may yet finish."""
    connection.execute(
        update(runs)
        .where(_same_window(reader_id, window), runs.c.id < run, runs.c.state == "running")
        .values(Failure(SUPERSEDED, message).to_row())
    )


def _overwritten(connection: Connection, reader_id: int, window: Window, run: int, generation: int) -> None:
    """A run of an earlier plan committed its table last: the later plan's window is covered no more."""
    later = select(pins.c.id).where(
        pins.c.reader_id == reader_id,
        pins.c.window_start == window.start,
        pins.c.window_end == window.end,
        pins.c.generation > generation,
    )
    message = f"run {run} of an earlier plan replaced the rows afterwards. Read the window again."
    connection.execute(
        update(runs)
        .where(runs.c.pin_id.in_(later), runs.c.state == "covered")
        .values(state="failed", error_type=OVERWRITTEN, error_message=message)
    )


def _insert(connection: Connection, reader_id: int, window: Window, task: Task, **values: Any) -> int:
    statement = insert(runs).values(
        reader_id=reader_id, window_start=window.start, window_end=window.end, **task.to_row(), **values
    )
    key = connection.execute(statement).inserted_primary_key
    if key is None:
        raise JournalError("the database did not number a new run")
    return int(key[0])


def _one(connection: Connection, run: int) -> RowMapping:
    return connection.execute(_joined().where(runs.c.id == run)).mappings().one()


def _joined() -> Select[Any]:
    return select(runs, pins.c.generation, pins.c.fingerprint).outerjoin(pins, runs.c.pin_id == pins.c.id)


def _same_window(reader_id: int | None, window: Window) -> ColumnElement[bool]:
    return and_(runs.c.reader_id == reader_id, runs.c.window_start == window.start, runs.c.window_end == window.end)


def _reader_of(connection: Connection, run: int) -> int:
    reader_id = connection.execute(select(runs.c.reader_id).where(runs.c.id == run)).scalar()
    if reader_id is None:
        raise JournalError(f"the journal has no run {run}. Was it started in another journal?")
    return int(reader_id)


def _lock(connection: Connection, reader: ColumnElement[bool]) -> None:
    connection.execute(select(readers.c.id).where(reader).with_for_update())


def _now() -> datetime:
    return datetime.now(UTC)
