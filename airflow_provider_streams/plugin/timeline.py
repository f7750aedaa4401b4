"""One reader's windows as the page draws them: one by one where they are few, else summed up by the database.

Whatever the span, an answer has at most a few pieces for each pixel. Windows of different states are never in one
piece: a single failed window between a thousand covered ones is a piece of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection

from airflow_provider_streams.errors import InvalidWindow
from airflow_provider_streams.journal import coverage_rollup as summed
from airflow_provider_streams.journal.coverage_rollup import Piece, RollupQuery
from airflow_provider_streams.journal.reader_overview import ReaderOverview
from airflow_provider_streams.journal.runs import window_states
from airflow_provider_streams.model.window.coverage import STATES, Coverage, WindowState, held_by
from airflow_provider_streams.model.window.window import Window, microseconds_of, moment_of_us
from airflow_provider_streams.model.window.window_schedule import Every, WindowSchedule
from airflow_provider_streams.plugin.window_edges import Cells, cells_of, ended

MOST_WINDOWS: Final = 2_000
"""So many windows are shown one by one."""
PIXELS: Final = 2
"""A piece is at least so wide."""
GRAINS: Final = (
    *(1, 2, 5, 10, 15, 30),
    *(60 * minutes for minutes in (1, 2, 5, 10, 15, 30)),
    *(3600 * hours for hours in (1, 2, 3, 6, 12)),
    *(86_400 * 2**days for days in range(22)),
)
"""Seconds: round, so that pieces stay where they are while the view moves."""
FINGERPRINT_LENGTH: Final = 12
"""Hex digits of a fingerprint that people see."""
CAUSE_LENGTH: Final = 300
_SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Timeline:
    """The windows of a reader that touch a span, in order of time."""

    pieces: tuple[Piece, ...]
    is_exact: bool
    """Each piece is one window."""
    cells: Cells | None = None
    """How the cells of the span that have ended tile it; None: there is none."""
    grain: int | None = None
    """Seconds in which windows of one state are one piece."""


@dataclass(frozen=True, slots=True)
class TimelineRequest:
    """What the page shows."""

    span: Window
    width: int
    """In pixels."""
    now: datetime
    whole: bool = False
    """Only windows that are wholly in the span."""


def timeline(
    connection: Connection, one: ReaderOverview, window_schedule: WindowSchedule | None, asked: TimelineRequest
) -> Timeline:
    """What became of a span; windows that have not ended are not missing.

    Windows of DAGs that the reader's overview does not name are left out, and not called missing.
    """
    cells = _ended_cells(one, window_schedule, asked)
    known = summed.count(connection, one.id, asked.span)
    if max(known, cells.count if cells else 0) <= MOST_WINDOWS:
        found = tuple(_one_by_one(connection, one, cells, asked))
        return Timeline(found, is_exact=True, cells=cells)
    grain = grain_of(asked.span.length, asked.width)
    return Timeline(tuple(_summed(connection, one, cells, asked, grain)), is_exact=False, cells=cells, grain=grain)


def grain_of(length: timedelta, width: int) -> int:
    """Seconds that are at least `PIXELS` wide, and round."""
    least = length.total_seconds() * PIXELS / width
    return next((grain for grain in GRAINS if grain >= least), int(GRAINS[-1]))


def _ended_cells(one: ReaderOverview, window_schedule: WindowSchedule | None, asked: TimelineRequest) -> Cells | None:
    if window_schedule is None or one.first_start is None:
        return None
    try:
        stretch = ended(window_schedule, asked.span, one.first_start, asked.now)
        return None if stretch is None else cells_of(window_schedule, stretch)
    except InvalidWindow:
        return None  # it does not reach so far, so nothing is missing there


def _one_by_one(
    connection: Connection, one: ReaderOverview, cells: Cells | None, asked: TimelineRequest
) -> Iterator[Piece]:
    known = list(window_states.window_states(connection, one.id, asked.span))
    reached: datetime | None = None
    for item in _with_missing(known, cells, one, asked):
        is_ahead = item.state == "missing" and item.window.end > asked.now
        # left out last: a window of another DAG is not missing
        is_visible = item.run is None or item.run.dag_id in one.by_dag
        if is_ahead or not is_visible or (asked.whole and not asked.span.holds(item.window)):
            continue
        is_read = item.state in ("covered", "running")
        yield _piece(item, overlaps=is_read and reached is not None and item.window.start < reached)
        reached = max(reached or item.window.end, item.window.end) if is_read else reached


def _with_missing(
    known: list[WindowState], cells: Cells | None, one: ReaderOverview, asked: TimelineRequest
) -> list[WindowState]:
    """The known windows that still count, and the cells of the window schedule that none of them touches."""
    windows = {item.window for item in known}
    counting = Coverage.of(known, asked.span.start, asked.span.end).windows
    found = [item for item in counting if item.window in windows]
    if cells is not None:
        seen = Coverage.of(known, cells.stretch.start, cells.stretch.end, cells.window_schedule)
        blank = (item for item in seen.select("missing") if item.window not in windows)
        found += [item for item in blank if item.window.overlaps(asked.span) and _follows(item.window, one)]
    return sorted(found, key=lambda item: item.window)


def _follows(window: Window, one: ReaderOverview) -> bool:
    return one.first_start is not None and window.start >= one.first_start


def _piece(item: WindowState, *, overlaps: bool = False) -> Piece:
    return Piece(
        item.window,
        item.state,
        rows=item.rows,
        bytes=item.bytes,
        seconds=item.window.length.total_seconds(),
        late_rows=item.late_rows or 0,
        late=int(bool(item.late_rows)),
        attempts=item.attempts,
        planned=int(item.state == "missing" and bool(item.fingerprint)),
        overlaps=int(overlaps),
        unproven=int(item.state == "covered" and item.cause == "unproven"),
        quarantined=item.quarantined,
        dropped=item.dropped,
        undecodable=int(bool(item.quarantined or item.dropped)),
        cause=item.cause,
        fingerprint=item.fingerprint,
    )


def _summed(
    connection: Connection, one: ReaderOverview, cells: Cells | None, asked: TimelineRequest, grain: int
) -> list[Piece]:
    query = RollupQuery(asked.span, grain * _SECOND_US, asked.now, one.by_dag, whole=asked.whole)
    known = list(summed.pieces(connection, one.id, query))
    links = list(map(_piece, window_states.between_links(connection, one.id, one.landing, asked.span)))
    found = _still_open([*known, *links])
    if cells is not None:
        free = _without(summed.gaps(connection, one.id, cells.stretch), [link.window for link in links])
        blank = _blank(free, cells, grain, max(cells.stretch.start, one.first_start or asked.span.start))
        found += [piece for piece in blank if not asked.whole or asked.span.holds(piece.window)]
    return sorted(found, key=lambda piece: piece.window)


def _still_open(found: list[Piece]) -> list[Piece]:
    """Without those that were not read, and whose time is all in covered ones."""
    is_held = held_by(piece.window for piece in found if piece.state == "covered" and piece.is_whole)
    return [piece for piece in found if piece.state in ("covered", "running") or not is_held(piece.window)]


def _without(gaps: Iterable[Window], held: list[Window]) -> Iterator[Window]:
    """Time that links of a chain hold in addition to their own windows is not blank."""
    taken = [WindowState(window, "covered") for window in held]
    for gap in gaps:
        yield from Coverage.of(taken, gap.start, gap.end).gaps if taken else (gap,)


def _blank(gaps: Iterable[Window], cells: Cells, grain: int, since: datetime) -> Iterator[Piece]:
    """Cells of the window schedule that are in gaps, those that start in one grain as one piece."""
    grain_us, until = grain * _SECOND_US, microseconds_of(cells.stretch.end)
    found: dict[int, list[tuple[int, int, int]]] = {}
    for gap in gaps:
        left, right = max(gap.start_us, microseconds_of(since)), min(gap.end_us, until)
        for one in _blank_cells(left, right, cells, grain_us):
            found.setdefault(one[0] // grain_us, []).append(one)
    for blank in found.values():
        window = Window(moment_of_us(blank[0][0]), moment_of_us(blank[-1][1]))
        seconds = sum(end - start for start, end, _ in blank) / _SECOND_US
        yield Piece(window, "missing", sum(windows for _, _, windows in blank), seconds=seconds)


def _blank_cells(left: int, right: int, cells: Cells, grain_us: int) -> Iterator[tuple[int, int, int]]:
    """Start, end and number of the cells in a gap that start in each grain; what a known window left of one is one."""
    ticks, at = cells.ticks, left
    if left < right and cells.is_exact and ticks[cells.first(left)] != left:
        at = min(ticks[cells.first(left)], right)
        yield left, at, 1
    while at < right:
        first = cells.first(at)
        start = ticks[first]
        if start >= right:
            return
        after = cells.first(min((start // grain_us + 1) * grain_us, right))
        end = min(ticks[after], right)
        yield start, end, max(1, after - first)
        at = max(end, start + 1)


def columns(seen: Timeline, span: Window) -> dict[str, Any]:
    """Parallel arrays, one element per piece, in order of time.

    `start` and `length` are in seconds (`start` since the span's start), `state` and `cause` are indexes into
    `states` and `causes`.
    """
    causes: dict[str, int] = {"": 0}
    found = seen.pieces
    cause = [causes.setdefault(piece.cause[:CAUSE_LENGTH], len(causes)) for piece in found]
    return {
        "zero": span.start.timestamp(),
        "states": STATES,
        "causes": list(causes),
        "exact": seen.is_exact,
        "about": seen.cells is not None and not seen.cells.is_exact,
        "grain": seen.grain,
        "start": [_seconds(piece.window.start - span.start) for piece in found],
        "length": [_seconds(piece.window.length) for piece in found],
        "state": [STATES.index(piece.state) for piece in found],
        "cause": cause,
        "fingerprint": [piece.fingerprint[:FINGERPRINT_LENGTH] for piece in found],
        "late": [piece.late_rows for piece in found],
        **{name: [getattr(piece, name) for piece in found] for name in _NUMBERS},
    }


_NUMBERS: Final = (
    *("windows", "rows", "bytes", "attempts", "planned", "overlaps"),
    *("unproven", "quarantined", "dropped", "undecodable"),
)


def schedule_json(window_schedule: WindowSchedule | None, cells: Cells | None) -> dict[str, Any] | None:
    """What a browser needs to snap to a window schedule: its length and shift, or its edges where they are few."""
    if window_schedule is None:
        return None
    if isinstance(window_schedule, Every):
        return {"every": window_schedule.length.total_seconds(), "shift": window_schedule.shift.total_seconds()}
    edges = cells.edges() if cells is not None else None
    return {"edges": [edge.timestamp() for edge in edges]} if edges else {}


def next_due(window_schedule: WindowSchedule | None, now: datetime) -> float | None:
    """When the next window ends, in seconds since 1970; until then, no more windows become missing by themselves."""
    try:
        return None if window_schedule is None else window_schedule.after(now).astimezone(UTC).timestamp()
    except InvalidWindow:
        return None


def _seconds(duration: timedelta) -> int | float:
    seconds = duration.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds
