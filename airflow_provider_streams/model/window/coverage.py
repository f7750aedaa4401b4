"""Coverage: which windows of a span are covered, missing, failed, lost or running. Pure arithmetic."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Literal, Self, TypeVar, get_args

from airflow_provider_streams.model.plan.plan import UNPROVEN
from airflow_provider_streams.model.window.window import Window, utc_text
from airflow_provider_streams.model.window.window_schedule import Every, WindowSchedule

State = Literal["covered", "running", "lost", "failed", "missing"]

STATES: tuple[State, ...] = get_args(State)
"""Strongest first: of two states of one window the earlier one counts."""

Edge = TypeVar("Edge", int, datetime)


@dataclass(frozen=True, slots=True)
class RunRef:
    """The task run that decided a window's state."""

    id: int
    """The journal's number of the run; later runs have greater ones."""
    dag_id: str
    run_id: str
    task_id: str
    try_number: int
    map_index: int = -1
    """-1: not a mapped task."""
    started: datetime | None = None
    finished: datetime | None = None

    def __str__(self) -> str:
        return f"{self.dag_id}.{self.task_id} {self.run_id} try {self.try_number}"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, times in ISO 8601."""
        return {**asdict(self), "started": _iso(self.started), "finished": _iso(self.finished)}


@dataclass(frozen=True, slots=True)
class WindowState:
    """One window and what became of it."""

    window: Window
    state: State
    rows: int = 0
    """Rows its covering run gave to the sink; 0 unless covered."""
    bytes: int = 0
    """Payload bytes of those rows."""
    cause: str = ""
    """Why it is failed, lost, running or missing; `loss recorded` for a covered one that accepted a loss."""
    fingerprint: str = ""
    """Of its pinned plan; empty: never planned."""
    attempts: int = 0
    """Runs of this window so far, whatever became of them."""
    run: RunRef | None = None
    skew_seconds: tuple[float, float] | None = None
    """How much later than the window's start and end its recorded cuts were sampled (basis `append`)."""
    late_rows: int | None = None
    """Rows of the window that appeared after it was read, by the last recount; None: never recounted."""
    verdict: str = ""
    """Of its covering run: `complete`, `loss recorded` or `unproven`; empty unless covered."""
    quarantined: int = 0
    """Its events that could not be decoded, and are in quarantine; 0 unless covered."""
    dropped: int = 0
    """Its events that could not be decoded, and were left out; 0 unless covered."""
    written: int | None = None
    """Its rows in the table, as they were counted when it was put in place; None unless covered, or not counted."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            **self.window.to_json(),
            **{name: getattr(self, name) for name in _PLAIN},
            "run": self.run.to_json() if self.run else None,
            "skew_seconds": list(self.skew_seconds) if self.skew_seconds else None,
        }

    @property
    def is_with_rows(self) -> bool:
        """Whether the table got rows of it."""
        return bool(self.rows if self.written is None else self.written)

    @property
    def _strength(self) -> tuple[object, ...]:
        """Total, so that the order in which windows come never decides."""
        latest = self.run.id if self.run else 0
        totals = (self.rows, self.bytes, self.attempts)
        return (-STATES.index(self.state), latest, *totals, self.cause, self.fingerprint)


_TOTALS = ("rows", "bytes", "late_rows", "quarantined", "dropped")
_PLAIN = ("state", "cause", "fingerprint", "attempts", "verdict", *_TOTALS)


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two windows that share time: events in `span` are in the tables of both."""

    first: Window
    second: Window

    @property
    def span(self) -> Window:
        """The time they share."""
        return Window(max(self.first.start, self.second.start), min(self.first.end, self.second.end))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"first": self.first.to_json(), "second": self.second.to_json(), "span": self.span.to_json()}


@dataclass(frozen=True)
class Coverage:
    """The windows of one reader and source that touch `span`, ordered by start; build it with `of`."""

    span: Window
    windows: tuple[WindowState, ...]

    @classmethod
    def of(
        cls,
        windows: Iterable[WindowState],
        start: datetime,
        end: datetime,
        window_schedule: WindowSchedule | timedelta | None = None,
    ) -> Self:
        """From the known windows, in any order; those that do not touch `[start, end)` are left out.

        A window given twice counts once, in its strongest state (`STATES`). One that was not read is left out if
        covered windows hold all of its time: there is nothing left to read of it. Time that belongs to no known window
        becomes `missing` windows. With a window schedule, these are its whole cells between `start` and `end`. With a
        length, they are windows of that length from `start` on. Without either, each blank stretch is one.

        Raises:
            InvalidWindow: `end` is not after `start`, a naive time, or a length that is not positive.
        """
        span = Window(start, end)
        cells = (
            Every.through(window_schedule, span.start) if isinstance(window_schedule, timedelta) else window_schedule
        )
        known: dict[Window, WindowState] = {}
        for item in windows:
            if item.window.overlaps(span):
                before = known.get(item.window)
                if before is None or item._strength > before._strength:  # noqa: SLF001 - its own module's value
                    known[item.window] = item
        open_ = _still_open(known.values())
        blanks = _complement(span, _union(span, (item.window for item in open_)))
        edges = {edge for item in open_ for edge in (item.window.start, item.window.end)}
        missing = (WindowState(piece, "missing") for blank in blanks for piece in _pieces(span, blank, cells, edges))
        return cls(span, tuple(sorted([*open_, *missing], key=lambda item: item.window)))

    @cached_property
    def counts(self) -> dict[State, int]:
        """Windows by state, every state named."""
        counted = Counter(item.state for item in self.windows)
        return {state: counted[state] for state in STATES}

    @cached_property
    def totals(self) -> dict[str, int]:
        """Rows, payload bytes, late rows, and quarantined and dropped events of all covered windows, by name."""
        return {name: sum(getattr(item, name) or 0 for item in self.windows) for name in _TOTALS}

    @cached_property
    def covered(self) -> tuple[Window, ...]:
        """The covered time inside `span`, merged: together with `gaps` it is exactly `span`."""
        return tuple(_union(self.span, (item.window for item in self.windows if item.state == "covered")))

    @cached_property
    def gaps(self) -> tuple[Window, ...]:
        """The time inside `span` that no covered window holds, merged."""
        return tuple(_complement(self.span, self.covered))

    @cached_property
    def overlaps(self) -> tuple[Overlap, ...]:
        """Every pair of covered or running windows that share time, for example hourly ones and then a daily one."""
        return tuple(_overlaps([item.window for item in self.windows if item.state in ("covered", "running")]))

    @property
    def unproven(self) -> tuple[WindowState, ...]:
        """The covered windows that may lack events removed before the source was first observed."""
        return tuple(item for item in self.windows if item.verdict == UNPROVEN)

    @property
    def next_missing(self) -> Window | None:
        """The earliest window that no run has tried to read yet."""
        return next((item.window for item in self.windows if item.state == "missing"), None)

    def missed_by(self, held: Collection[Window], *, tells_empty: bool = True) -> tuple[Window, ...]:
        """Covered windows that a table of these windows lacks, except for time that a chain read with a later window.

        Args:
            held: the table's windows.
            tells_empty: whether these include windows that landed without rows.
        """
        landed = (item for item in self.select("covered") if item.run is not None)
        expected = (item.window for item in landed if tells_empty or item.is_with_rows)
        return tuple(window for window in expected if window not in held)

    def without(self, windows: Collection[Window], cause: str) -> Self:
        """The same, where these covered windows have failed, for a cause that the journal does not know.

        Time that a chain read with one of them has failed as well.
        """
        gone = frozenset(windows)
        read = {item.fingerprint for item in self.select("covered") if item.window in gone and item.run is not None}

        def failed(item: WindowState) -> WindowState:
            is_gone = item.window in gone or (item.run is None and item.fingerprint in read)
            if item.state != "covered" or not is_gone:
                return item
            tried = (item.fingerprint, item.attempts, item.run, item.skew_seconds)
            return WindowState(item.window, "failed", 0, 0, cause, *tried)

        return type(self)(self.span, tuple(map(failed, self.windows)))

    @property
    def is_complete(self) -> bool:
        """All of `span` is covered."""
        return not self.gaps

    def beyond(self, horizon: datetime) -> tuple[WindowState, ...]:
        """The windows that are not covered and start before the oldest time the stream can still serve."""
        return tuple(item for item in self.windows if item.state != "covered" and item.window.start < horizon)

    def select(self, *states: State) -> tuple[WindowState, ...]:
        """The windows in any of these states, in order of time."""
        return tuple(item for item in self.windows if item.state in states)

    def to_json(self, *, horizon: datetime | None = None) -> dict[str, Any]:
        """Plain JSON values: span, counts, totals, windows, gaps, overlaps, next missing window.

        Args:
            horizon: the oldest time the stream can still serve; counts the unread windows that start before it.
        """
        return {
            **self.span.to_json(),
            "counts": dict(self.counts),
            **self.totals,
            "unproven": len(self.unproven),
            "horizon": _iso(horizon),
            "beyond_horizon": None if horizon is None else len(self.beyond(horizon)),
            "windows": [item.to_json() for item in self.windows],
            "gaps": [gap.to_json() for gap in self.gaps],
            "overlaps": [overlap.to_json() for overlap in self.overlaps],
            "next_missing": self.next_missing.to_json() if self.next_missing else None,
        }


def merged(spans: Iterable[tuple[Edge, Edge]]) -> Iterator[tuple[Edge, Edge]]:
    """Spans in order of their starts, those that touch or overlap as one."""
    last: tuple[Edge, Edge] | None = None
    for start, end in spans:
        if last is not None and start <= last[1]:
            last = last[0], max(last[1], end)
            continue
        if last is not None:
            yield last
        last = start, end
    if last is not None:
        yield last


def stretches(windows: Iterable[Window]) -> list[Window]:
    """Windows in order of time, those that touch or overlap as one."""
    return [Window(start, end) for start, end in merged((one.start, one.end) for one in sorted(windows))]


def held_by(windows: Iterable[Window]) -> Callable[[Window], bool]:
    """Tells of a window whether these windows together hold all of it."""
    held = stretches(windows)
    starts = [one.start for one in held]

    def is_held(window: Window) -> bool:
        at = bisect_right(starts, window.start) - 1
        return at >= 0 and held[at].holds(window)

    return is_held


def _union(span: Window, windows: Iterable[Window]) -> Iterator[Window]:
    """The windows' parts inside the span, merged where they touch, in order."""
    for one in stretches(windows):
        if one.overlaps(span):
            yield Window(max(one.start, span.start), min(one.end, span.end))


def _complement(span: Window, merged: Iterable[Window]) -> Iterator[Window]:
    """What merged, ordered windows leave of the span."""
    at = span.start
    for window in merged:
        if window.start > at:
            yield Window(at, window.start)
        at = window.end
    if at < span.end:
        yield Window(at, span.end)


def _still_open(items: Collection[WindowState]) -> list[WindowState]:
    """Without those that were not read, and whose time is all in covered ones."""
    is_held = held_by(item.window for item in items if item.state == "covered")
    return [item for item in items if item.state in ("covered", "running") or not is_held(item.window)]


def _pieces(
    span: Window, blank: Window, window_schedule: WindowSchedule | None, edges: Collection[datetime]
) -> Iterator[Window]:
    """A blank as windows: the cells of the span.

    What known windows of another window schedule leave of one is its own window.
    """
    if window_schedule is None:
        yield blank
        return
    touching = window_schedule.around(blank)
    for cell in window_schedule.cells(max(touching.start, span.start), min(touching.end, span.end)):
        start, end = max(cell.start, blank.start), min(cell.end, blank.end)
        if (start == cell.start or start in edges) and (end == cell.end or end in edges):
            yield Window(start, end)


def _overlaps(windows: list[Window]) -> Iterator[Overlap]:
    """Pairs in order of time; the work grows with the number of pairs, not with all combinations."""
    for index, first in enumerate(windows):
        for second in windows[index + 1 :]:
            if second.start >= first.end:
                break
            yield Overlap(first, second)


def _iso(moment: datetime | None) -> str | None:
    return utc_text(moment) if moment else None
