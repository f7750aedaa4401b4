"""From pins and runs to the state of each window.

Only runs of the newest plan and under the reader's present landing decide: covered if one of them covered the window (a
later failed run of the same plan takes nothing away), else what became of the last one. A window that is pinned but was
never started is missing, and so is one whose rows lie in another table. One that was read in vain, or not at all, is no
window any more where the reader has another grid by now. Of a chain, what lies between two windows was read with the
later one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime

from sqlalchemy import BigInteger, ColumnElement, Connection, RowMapping, Table, and_, func, select, type_coerce

from airflow_provider_streams.journal import landings
from airflow_provider_streams.journal import pins as pinned
from airflow_provider_streams.journal.landings import KeptLanding
from airflow_provider_streams.journal.runs import run_ref
from airflow_provider_streams.journal.tables import moment_of, pins, runs
from airflow_provider_streams.model.coverage import WindowState
from airflow_provider_streams.model.grid import parse_grid
from airflow_provider_streams.model.window import Window

_Key = tuple[datetime, datetime]


def window_states(
    connection: Connection, reader_id: int, span: Window, kept: KeptLanding | None = None
) -> Iterator[WindowState]:
    """The state of every window known in the span, under the landing that counts, or as if this one did."""
    kept = kept or landings.current(connection, reader_id)
    yield from _states(connection, kept, _touches(pins, reader_id, span), _touches(runs, reader_id, span))
    yield from between_links(connection, reader_id, kept, span)


def stretches(connection: Connection, reader_id: int, span: Window) -> Iterator[WindowState]:
    """As `window_states`, but covered windows that touch are one: quick, however many there are."""
    kept = landings.current(connection, reader_id)
    covered = pinned.is_covered(kept.id if kept else None)
    counting = and_(_touches(pins, reader_id, span), pinned.is_counting())
    edges = select(*(type_coerce(edge, BigInteger) for edge in (pins.c.window_start, pins.c.window_end)))
    found = connection.execute(edges.where(counting, covered).order_by(pins.c.window_start, pins.c.window_end))
    for start, end in _merged((row[0], row[1]) for row in found):
        yield WindowState(Window(start, end), "covered")
    is_open = select(pins.c.window_start, pins.c.window_end).where(counting, ~covered)
    unplanned = select(runs.c.window_start, runs.c.window_end).where(
        _touches(runs, reader_id, span), runs.c.pin_id.is_(None)
    )
    keys = {(row.window_start, row.window_end) for query in (is_open, unplanned) for row in connection.execute(query)}
    for start, end in sorted(keys):
        same = [(table.c.window_start == start) & (table.c.window_end == end) for table in (pins, runs)]
        of_reader = (pins.c.reader_id == reader_id, runs.c.reader_id == reader_id)
        states = _states(connection, kept, of_reader[0] & same[0], of_reader[1] & same[1])
        yield from (state for state in states if state.state != "covered")
    yield from between_links(connection, reader_id, kept, span)


def _merged(edges: Iterable[tuple[int, int]]) -> Iterator[tuple[datetime, datetime]]:
    """Spans of microseconds in order, as times; those that touch as one."""
    begun: tuple[int, int] | None = None
    for start, end in edges:
        if begun is not None and start <= begun[1]:
            begun = (begun[0], max(begun[1], end))
            continue
        if begun is not None:
            yield moment_of(begun[0]), moment_of(begun[1])
        begun = (start, end)
    if begun is not None:
        yield moment_of(begun[0]), moment_of(begun[1])


def _states(
    connection: Connection, kept: KeptLanding | None, which_pins: ColumnElement[bool], which_runs: ColumnElement[bool]
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
        if state.state in ("missing", "failed") and _is_of_another_grid(state.window, kept):
            is_in_table = any(row["state"] == "covered" and row["landing_id"] == landing_id for row in tries[key])
            if not is_in_table:
                continue
        yield state


def first_start(connection: Connection, reader_id: int) -> datetime | None:
    """Where the first window starts that was ever planned or tried; None: none was."""
    firsts = (select(func.min(table.c.window_start)).where(table.c.reader_id == reader_id) for table in (pins, runs))
    return min((found for one in firsts if (found := connection.execute(one).scalar()) is not None), default=None)


def between_links(
    connection: Connection, reader_id: int, kept: KeptLanding | None, span: Window
) -> Iterator[WindowState]:
    """Time that a covered window of a chain holds beside its own: nobody planned it, or its plan became void."""
    if kept is not None and kept.basis not in (None, "chained"):
        return  # nothing follows anything, and to see that costs a look at every pin
    landing_id = kept.id if kept else None
    before = pins.alias()
    statement = (
        select(before.c.window_end.label("since"), pins.c.window_start, pins.c.window_end, pins.c.fingerprint)
        .join(before, before.c.id == pins.c.follows_id)
        .where(pins.c.reader_id == reader_id, pinned.is_counting(), pinned.is_covered(landing_id))
        .where(before.c.window_end < pins.c.window_start)
        .where(before.c.window_end < span.end, pins.c.window_start > span.start)
    )
    for row in connection.execute(statement):
        cause = f"read with {Window(row.window_start, row.window_end)}"
        yield WindowState(Window(row.since, row.window_start), "covered", cause=cause, fingerprint=row.fingerprint)


def _touches(table: Table, reader_id: int, span: Window) -> ColumnElement[bool]:
    return and_(table.c.reader_id == reader_id, table.c.window_start < span.end, table.c.window_end > span.start)


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
    fingerprint = pin["fingerprint"] if pin else ""
    if not counting:
        return WindowState(
            window,
            "missing",
            cause=_unread(tries, landing_id),
            fingerprint=fingerprint,
            attempts=len(tries),
            skew_seconds=_skew(pin),
        )
    covered = [row for row in counting if row["state"] == "covered"]
    decisive = (covered or counting)[-1]
    return WindowState(
        window,
        decisive["state"],
        rows=decisive["rows"] if covered else 0,
        written=decisive["written"] if covered else None,
        bytes=decisive["bytes"] if covered else 0,
        cause=_cause(decisive),
        fingerprint=fingerprint,
        attempts=len(tries),
        run=run_ref(decisive),
        skew_seconds=_skew(pin),
        late_rows=decisive["late_rows"] if covered else None,
        verdict=decisive["verdict"] or "" if covered else "",
        quarantined=decisive["quarantined"] or 0 if covered else 0,
        dropped=decisive["dropped"] or 0 if covered else 0,
    )


def _is_of_another_grid(window: Window, kept: KeptLanding | None) -> bool:
    """Whether a reader that lands anew, or had no grid before, has windows of another shape by now."""
    return kept is not None and kept.grid is not None and not parse_grid(kept.grid).is_cell(window)


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
        return "" if row["verdict"] == "complete" else row["verdict"] or ""
    if row["state"] == "running":
        return f"running since {row['started_at']:%Y-%m-%dT%H:%M:%SZ}"
    return f"{row['error_type']}: {row['error_message']}"
