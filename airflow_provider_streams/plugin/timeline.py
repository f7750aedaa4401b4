"""One reader's windows as the page draws them: one by one where they are few, else summed up by the database.

Whatever the span, an answer has at most a few pieces for each pixel. Windows of different states are never in one
piece: a single failed window between a thousand covered ones is a piece of its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection

from airflow_provider_streams.errors import InvalidWindow
from airflow_provider_streams.journal import history
from airflow_provider_streams.journal import pieces as summed
from airflow_provider_streams.journal.overview import ReaderOverview
from airflow_provider_streams.journal.pieces import Look, Piece
from airflow_provider_streams.model.coverage import STATES, Coverage, WindowState
from airflow_provider_streams.model.grid import Every, Grid
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.plugin.ticks import Beat, beat, ended, of_us, to_us

MOST_WINDOWS: Final = 2_000
"""So many windows are told one by one."""
PIXELS: Final = 2
"""So many are the least that a piece takes."""
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
    beat: Beat | None = None
    """How the cells of the span that have ended tile it; None: there is none."""
    grain: int | None = None
    """Seconds in which windows of one state are one piece."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is looked at."""

    span: Window
    width: int
    """Pixels it is drawn on."""
    now: datetime
    whole: bool = False
    """Only windows that lie in the span as a whole."""


def timeline(connection: Connection, one: ReaderOverview, grid: Grid | None, asked: Asked) -> Timeline:
    """What became of a span; windows that have not ended are not missing.

    Windows of DAGs that the reader's overview does not name are left out, and not called missing.
    """
    beats = _beat(one, grid, asked)
    known = summed.count(connection, one.id, asked.span)
    if max(known, beats.cells if beats else 0) <= MOST_WINDOWS:
        items = _one_by_one(connection, one, beats, asked)
        return Timeline(tuple(_piece(item, overlapped) for item, overlapped in items), is_exact=True, beat=beats)
    grain = grain_of(asked.span.length, asked.width)
    found = tuple(_summed(connection, one, beats, asked, grain))
    return Timeline(found, is_exact=False, beat=beats, grain=grain)


def grain_of(length: timedelta, width: int) -> int:
    """Seconds that are at least `PIXELS` wide, and round."""
    least = length.total_seconds() * PIXELS / width
    return next((grain for grain in GRAINS if grain >= least), int(GRAINS[-1]))


def _beat(one: ReaderOverview, grid: Grid | None, asked: Asked) -> Beat | None:
    if grid is None or one.first_start is None:
        return None
    try:
        stretch = ended(grid, asked.span, one.first_start, asked.now)
        return None if stretch is None else beat(grid, stretch)
    except InvalidWindow:
        return None  # it does not reach so far, so nothing is missing there


def _one_by_one(
    connection: Connection, one: ReaderOverview, beats: Beat | None, asked: Asked
) -> Iterator[tuple[WindowState, bool]]:
    """Each window, and whether it shares time with an earlier one."""
    known = list(history.window_states(connection, one.id, asked.span))
    items = [item for item in _with_missing(known, beats, one, asked) if _is_ended(item, asked.now)]
    # left out last: a window of somebody else's DAG is not missing
    mine = [item for item in items if item.run is None or item.run.dag_id in one.by_dag]
    reached: datetime | None = None
    for item in mine:
        if asked.whole and not _is_within(item.window, asked.span):
            continue
        is_read = item.state in ("covered", "running")
        yield item, is_read and reached is not None and item.window.start < reached
        reached = max(reached or item.window.end, item.window.end) if is_read else reached


def _with_missing(known: list[WindowState], beats: Beat | None, one: ReaderOverview, asked: Asked) -> list[WindowState]:
    """What still counts of the known windows, and the cells of the grid that none of them touches."""
    windows = {item.window for item in known}
    counting = Coverage.of(known, asked.span.start, asked.span.end).windows
    found = [item for item in counting if item.window in windows]
    if beats is not None:
        seen = Coverage.of(known, beats.stretch.start, beats.stretch.end, beats.grid)
        blank = (item for item in seen.select("missing") if item.window not in windows)
        found += [item for item in blank if item.window.overlaps(asked.span) and _follows(item.window, one)]
    return sorted(found, key=lambda item: item.window)


def _follows(window: Window, one: ReaderOverview) -> bool:
    return one.first_start is not None and window.start >= one.first_start


def _is_ended(item: WindowState, now: datetime) -> bool:
    """What is planned ahead is not missing yet."""
    return item.state != "missing" or item.window.end <= now


def _is_within(window: Window, span: Window) -> bool:
    return span.start <= window.start and window.end <= span.end


def _piece(item: WindowState, overlapped: bool) -> Piece:  # noqa: FBT001 - one of its values
    return Piece(
        item.window,
        item.state,
        1,
        item.rows,
        item.bytes,
        item.window.length.total_seconds(),
        item.late_rows or 0,
        int(bool(item.late_rows)),
        item.attempts,
        int(item.state == "missing" and bool(item.fingerprint)),
        int(overlapped),
        int(item.state == "covered" and item.cause == "unproven"),
        item.quarantined,
        item.dropped,
        int(bool(item.quarantined or item.dropped)),
        item.cause,
        item.fingerprint,
    )


def _summed(connection: Connection, one: ReaderOverview, beats: Beat | None, asked: Asked, grain: int) -> list[Piece]:
    look = Look(asked.span, grain * _SECOND_US, asked.now, one.by_dag, whole=asked.whole)
    known = list(summed.pieces(connection, one.id, look))
    links = [
        _piece(item, overlapped=False) for item in history.between_links(connection, one.id, one.landing, asked.span)
    ]
    found = _still_open([*known, *links])
    if beats is not None:
        free = _without(summed.gaps(connection, one.id, beats.stretch), [link.window for link in links])
        blank = _blank(free, beats, grain, max(beats.stretch.start, one.first_start or asked.span.start))
        found += [piece for piece in blank if not asked.whole or _is_within(piece.window, asked.span)]
    return sorted(found, key=lambda piece: piece.window)


def _still_open(found: list[Piece]) -> list[Piece]:
    """Without those that were not read, and whose time covered ones hold altogether."""
    covered = sorted(piece.window for piece in found if piece.state == "covered" and piece.is_whole)
    if not covered:
        return found
    last = max(window.end for window in covered)
    stretches = Coverage.of([WindowState(window, "covered") for window in covered], covered[0].start, last).covered
    starts = [stretch.start for stretch in stretches]

    def is_held(window: Window) -> bool:
        at = bisect_right(starts, window.start) - 1
        return at >= 0 and stretches[at].end >= window.end

    return [piece for piece in found if piece.state in ("covered", "running") or not is_held(piece.window)]


def _without(gaps: Iterable[Window], held: list[Window]) -> Iterator[Window]:
    """Time that links of a chain hold beside their own windows is not blank."""
    taken = [WindowState(window, "covered") for window in held]
    for gap in gaps:
        yield from Coverage.of(taken, gap.start, gap.end).gaps if taken else (gap,)


def _blank(gaps: Iterable[Window], beats: Beat, grain: int, since: datetime) -> Iterator[Piece]:
    """Cells of the grid that lie in gaps, those that start in one grain as one piece."""
    found: dict[int, list[tuple[int, int, int]]] = {}
    begin, until = to_us(since), to_us(beats.stretch.end)
    for gap in gaps:
        left, right = max(to_us(gap.start), begin), min(to_us(gap.end), until)
        for start, end, windows in _cells(left, right, beats, grain * _SECOND_US):
            found.setdefault(start // (grain * _SECOND_US), []).append((start, end, windows))
    for cells in found.values():
        window = Window(of_us(cells[0][0]), of_us(cells[-1][1]))
        seconds = sum(end - start for start, end, _ in cells) / _SECOND_US
        yield Piece(window, "missing", sum(windows for _, _, windows in cells), seconds=seconds)


def _cells(left: int, right: int, beats: Beat, grain_us: int) -> Iterator[tuple[int, int, int]]:
    """Start, end and number of the cells in a gap that start in each grain; what a known window left of one is one."""
    ticks = beats.ticks
    at = left
    if left < right and beats.is_exact and ticks.at(ticks.first(left)) != left:
        cut = min(ticks.at(ticks.first(left)), right)
        yield left, cut, 1
        at = cut
    while at < right:
        first = ticks.first(at)
        start = ticks.at(first)
        if start >= right:
            return
        behind = ticks.first(min((start // grain_us + 1) * grain_us, right))
        end = min(ticks.at(behind), right)
        yield start, end, max(1, behind - first)
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
        "about": seen.beat is not None and not seen.beat.is_exact,
        "grain": seen.grain,
        "start": [_seconds(piece.window.start - span.start) for piece in found],
        "length": [_seconds(piece.window.length) for piece in found],
        "state": [STATES.index(piece.state) for piece in found],
        "cause": cause,
        "fingerprint": [piece.fingerprint[:FINGERPRINT_LENGTH] for piece in found],
        **{name: [get(piece) for piece in found] for name, get in _NUMBERS.items()},
    }


_NUMBERS: Final[dict[str, Callable[[Piece], int]]] = {
    "windows": lambda piece: piece.windows,
    "rows": lambda piece: piece.rows,
    "bytes": lambda piece: piece.bytes,
    "late": lambda piece: piece.late_rows,
    "attempts": lambda piece: piece.attempts,
    "planned": lambda piece: piece.planned,
    "overlaps": lambda piece: piece.overlaps,
    "unproven": lambda piece: piece.unproven,
    "quarantined": lambda piece: piece.quarantined,
    "dropped": lambda piece: piece.dropped,
    "undecodable": lambda piece: piece.undecodable,
}


def grid_json(grid: Grid | None, beats: Beat | None) -> dict[str, Any] | None:
    """What a browser needs to snap to a grid: its length and shift, or its edges where they are few."""
    if grid is None:
        return None
    if isinstance(grid, Every):
        return {"every": grid.length.total_seconds(), "shift": grid.shift.total_seconds()}
    edges = beats.edges() if beats is not None else None
    return {"edges": [edge.timestamp() for edge in edges]} if edges else {}


def next_due(grid: Grid | None, now: datetime) -> float | None:
    """When the next window ends, in seconds since 1970; until then time alone makes none missing."""
    try:
        return None if grid is None else grid.after(now).astimezone(UTC).timestamp()
    except InvalidWindow:
        return None


def _seconds(duration: timedelta) -> int | float:
    seconds = duration.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds
