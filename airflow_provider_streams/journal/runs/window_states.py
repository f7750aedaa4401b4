"""From pins and runs to the state of each window.

Only runs of the newest plan and under the reader's present landing decide. The window is covered if one of them covered
it: a later failed run of the same plan takes nothing away. Else the last of them decides. A window that is pinned but
was never started is missing, and so is one whose rows are in another table. One that was read without success, or not
at all, is no longer a window if the reader has another window schedule by now. In a chain, the time between two
windows was read with the later one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Connection, RowMapping, and_, select, type_coerce

from airflow_provider_streams.journal import landings
from airflow_provider_streams.journal import pinned_plans as pinned
from airflow_provider_streams.journal.landings import StoredLanding
from airflow_provider_streams.journal.row_ids import JournalPart
from airflow_provider_streams.journal.runs.run_records import run_ref
from airflow_provider_streams.journal.tables import is_window, pins, runs, shares_time
from airflow_provider_streams.model.window.coverage import Coverage, WindowState, merged
from airflow_provider_streams.model.window.window import Window, moment_of_us
from airflow_provider_streams.model.window.window_schedule import WindowSchedule, parse_schedule

_Key = tuple[datetime, datetime]


class WindowStates(JournalPart):
    """What is covered."""

    def coverage(
        self,
        source_key: str,
        reader: str,
        start: datetime,
        end: datetime,
        window_schedule: WindowSchedule | timedelta | None = None,
        *,
        landing: StoredLanding | None = None,
    ) -> Coverage:
        """What is covered of `[start, end)`; see `Coverage.of` for what a window schedule does with blank time.

        With a landing: as if the reader landed that.

        Raises:
            InvalidWindow: `end` is not after `start`, a naive time, or a length that is not positive.
        """
        span = Window(start, end)
        with self._reading(source_key, reader) as (connection, reader_id):
            known = list(window_states(connection, reader_id, span, landing))
        return Coverage.of(known, start, end, window_schedule)

    def stretches(
        self,
        source_key: str,
        reader: str,
        start: datetime,
        end: datetime,
        window_schedule: WindowSchedule | timedelta | None = None,
    ) -> Coverage:
        """As `coverage`, but covered windows that touch are shown as one: quick, however many there are."""
        span = Window(start, end)
        with self._reading(source_key, reader) as (connection, reader_id):
            known = list(_stretches(connection, reader_id, span))
        return Coverage.of(known, start, end, window_schedule)


def window_states(
    connection: Connection, reader_id: int | None, span: Window, kept: StoredLanding | None = None
) -> Iterator[WindowState]:
    """The state of every window known in the span, under the landing that counts, or as if this one did."""
    kept = kept or landings.current(connection, reader_id)
    yield from _states(connection, kept, shares_time(pins, reader_id, span), shares_time(runs, reader_id, span))
    yield from between_links(connection, reader_id, kept, span)


def _stretches(connection: Connection, reader_id: int | None, span: Window) -> Iterator[WindowState]:
    kept = landings.current(connection, reader_id)
    covered = pinned.is_covered(kept.id if kept else None)
    counting = and_(shares_time(pins, reader_id, span), pinned.is_counting())
    edges = select(*(type_coerce(edge, BigInteger) for edge in (pins.c.window_start, pins.c.window_end)))
    found = connection.execute(edges.where(counting, covered).order_by(pins.c.window_start, pins.c.window_end))
    for start, end in merged((row[0], row[1]) for row in found):
        yield WindowState(Window(moment_of_us(start), moment_of_us(end)), "covered")
    is_open = select(pins.c.window_start, pins.c.window_end).where(counting, ~covered)
    unplanned = select(runs.c.window_start, runs.c.window_end).where(
        shares_time(runs, reader_id, span), runs.c.pin_id.is_(None)
    )
    windows = {Window(*row) for query in (is_open, unplanned) for row in connection.execute(query)}
    for window in sorted(windows):
        states = _states(connection, kept, is_window(pins, reader_id, window), is_window(runs, reader_id, window))
        yield from (state for state in states if state.state != "covered")
    yield from between_links(connection, reader_id, kept, span)


def _states(
    connection: Connection, kept: StoredLanding | None, which_pins: ColumnElement[bool], which_runs: ColumnElement[bool]
) -> Iterator[WindowState]:
    landing_id = kept.id if kept else None
    newest: dict[_Key, RowMapping] = {}
    # not the plans: they may be megabytes each
    of_pin = (column for column in pins.c if column.name != "plan")
    for row in connection.execute(select(*of_pin).where(which_pins).order_by(pins.c.generation)).mappings():
        newest[row["window_start"], row["window_end"]] = row
    tries: dict[_Key, list[RowMapping]] = defaultdict(list)
    of_run = (column for column in runs.c if column.name != "receipt")
    for row in connection.execute(select(*of_run).where(which_runs).order_by(runs.c.id)).mappings():
        tries[row["window_start"], row["window_end"]].append(row)
    for key in newest.keys() | tries.keys():
        pin = newest.get(key)
        counting = [row for row in tries[key] if _decides(row, pin, landing_id)]
        if pin is not None and pin["void_at"] is not None and not counting:
            continue  # a later window of its chain has read what it was to read
        state = _state(Window(*key), pin, tries[key], counting, landing_id)
        is_unread = state.state in ("missing", "failed") and not any(
            row["state"] == "covered" and row["landing_id"] == landing_id for row in tries[key]
        )
        if not (is_unread and _is_of_another_schedule(state.window, kept)):
            yield state


def between_links(
    connection: Connection, reader_id: int | None, kept: StoredLanding | None, span: Window
) -> Iterator[WindowState]:
    """Time that a covered window of a chain holds in addition to its own: it was never planned, or its plan is void."""
    if kept is not None and kept.basis not in (None, "chained"):
        return  # no window follows another, and to see that costs a look at every pin
    before = pins.alias()
    statement = (
        select(before.c.window_end.label("since"), pins.c.window_start, pins.c.window_end, pins.c.fingerprint)
        .join(before, before.c.id == pins.c.follows_id)
        .where(pins.c.reader_id == reader_id, pinned.is_counting(), pinned.is_covered(kept.id if kept else None))
        .where(before.c.window_end < pins.c.window_start)
        .where(before.c.window_end < span.end, pins.c.window_start > span.start)
    )
    for row in connection.execute(statement):
        cause = f"read with {Window(row.window_start, row.window_end)}"
        yield WindowState(Window(row.since, row.window_start), "covered", cause=cause, fingerprint=row.fingerprint)


def _decides(row: RowMapping, pin: RowMapping | None, landing_id: int | None) -> bool:
    """Whether a run says what became of its window: of the newest plan, or before there was one; into this table."""
    of_plan = row["pin_id"] is None or (pin is not None and row["pin_id"] == pin["id"])
    return bool(of_plan and row["landing_id"] == landing_id)


def _state(
    window: Window,
    pin: RowMapping | None,
    tries: list[RowMapping],
    counting: list[RowMapping],
    landing_id: int | None,
) -> WindowState:
    of_pin: dict[str, Any] = {
        "fingerprint": pin["fingerprint"] if pin else "",
        "attempts": len(tries),
        "skew_seconds": _skew(pin),
    }
    if not counting:
        return WindowState(window, "missing", cause=_unread(tries, landing_id), **of_pin)
    covered = [row for row in counting if row["state"] == "covered"]
    decisive = (covered or counting)[-1]
    holds = {name: decisive[name] for name in _OF_COVERED} if covered else {}
    return WindowState(window, decisive["state"], cause=_cause(decisive), run=run_ref(decisive), **of_pin, **holds)


_OF_COVERED = ("rows", "written", "bytes", "late_rows", "verdict", "quarantined", "dropped")
"""What only a covering run says of its window."""


def _is_of_another_schedule(window: Window, kept: StoredLanding | None) -> bool:
    """Whether a reader with another landing, or without a window schedule before, has windows of another shape now."""
    return (
        kept is not None
        and kept.window_schedule is not None
        and not parse_schedule(kept.window_schedule).is_cell(window)
    )


def _unread(tries: list[RowMapping], landing_id: int | None) -> str:
    if not tries:
        return "planned, not read yet"
    here = [row for row in tries if row["landing_id"] == landing_id]
    if not here and any(row["state"] == "covered" for row in tries):
        proven = all(row["landing_id"] is None for row in tries if row["state"] == "covered")
        return "read and proven, landed nowhere" if proven else "landed in another table before"
    return "planned again, not read yet"


def _skew(pin: RowMapping | None) -> tuple[float, float] | None:
    if pin is None or pin["start_skew_ms"] is None:
        return None
    return pin["start_skew_ms"] / 1000, pin["end_skew_ms"] / 1000


def _cause(row: RowMapping) -> str:
    if row["state"] == "covered":
        return "" if row["verdict"] == "complete" else row["verdict"]
    if row["state"] == "running":
        return f"running since {row['started_at']:%Y-%m-%dT%H:%M:%SZ}"
    return f"{row['error_type']}: {row['error_message']}"
