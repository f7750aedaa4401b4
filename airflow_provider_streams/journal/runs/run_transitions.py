"""How a run of a window begins and ends, and what that changes for other runs and plans of its reader.

Every caller holds the lock of the reader's row.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, delete, exists, insert, or_, select, update

from airflow_provider_streams.errors import JournalError, PlanMismatch, RowCountDecreased, WindowsOverlap
from airflow_provider_streams.journal import chained_windows, landings, row_ids
from airflow_provider_streams.journal import pinned_plans as pinned
from airflow_provider_streams.journal.pinned_plans import Pin
from airflow_provider_streams.journal.runs import run_records as records
from airflow_provider_streams.journal.runs.run_records import Failure, Started, TaskInstanceKey
from airflow_provider_streams.journal.tables import is_window, pins, runs, shares_time
from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.model.plan.receipt import Receipt
from airflow_provider_streams.model.sinks.landing import Held, Landed
from airflow_provider_streams.model.window.window import Window

# How a run begins


def start(
    connection: Connection,
    reader_id: int,
    plan: Plan,
    task: TaskInstanceKey,
    landing_id: int | None,
    *,
    replace_overlaps: bool,
    allow_fewer_rows: bool,
) -> Started:
    """Insert a running run, and supersede older ones of its window; see `WindowRuns.start_run`.

    The caller holds the reader's lock.
    """
    pin = pinned.counting(connection, reader_id, plan.window)
    if pin is None or pin.fingerprint != plan.fingerprint:
        found = f"{pin.fingerprint[:12]} is" if pin else "none is"
        raise PlanMismatch(
            f"window {plan.window} of reader {plan.reader!r}: plan {plan.fingerprint[:12]} is not pinned, {found}. "
            "Run the task again: it will read the pinned one."
        )
    chained_windows.check_link(connection, pin, plan)
    covered = None if landing_id is None else _last_covered(connection, reader_id, landing_id, plan.window)
    if covered is not None and not allow_fewer_rows:
        _check_holdable(connection, covered, pin, plan)
    if landing_id is not None:
        _check_landing(connection, reader_id, landing_id, plan)
        _make_room(connection, reader_id, landing_id, plan, replace_overlaps=replace_overlaps)
    values = {"pin_id": pin.id, "landing_id": landing_id, "state": "running", "started_at": datetime.now(UTC)}
    run = insert_run(connection, reader_id, plan.window, task, **values)
    _supersede(connection, reader_id, plan.window, run, f"run {run} of the same window started")
    later = () if landing_id is None else landings.columns_since(connection, landing_id, pin.id)
    held = None if covered is None else Held(covered["rows"], covered["quarantined"] + covered["dropped"])
    return Started(run, held, later)


def _check_landing(connection: Connection, reader_id: int, landing_id: int, plan: Plan) -> None:
    kept = landings.current(connection, reader_id)
    if kept is not None and kept.id != landing_id:
        raise PlanMismatch(
            f"window {plan.window}: reader {plan.reader!r} lands in {kept.target or 'no table'} since a moment ago, "
            "and this task began with another landing. Run the task again."
        )


def _check_holdable(connection: Connection, covered: RowMapping, pin: Pin, plan: Plan) -> None:
    """Whether a plan may hold what the plan of the window's rows in the table held."""
    if not covered["rows"] or covered["pin_id"] in (None, pin.id):
        return
    written = connection.execute(select(pins.c.plan).where(pins.c.id == covered["pin_id"])).scalar_one()
    if lost := plan.lost_since(Plan.from_json(json.loads(written))):
        raise RowCountDecreased(", ".join(plan.source.names), plan.window, covered["rows"], None, lost)


def _make_room(connection: Connection, reader_id: int, landing_id: int, plan: Plan, *, replace_overlaps: bool) -> None:
    """No other covered window of the table shares time with the one to come."""
    in_the_way = _in_the_way(reader_id, landing_id, plan.window)
    statement = select(runs.c.window_start, runs.c.window_end).where(in_the_way).distinct()
    covered = sorted(Window(*row) for row in connection.execute(statement))
    if covered and not replace_overlaps:
        raise WindowsOverlap(", ".join(plan.source.names), plan.window, covered)
    if covered:
        _take_place(connection, in_the_way, plan.window)


def _in_the_way(reader_id: int, landing_id: int, window: Window) -> ColumnElement[bool]:
    """Other covered windows of the table that share time with one."""
    return and_(shares_time(runs, reader_id, window), covered_under(landing_id), ~is_window(runs, reader_id, window))


def _take_place(connection: Connection, of: ColumnElement[bool], window: Window) -> None:
    message = f"window {window} took its place in the table. Read what is missing of it again."
    connection.execute(update(runs).where(of).values(Failure(records.REPLACED, message).to_row()))


def _supersede(connection: Connection, reader_id: int, window: Window, run: int, message: str) -> None:
    """Older runs that still look running were killed, or are about to be overtaken; each may yet finish."""
    older = (is_window(runs, reader_id, window), runs.c.id < run, runs.c.state == "running")
    connection.execute(update(runs).where(*older).values(Failure(records.SUPERSEDED, message).to_row()))


# How a run ends


def is_open(row: RowMapping, receipt: Receipt) -> bool:
    """Whether a receipt is the first of its run.

    Raises:
        PlanMismatch: the receipt is of another plan, or a later window of its chain has read its events.
    """
    if row["fingerprint"] != receipt.fingerprint:
        read = (row["fingerprint"] or "none")[:12]
        raise PlanMismatch(f"run {row['id']} reads plan {read}, the receipt is of {receipt.fingerprint[:12]}")
    if row["state"] != "covered" and row["void_at"] is not None:
        raise PlanMismatch(
            f"run {row['id']}: a later window of the chain took the place of "
            f"{row['window_start']:%Y-%m-%dT%H:%M:%SZ} meanwhile, and holds what was read here. "
            "Remove this window's rows from the table"
        )
    return bool(row["state"] != "covered")


def cover(connection: Connection, row: RowMapping, landed: Landed) -> None:
    """A run, as `locked` gives it, covered its window."""
    receipt, run, reader_id, landing_id = landed.receipt, row["id"], row["reader_id"], row["landing_id"]
    done = {
        "state": "covered",
        "finished_at": datetime.now(UTC),
        "rows": receipt.rows,
        "bytes": receipt.bytes,
        "quarantined": receipt.totals["quarantined"],
        "dropped": receipt.totals["dropped"],
        "verdict": receipt.verdict,
        "receipt": receipt.to_json(),
        "written": landed.written,
        "late_rows": _late_rows(connection, row["pin_id"]),
        "error_type": None,
        "error_message": None,
    }
    connection.execute(update(runs).where(runs.c.id == run).values(done))
    window = window_of(row)
    if landed.schema is not None and landing_id is not None:
        landings.note_columns(connection, landing_id, landed.schema)
    _supersede(connection, reader_id, window, run, f"run {run} covered the window")
    _mark_overwritten(connection, row, window)
    if landing_id is not None:
        # a run at the same time may have landed a window that shares time, and this one replaced it in the table
        _take_place(connection, _in_the_way(reader_id, landing_id, window), window)


def _late_rows(connection: Connection, pin_id: int) -> int | None:
    """The last count of rows after a plan's end: it stays true however often the plan itself is read again."""
    counted = (runs.c.pin_id == pin_id, runs.c.state == "covered", runs.c.late_rows.is_not(None))
    return connection.execute(select(runs.c.late_rows).where(*counted).order_by(runs.c.id.desc()).limit(1)).scalar()


def _mark_overwritten(connection: Connection, row: RowMapping, window: Window) -> None:
    """A run of an earlier plan committed its table last: the later plan's window is covered no longer."""
    later = select(pins.c.id).where(is_window(pins, row["reader_id"], window), pins.c.generation > row["generation"])
    message = f"run {row['id']} of an earlier plan replaced the rows afterwards. Read the window again."
    connection.execute(
        update(runs)
        .where(runs.c.pin_id.in_(later), covered_under(row["landing_id"]))
        .values(state="failed", error_type=records.OVERWRITTEN, error_message=message)
    )


def restore_plans(
    connection: Connection, reader_id: int, landing_id: int, window: Window, failed: int | None = None
) -> None:
    """A plan failed, and the table is what it was: the plan of the window's rows there counts again.

    Later pins are deleted, unless another run has read them: that one may have landed before it ended, or may yet.
    So the run that `failed` is no longer one of its plan. Other links of a chain stay as well.
    """
    covered = _last_covered(connection, reader_id, landing_id, window)
    if covered is None or covered["pin_id"] is None:
        return
    at = select(pins.c.generation).where(pins.c.id == covered["pin_id"]).scalar_subquery()
    later = select(pins.c.id).where(is_window(pins, reader_id, window), pins.c.generation > at)
    since = connection.execute(later).scalars().all()
    connection.execute(update(runs).where(runs.c.id == failed, runs.c.pin_id.in_(since)).values(pin_id=None))
    is_used = exists().where(runs.c.pin_id.in_(since))
    follows = pins.c.follows_id
    link = select(follows).where(pins.c.id == covered["pin_id"]).scalar_subquery()
    is_link = exists().where(or_(follows.in_(since), and_(pins.c.id.in_(since), follows.is_distinct_from(link))))
    if since and not connection.execute(select(or_(is_used, is_link))).scalar():
        connection.execute(delete(pins).where(pins.c.id.in_(since)))


# What both need


def _last_covered(connection: Connection, reader_id: int, landing_id: int, window: Window) -> RowMapping | None:
    """Pin and rows of the run that put this window into the table last, whatever plan it read."""
    statement = (
        select(runs.c.rows, runs.c.quarantined, runs.c.dropped, runs.c.pin_id)
        .where(is_window(runs, reader_id, window), covered_under(landing_id))
        .order_by(runs.c.finished_at.desc(), runs.c.id.desc())
        .limit(1)
    )
    return connection.execute(statement).mappings().first()


def covered_under(landing_id: int | None) -> ColumnElement[bool]:
    """Whether a row of `runs` covers its window under a landing."""
    return and_(runs.c.landing_id == landing_id, runs.c.state == "covered")


def insert_run(connection: Connection, reader_id: int, window: Window, task: TaskInstanceKey, **values: Any) -> int:
    """A new run's number."""
    statement = insert(runs).values(
        reader_id=reader_id, window_start=window.start, window_end=window.end, **asdict(task), **values
    )
    key = connection.execute(statement).inserted_primary_key
    if key is None:
        raise JournalError("the database did not number a new run")
    return int(key[0])


def locked(connection: Connection, run: int) -> RowMapping:
    """A run, of whose reader only the caller changes something until the transaction ends.

    Raises:
        JournalError: no such run.
    """
    reader_id = connection.execute(select(runs.c.reader_id).where(runs.c.id == run)).scalar()
    if reader_id is None:
        raise JournalError(f"the journal has no run {run}. Was it started in another journal?")
    connection.execute(row_ids.change(reader_id))
    return connection.execute(records.with_plan().where(runs.c.id == run)).mappings().one()


def window_of(row: RowMapping) -> Window:
    """The window of a row of `runs`."""
    return Window(row["window_start"], row["window_end"])
