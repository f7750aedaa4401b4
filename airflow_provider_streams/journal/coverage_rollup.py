"""The windows of a reader summed up by the database: those of one state that start close together are one piece.

The rule is the same as in `window_states`: runs of the newest plan and under the present landing decide. It is written
in SQL here, to show a hundred thousand windows at once. A property test holds the two equal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    FromClause,
    Subquery,
    and_,
    case,
    func,
    literal,
    null,
    or_,
    select,
    type_coerce,
    union_all,
)

from airflow_provider_streams.journal import landings
from airflow_provider_streams.journal.tables import pins, runs, shares_time
from airflow_provider_streams.model.window.coverage import State
from airflow_provider_streams.model.window.window import Window, microseconds_of, moment_of_us

PLANNED, REPLANNED, PROVEN, ELSEWHERE = range(1, 5)
CAUSES = {
    PLANNED: "planned, not read yet",
    REPLANNED: "planned again, not read yet",
    PROVEN: "read and proven, landed nowhere",
    ELSEWHERE: "landed in another table before",
}
"""Why a window that was planned or tried is missing."""
SEVERAL = "several causes"


@dataclass(frozen=True, slots=True)
class Piece:
    """Windows of one state that start close together; or one window."""

    window: Window
    """From the start of the first to the end of the last of them. Others may be between."""
    state: State
    windows: int = 1
    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0
    """How long all of them are together."""
    late_rows: int = 0
    late: int = 0
    """How many of them have late rows."""
    attempts: int = 0
    """Of the one that was tried most often."""
    planned: int = 0
    """How many of them have a pinned plan; counted where they are missing."""
    overlaps: int = 0
    """How many of them share time with an earlier one, where both are covered or running."""
    unproven: int = 0
    """How many covered ones may lack events that were removed before the source was first observed."""
    quarantined: int = 0
    """Their events that could not be decoded, and are in quarantine."""
    dropped: int = 0
    """Their events that could not be decoded, and were left out."""
    undecodable: int = 0
    """How many of them have such events."""
    cause: str = ""
    """The kind of error, or why it is missing."""
    fingerprint: str = ""
    """Of the plan, of a single window."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing else is between its windows."""
        return abs(self.window.length.total_seconds() - self.seconds) < 1e-6  # noqa: PLR2004 - a microsecond


@dataclass(frozen=True, slots=True)
class RollupQuery:
    """Which windows are summed up, and how finely."""

    span: Window
    grain_us: int
    """Windows that start within so many microseconds, counted from 1970, are one piece; a longer one stays apart."""
    now: datetime
    """A window that ends later is not missing."""
    dag_ids: Collection[str] | None = None
    """Windows whose state a run of another DAG decided are left out; None: none is."""
    whole: bool = False
    """Leave out windows that are only in part in the span."""


def pieces(connection: Connection, reader_id: int, look: RollupQuery) -> Iterator[Piece]:
    """The known windows of a span, in order of time. At most a few for each grain, however many windows there are."""
    kept = landings.current(connection, reader_id)
    windows = _windows(reader_id, kept.id if kept else None, look).subquery("windows")
    for row in connection.execute(_summed(windows, look)).mappings():
        yield _piece(row)


def gaps(connection: Connection, reader_id: int, span: Window) -> Iterator[Window]:
    """The time inside a span that no known window holds, in order."""
    known = union_all(
        select(_us(pins.c.window_start, "s"), _us(pins.c.window_end, "e")).where(
            shares_time(pins, reader_id, span), pins.c.void_at.is_(None)
        ),
        select(_us(runs.c.window_start, "s"), _us(runs.c.window_end, "e")).where(
            shares_time(runs, reader_id, span), runs.c.pin_id.is_(None)
        ),
    ).subquery("known")
    reached = select(known.c.s, _reached(known.c.e, known).label("reached")).subquery("reached")
    first, last = (
        select(edge).select_from(known).scalar_subquery() for edge in (func.min(known.c.s), func.max(known.c.e))
    )
    found = connection.execute(
        select(reached.c.reached, reached.c.s).where(reached.c.s > reached.c.reached).order_by(reached.c.s)
    )
    begin, end = connection.execute(select(first, last)).one()
    if begin is None:
        yield span
        return
    if moment_of_us(begin) > span.start:
        yield Window(span.start, moment_of_us(begin))
    for left, right in found:
        yield Window(moment_of_us(left), moment_of_us(right))
    if moment_of_us(end) < span.end:
        yield Window(moment_of_us(end), span.end)


def count(connection: Connection, reader_id: int, span: Window) -> int:
    """About how many windows of a span are known: quick, and never too few."""
    planned = select(func.count()).where(shares_time(pins, reader_id, span), pins.c.generation == 1)
    tried = select(runs.c.window_start, runs.c.window_end).where(
        shares_time(runs, reader_id, span), runs.c.pin_id.is_(None)
    )
    unplanned = select(func.count()).select_from(tried.distinct().subquery())
    return int(connection.execute(planned).scalar_one() + connection.execute(unplanned).scalar_one())


def _windows(reader_id: int, landing_id: int | None, look: RollupQuery) -> Any:
    """Each known window with the number of the run that decides its state; null: no run did."""
    newest = _newest(reader_id, look)
    here = runs.c.landing_id.is_not_distinct_from(landing_id)
    counts = and_(here, or_(runs.c.pin_id.is_(None), runs.c.pin_id == newest.c.id))
    covered = func.max(case((and_(counts, runs.c.state == "covered"), runs.c.id)))
    last = func.max(case((counts, runs.c.id)))
    same = and_(runs.c.window_start == newest.c.window_start, runs.c.window_end == newest.c.window_end)
    tried = (
        select(
            _us(runs.c.window_start, "s"),
            _us(runs.c.window_end, "e"),
            func.coalesce(covered, last).label("run"),
            func.count().label("attempts"),
            func.max(newest.c.id).label("pin"),
            func.max(newest.c.fingerprint).label("fingerprint"),
            _unread(here).label("why"),
        )
        .select_from(runs.outerjoin(newest, same))
        .where(shares_time(runs, reader_id, look.span), *_cut(runs, look))
        .group_by(runs.c.window_start, runs.c.window_end)
        # a later window of its chain has read what it was to read
        .having(or_(func.max(newest.c.void_at).is_(None), last.is_not(None)))
    )
    tries = select(literal(1)).where(runs.c.reader_id == reader_id, same)
    untried = select(
        _us(newest.c.window_start, "s"),
        _us(newest.c.window_end, "e"),
        null().label("run"),
        literal(0).label("attempts"),
        newest.c.id.label("pin"),
        newest.c.fingerprint,
        literal(PLANNED).label("why"),
    ).where(newest.c.void_at.is_(None), ~tries.exists())
    return union_all(tried, untried)


def _newest(reader_id: int, look: RollupQuery) -> Subquery:
    """Of each window the pin of the greatest generation."""
    newer = pins.alias()
    is_replaced = select(literal(1)).where(
        newer.c.reader_id == pins.c.reader_id,
        newer.c.window_start == pins.c.window_start,
        newer.c.window_end == pins.c.window_end,
        newer.c.generation > pins.c.generation,
    )
    columns = (pins.c.id, pins.c.window_start, pins.c.window_end, pins.c.void_at, pins.c.fingerprint)
    which = (shares_time(pins, reader_id, look.span), *_cut(pins, look), ~is_replaced.exists())
    return select(*columns).where(*which).subquery("newest")


def _unread(here: ColumnElement[bool]) -> ColumnElement[int]:
    """Why a window that was tried is missing, if it is; see `window_states._unread`."""
    covered = runs.c.state == "covered"
    of_here = func.max(case((here, 1), else_=0))
    landed = func.max(case((and_(covered, runs.c.landing_id.is_not(None)), 1), else_=0))
    proven = func.max(case((covered, 1), else_=0))
    return case((of_here == 1, REPLANNED), (landed == 1, ELSEWHERE), (proven == 1, PROVEN), else_=REPLANNED)


def _summed(windows: Subquery, look: RollupQuery) -> Any:
    """One row for the windows of one state that start within a grain of time."""
    decisive = runs.alias("decisive")
    state = func.coalesce(decisive.c.state, "missing").label("state")
    read = case((decisive.c.state.in_(("covered", "running")), windows.c.e))
    each = select(
        *windows.c,
        state,
        *(decisive.c[name] for name in _OF_RUN),
        case((and_(read.is_not(None), _reached(read, windows) > windows.c.s), 1), else_=0).label("overlaps"),
    ).select_from(windows.outerjoin(decisive, decisive.c.id == windows.c.run))
    one = each.subquery("one")
    length = one.c.e - one.c.s
    covered = one.c.state == "covered"
    cause = case((covered, one.c.verdict), (one.c.state == "missing", None), else_=one.c.error_type)
    keys = (
        (one.c.s // look.grain_us).label("grain"),
        one.c.state,
        case((length > look.grain_us, 1), else_=0).label("is_long"),
    )
    visible = [] if look.dag_ids is None else [or_(one.c.dag_id.is_(None), one.c.dag_id.in_(look.dag_ids))]
    has_ended = or_(one.c.state != "missing", one.c.e <= microseconds_of(look.now))
    return (
        select(
            *keys,
            func.min(one.c.s).label("s"),
            func.max(one.c.e).label("e"),
            func.count().label("windows"),
            func.sum(length).label("microseconds"),
            func.sum(case((covered, one.c.rows), else_=0)).label("rows"),
            func.sum(case((covered, one.c.bytes), else_=0)).label("bytes"),
            func.coalesce(func.sum(case((covered, one.c.late_rows))), 0).label("late_rows"),
            func.sum(case((and_(covered, one.c.late_rows > 0), 1), else_=0)).label("late"),
            func.max(one.c.attempts).label("attempts"),
            func.sum(case((one.c.pin.is_not(None), 1), else_=0)).label("planned"),
            func.sum(one.c.overlaps).label("overlaps"),
            func.sum(case((and_(covered, one.c.verdict == "unproven"), 1), else_=0)).label("unproven"),
            func.sum(case((covered, one.c.quarantined), else_=0)).label("quarantined"),
            func.sum(case((covered, one.c.dropped), else_=0)).label("dropped"),
            func.sum(case((and_(covered, one.c.quarantined + one.c.dropped > 0), 1), else_=0)).label("undecodable"),
            func.min(cause).label("cause"),
            func.max(cause).label("other_cause"),
            func.min(one.c.why).label("why"),
            func.max(one.c.why).label("other_why"),
            func.max(one.c.fingerprint).label("fingerprint"),
        )
        .where(has_ended, *visible)
        .group_by(*keys)
        .order_by("s", "e", "state")
    )


_OF_RUN = ("rows", "bytes", "late_rows", "quarantined", "dropped", "verdict", "error_type", "dag_id")
"""What the run that decides a window's state says of it."""


def _reached(end: ColumnElement[Any], table: FromClause) -> ColumnElement[int]:
    """How far the windows before this one reach."""
    return func.max(end).over(order_by=(table.c.s, table.c.e), rows=(None, -1))


_COUNTS = (
    *("windows", "rows", "bytes", "late_rows", "late", "attempts", "overlaps", "unproven"),
    *("quarantined", "dropped", "undecodable"),
)
"""Fields of a piece that the database counts."""


def _piece(row: Any) -> Piece:
    is_missing = row["state"] == "missing"
    return Piece(
        Window(moment_of_us(int(row["s"])), moment_of_us(int(row["e"]))),
        row["state"],
        seconds=int(row["microseconds"]) / 1e6,
        planned=int(row["planned"]) if is_missing else 0,
        cause=_missing_cause(row) if is_missing else _cause(row),
        fingerprint=row["fingerprint"] or "" if row["windows"] == 1 else "",
        **{name: int(row[name]) for name in _COUNTS},
    )


def _missing_cause(row: Any) -> str:
    return CAUSES[row["why"]] if row["why"] == row["other_why"] else SEVERAL


def _cause(row: Any) -> str:
    if row["cause"] != row["other_cause"]:
        return SEVERAL
    cause = row["cause"] or ""
    return "" if cause == "complete" else cause


def _us(edge: ColumnElement[Any], name: str) -> ColumnElement[int]:
    """A stored moment as it is stored: microseconds since 1970."""
    return type_coerce(edge, BigInteger).label(name)


def _cut(table: FromClause, look: RollupQuery) -> tuple[ColumnElement[bool], ...]:
    if not look.whole:
        return ()
    return (table.c.window_start >= look.span.start, table.c.window_end <= look.span.end)
