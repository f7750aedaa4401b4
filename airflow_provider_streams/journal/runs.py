"""Window runs: who tried to cover a window, and what became of it.

All changes to one reader's runs happen one after another (its row is locked), so that two runs of a window see each
other. A run that covered its window becomes something else only when its rows are no longer in the table: see
`uncover`, `_make_room` and `_overwritten`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    and_,
    delete,
    exists,
    insert,
    not_,
    or_,
    select,
    update,
)

from airflow_provider_streams.errors import FewerRows, JournalError, PlanMismatch, WindowsOverlap
from airflow_provider_streams.journal import chains, landings, names
from airflow_provider_streams.journal import pins as pinned
from airflow_provider_streams.journal.pins import Pin
from airflow_provider_streams.journal.tables import pins, runs
from airflow_provider_streams.model.coverage import RunRef, State
from airflow_provider_streams.model.landing import Held, Landed
from airflow_provider_streams.model.narrowing import Proof
from airflow_provider_streams.model.plan import Plan
from airflow_provider_streams.model.receipt import Receipt
from airflow_provider_streams.model.replanning import lost_since
from airflow_provider_streams.model.window import Window

SUPERSEDED: Final = "Superseded"
"""Cause of a run that never reported its end (it was killed) when a later one of its window did more."""
OVERWRITTEN: Final = "Overwritten"
"""Cause of a covered run whose rows were replaced by a run of an earlier plan that ended later."""
REPLACED: Final = "Replaced"
"""Cause of a covered run whose window was taken out of the table, by one that shares time with it."""
REMOVED: Final = "Removed"
"""Cause of a covered run whose rows somebody took out of the table."""

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

    def facts(self, reader: str) -> dict[str, Any]:
        """What an asset's event says of a covered window, as plain JSON values."""
        return {
            "window": self.window.to_json(),
            "reader": reader,
            "fingerprint": self.fingerprint,
            "rows": self.rows,
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


def start(
    connection: Connection,
    reader_id: int,
    plan: Plan,
    task: Task,
    landing_id: int | None,
    *,
    replace_overlaps: bool,
    accept_fewer: bool,
) -> Started:
    """A new running run of a pinned plan; older running ones of the window are superseded.

    Args:
        connection: a writing one.
        reader_id: whose.
        plan: what it reads.
        task: who reads.
        landing_id: under which landing; None: what is read is proven only.
        replace_overlaps: covered windows that share time are covered no more; otherwise they are in the way.
        accept_fewer: the plan need not be able to hold what the window's last one held.

    Raises:
        FewerRows: it is not able to.
        PlanMismatch: the plan is not the one that is pinned, or the one that it goes on after was replaced; or the
            reader lands something else by now.
        WindowsOverlap: covered windows share time with it.
    """
    lock(connection, reader_id)
    pin = pinned.counting(connection, reader_id, plan.window)
    if pin is None or pin.fingerprint != plan.fingerprint:
        found = f"{pin.fingerprint[:12]} is" if pin else "none is"
        raise PlanMismatch(
            f"window {plan.window} of reader {plan.reader!r}: plan {plan.fingerprint[:12]} is not pinned, {found}. "
            "Run the task again: it will read the pinned one."
        )
    chains.check_link(connection, pin, plan)
    covered = None if landing_id is None else _last_covered(connection, reader_id, landing_id, plan.window)
    if covered is not None and not accept_fewer:
        _check_holdable(connection, covered, pin, plan)
    if landing_id is not None:
        _check_landing(connection, reader_id, landing_id, plan)
        _make_room(connection, reader_id, landing_id, plan, replace_overlaps=replace_overlaps)
    values = {"pin_id": pin.id, "landing_id": landing_id, "state": "running", "started_at": _now()}
    run = _insert(connection, reader_id, plan.window, task, **values)
    _supersede(connection, reader_id, plan.window, run, f"run {run} of the same window started")
    later = () if landing_id is None else landings.columns_since(connection, landing_id, pin.id)
    return Started(run, None if covered is None else _held(covered), later)


def _held(covered: RowMapping) -> Held:
    return Held(covered["rows"], (covered["quarantined"] or 0) + (covered["dropped"] or 0))


def _check_landing(connection: Connection, reader_id: int, landing_id: int, plan: Plan) -> None:
    kept = landings.current(connection, reader_id)
    if kept is not None and kept.id != landing_id:
        raise PlanMismatch(
            f"window {plan.window}: reader {plan.reader!r} lands in {kept.target or 'no table'} since a moment ago, "
            "and this task was told something else before. Run the task again."
        )


def finish(connection: Connection, run: int, landed: Landed) -> int:
    """The run covered its window; whose it is. Changes nothing if it already had.

    Raises:
        JournalError: no such run.
        PlanMismatch: the receipt is of another plan than the run, or a later window of its chain has read its events.
    """
    receipt = landed.receipt
    reader_id = _reader_of(connection, run)
    lock(connection, reader_id)
    row = _one(connection, run)
    if row["fingerprint"] != receipt.fingerprint:
        raise PlanMismatch(
            f"run {run} reads plan {(row['fingerprint'] or 'none')[:12]}, the receipt is of {receipt.fingerprint[:12]}"
        )
    if row["state"] == "covered":
        return reader_id
    if row["void_at"] is not None:
        raise PlanMismatch(
            f"run {run}: a later window of the chain took the place of {row['window_start']:%Y-%m-%dT%H:%M:%SZ} "
            "meanwhile, and holds what was read here. Remove this window's rows from the table"
        )
    done = {
        "state": "covered",
        "finished_at": _now(),
        "rows": receipt.rows,
        "bytes": receipt.bytes,
        "quarantined": receipt.totals["quarantined"] or None,
        "dropped": receipt.totals["dropped"] or None,
        "verdict": receipt.verdict,
        "receipt": json.dumps(receipt.to_json(), separators=(",", ":")),
        "written": landed.written,
        "late_rows": _late_rows(connection, row["pin_id"]),
        "error_type": None,
        "error_message": None,
    }
    connection.execute(update(runs).where(runs.c.id == run).values(done))
    window = Window(row["window_start"], row["window_end"])
    if landed.schema is not None and row["landing_id"] is not None:
        landings.note_columns(connection, row["landing_id"], landed.schema)
    _supersede(connection, row["reader_id"], window, run, f"run {run} covered the window")
    _overwritten(connection, row, window)
    if row["landing_id"] is not None:
        # one that began beside it may have landed first, and gave way in the table
        _take_place(connection, _sharing_time(reader_id, row["landing_id"], window), window)
    return reader_id


def fail(connection: Connection, run: int, failure: Failure) -> None:
    """The run failed. Does nothing if it had covered its window: what is in the table stays true.

    Raises:
        JournalError: no such run.
    """
    lock(connection, _reader_of(connection, run))
    row = _one(connection, run)
    if row["state"] == "covered":
        return
    connection.execute(update(runs).where(runs.c.id == run).values(failure.to_row()))
    if failure.error_type == FewerRows.__name__ and row["landing_id"] is not None:
        window = Window(row["window_start"], row["window_end"])
        take_back_plans(connection, row["reader_id"], row["landing_id"], window)


def take_back_plans(connection: Connection, reader_id: int, landing_id: int, window: Window) -> None:
    """A plan was refused, as the table would hold less: that by which the window is in the table counts again.

    What was pinned since is forgotten, where nothing else came of it: any other run may have landed before it ended, or
    may yet. Links of a chain stay, too.
    """
    covered = _last_covered(connection, reader_id, landing_id, window)
    if covered is None or covered["pin_id"] is None:
        return
    at = select(pins.c.generation).where(pins.c.id == covered["pin_id"]).scalar_subquery()
    same = (pins.c.reader_id == reader_id, pins.c.window_start == window.start, pins.c.window_end == window.end)
    since = connection.execute(select(pins.c.id).where(*same, pins.c.generation > at)).scalars().all()
    is_refusal = and_(runs.c.state == "failed", runs.c.error_type == FewerRows.__name__)
    is_used = exists().where(runs.c.pin_id.in_(since), not_(is_refusal))
    follows = pins.c.follows_id
    is_link = exists().where(or_(follows.in_(since), and_(pins.c.id.in_(since), follows.is_not(None))))
    if since and not connection.execute(select(or_(is_used, is_link))).scalar():
        connection.execute(update(runs).where(runs.c.pin_id.in_(since)).values(pin_id=None))
        connection.execute(delete(pins).where(pins.c.id.in_(since)))


def fail_unplanned(connection: Connection, reader_id: int, window: Window, task: Task, failure: Failure) -> int:
    """A run that ended before it had a plan, for example because the window's start is no longer held."""
    lock(connection, reader_id)
    kept = landings.current(connection, reader_id)
    values = {"started_at": _now(), "landing_id": kept.id if kept else None, **failure.to_row()}
    return _insert(connection, reader_id, window, task, **values)


def uncover(connection: Connection, reader_id: int, landing_id: int, windows: Iterable[Window], cause: str) -> None:
    """The rows of these windows are no longer in the table, so nothing covers them."""
    lock(connection, reader_id)
    failure = Failure(REMOVED, cause).to_row()
    for window in windows:
        same = and_(_same_window(reader_id, window), runs.c.landing_id == landing_id, runs.c.state == "covered")
        connection.execute(update(runs).where(same).values(failure))


def unannounced(connection: Connection, reader_id: int, landing_id: int) -> tuple[Run, ...]:
    """Covered runs under a landing whose asset events were never sent, in order of their windows."""
    statement = (
        _joined()
        .where(runs.c.reader_id == reader_id, runs.c.landing_id == landing_id, runs.c.state == "covered")
        .where(runs.c.announced_at.is_(None))
        .order_by(runs.c.window_start, runs.c.id)
    )
    return tuple(_run(row) for row in connection.execute(statement).mappings())


def announce(connection: Connection, numbers: Iterable[int]) -> None:
    """The asset events of these runs are on their way."""
    for number in numbers:
        connection.execute(update(runs).where(runs.c.id == number).values(announced_at=_now()))


def count_late(connection: Connection, run: int, rows: int) -> None:
    """How many rows of its window appeared after a covered run had read it. Does nothing for any other run."""
    lock(connection, _reader_of(connection, run))
    connection.execute(update(runs).where(runs.c.id == run, runs.c.state == "covered").values(late_rows=rows))


def lock(connection: Connection, reader_id: int) -> None:
    """Until the transaction ends, nobody else changes what is known of this reader; it counts as a change."""
    connection.execute(names.change(reader_id))


def running(connection: Connection, reader_id: int | None) -> dict[Window, datetime]:
    """The windows whose runs have not ended, with the time since when; some of them may have been killed."""
    since = select(runs.c.window_start, runs.c.window_end, runs.c.started_at)
    found = connection.execute(since.where(runs.c.reader_id == reader_id, runs.c.state == "running"))
    return {Window(row.window_start, row.window_end): row.started_at for row in found}


def of_window(connection: Connection, reader_id: int | None, window: Window) -> tuple[Run, ...]:
    """Every run of a window, oldest first."""
    statement = _joined().where(_same_window(reader_id, window)).order_by(runs.c.id)
    return tuple(_run(row) for row in connection.execute(statement).mappings())


def proofs(connection: Connection, reader_id: int | None, window: Window, most: int) -> tuple[Proof, ...]:
    """What covered the windows that share time with one, by receipts that tell times; the nearest of them, if many.

    Raises:
        PlanMismatch: a plan is of another release, or was changed in the database.
    """
    middle = window.start + (window.end - window.start) / 2
    found = select(runs.c.id, runs.c.window_start).where(
        runs.c.reader_id == reader_id,
        runs.c.state == "covered",
        runs.c.window_start < window.end,
        runs.c.window_end > window.start,
        runs.c.receipt.contains('"times":', autoescape=True),
    )
    rows = sorted(connection.execute(found), key=lambda row: abs(row.window_start - middle))[:most]
    read = select(pins.c.plan, runs.c.receipt).join(pins, runs.c.pin_id == pins.c.id)
    chosen = connection.execute(read.where(runs.c.id.in_([row.id for row in rows])))
    return tuple(
        Proof(Plan.from_json(json.loads(row.plan)), Receipt.from_json(json.loads(row.receipt))) for row in chosen
    )


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
        window=Window(row["window_start"], row["window_end"]),
        state=row["state"],
        generation=row["generation"],
        fingerprint=row["fingerprint"] or "",
        rows=row["rows"],
        bytes=row["bytes"],
        error_type=row["error_type"] or "",
        error_message=row["error_message"] or "",
        receipt=Receipt.from_json(json.loads(row["receipt"])) if row["receipt"] else None,
        landing_id=row["landing_id"],
        written=row["written"],
    )


def _make_room(connection: Connection, reader_id: int, landing_id: int, plan: Plan, *, replace_overlaps: bool) -> None:
    """No covered window of the table shares time with the one to come."""
    window, shares_time = plan.window, _sharing_time(reader_id, landing_id, plan.window)
    statement = select(runs.c.window_start, runs.c.window_end).where(shares_time).distinct()
    covered = sorted(Window(*row) for row in connection.execute(statement))
    if covered and not replace_overlaps:
        raise WindowsOverlap(", ".join(plan.source.names), window, covered)
    if covered:
        _take_place(connection, shares_time, window)


def _sharing_time(reader_id: int, landing_id: int, window: Window) -> ColumnElement[bool]:
    """Other covered windows of the table that share time with one."""
    return and_(
        runs.c.reader_id == reader_id,
        runs.c.landing_id == landing_id,
        runs.c.state == "covered",
        runs.c.window_start < window.end,
        runs.c.window_end > window.start,
        or_(runs.c.window_start != window.start, runs.c.window_end != window.end),
    )


def _take_place(connection: Connection, of: ColumnElement[bool], window: Window) -> None:
    failure = Failure(REPLACED, f"window {window} took its place in the table. Read what is missing of it again.")
    connection.execute(update(runs).where(of).values(failure.to_row()))


def _check_holdable(connection: Connection, covered: RowMapping, pin: Pin, plan: Plan) -> None:
    """Whether a plan may hold what another one of its window, whose rows are in the table, held."""
    if not covered["rows"] or covered["pin_id"] in (None, pin.id):
        return
    written = connection.execute(select(pins.c.plan).where(pins.c.id == covered["pin_id"])).scalar_one()
    if lost := lost_since(Plan.from_json(json.loads(written)), plan):
        raise FewerRows(", ".join(plan.source.names), plan.window, covered["rows"], None, lost)


def _last_covered(connection: Connection, reader_id: int, landing_id: int, window: Window) -> RowMapping | None:
    """Pin and rows of the run that put this window into the table last, whatever plan it read."""
    statement = (
        select(runs.c.rows, runs.c.quarantined, runs.c.dropped, runs.c.pin_id)
        .where(_same_window(reader_id, window), runs.c.landing_id == landing_id, runs.c.state == "covered")
        .order_by(runs.c.finished_at.desc(), runs.c.id.desc())
        .limit(1)
    )
    return connection.execute(statement).mappings().first()


def _late_rows(connection: Connection, pin_id: int) -> int | None:
    """What was counted behind a plan's end stays so, however often the plan itself is read again."""
    statement = (
        select(runs.c.late_rows)
        .where(runs.c.pin_id == pin_id, runs.c.state == "covered", runs.c.late_rows.is_not(None))
        .order_by(runs.c.id.desc())
        .limit(1)
    )
    return connection.execute(statement).scalar()


def _supersede(connection: Connection, reader_id: int, window: Window, run: int, message: str) -> None:
    """Older runs that still look running were killed, or are about to be overtaken; each may yet finish."""
    connection.execute(
        update(runs)
        .where(_same_window(reader_id, window), runs.c.id < run, runs.c.state == "running")
        .values(Failure(SUPERSEDED, message).to_row())
    )


def _overwritten(connection: Connection, row: RowMapping, window: Window) -> None:
    """A run of an earlier plan committed its table last: the later plan's window is covered no more."""
    later = select(pins.c.id).where(
        pins.c.reader_id == row["reader_id"],
        pins.c.window_start == window.start,
        pins.c.window_end == window.end,
        pins.c.generation > row["generation"],
    )
    message = f"run {row['id']} of an earlier plan replaced the rows afterwards. Read the window again."
    connection.execute(
        update(runs)
        .where(runs.c.pin_id.in_(later), runs.c.state == "covered", runs.c.landing_id == row["landing_id"])
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
    return select(runs, pins.c.generation, pins.c.fingerprint, pins.c.void_at).outerjoin(
        pins, runs.c.pin_id == pins.c.id
    )


def _same_window(reader_id: int | None, window: Window) -> ColumnElement[bool]:
    return and_(runs.c.reader_id == reader_id, runs.c.window_start == window.start, runs.c.window_end == window.end)


def _reader_of(connection: Connection, run: int) -> int:
    reader_id = connection.execute(select(runs.c.reader_id).where(runs.c.id == run)).scalar()
    if reader_id is None:
        raise JournalError(f"the journal has no run {run}. Was it started in another journal?")
    return int(reader_id)


def _now() -> datetime:
    return datetime.now(UTC)
