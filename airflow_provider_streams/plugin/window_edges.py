"""The edges of a reader's window schedule in a stretch of time, ready to be counted. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from airflow_provider_streams.errors import InvalidWindow
from airflow_provider_streams.model.window.window import Window, microseconds_of
from airflow_provider_streams.model.window.window_schedule import Every, WindowSchedule

MOST_EDGES: Final = 2_000
"""So many edges of a calendar or a cron expression are looked up; beyond that their mean distance is taken."""
_US = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Listed(WindowSchedule):
    """A window schedule's cells in a stretch of time, looked up once: each edge of a cron expression takes a while."""

    edges: Sequence[datetime]

    def __str__(self) -> str:
        return f"{len(self.edges)} edges"

    def before(self, moment: datetime) -> datetime:
        """See `WindowSchedule`."""
        return self._edge(bisect_right(self.edges, moment) - 1, moment)

    def after(self, moment: datetime) -> datetime:
        """See `WindowSchedule`."""
        return self._edge(bisect_right(self.edges, moment), moment)

    def _edge(self, number: int, moment: datetime) -> datetime:
        if not 0 <= number < len(self.edges):
            raise InvalidWindow(f"{moment.isoformat()} is outside of the edges that were looked up")
        return self.edges[number]


@dataclass(frozen=True, slots=True)
class Cells:
    """How the windows of a reader tile a stretch of time that begins and ends at an edge."""

    stretch: Window
    window_schedule: WindowSchedule
    """Holds in the stretch."""
    ticks: Sequence[int]
    """The edges in microseconds since 1970, at least up to the stretch's end."""
    is_exact: bool = True
    """Otherwise the ticks only show how many edges there are, roughly."""

    @property
    def count(self) -> int:
        """How many cells the stretch has."""
        return self.first(microseconds_of(self.stretch.end))

    def first(self, us: int) -> int:
        """The number of the first edge at or after a time in the stretch, in microseconds since 1970."""
        return bisect_left(self.ticks, us)

    def edges(self) -> list[datetime] | None:
        """All of them, where they are few and not of one distance."""
        return list(self.window_schedule.edges) if isinstance(self.window_schedule, Listed) else None


def cells_of(window_schedule: WindowSchedule, stretch: Window) -> Cells:
    """The cells in a stretch of whole ones."""
    if isinstance(window_schedule, Every):
        return Cells(stretch, window_schedule, _even_ticks(stretch, window_schedule.length))
    edges = [stretch.start]
    # one more than needed: it is the end of the cell at the stretch's end
    while edges[-1] <= stretch.end and len(edges) <= MOST_EDGES:
        edges.append(window_schedule.after(edges[-1]))
    if edges[-1] > stretch.end:
        return Cells(stretch, Listed(edges), [microseconds_of(edge) for edge in edges])
    mean = (edges[-1] - edges[0]) / (len(edges) - 1)
    return Cells(stretch, window_schedule, _even_ticks(stretch, mean), is_exact=False)


def _even_ticks(stretch: Window, length: timedelta) -> range:
    step = max(1, length // _US)
    return range(microseconds_of(stretch.start), microseconds_of(stretch.end) + step, step)


def ended(window_schedule: WindowSchedule, span: Window, since: datetime, now: datetime) -> Window | None:
    """The cells that touch a span, hold or follow a reader's first window, and have ended; None: there is none.

    Raises:
        InvalidWindow: the window schedule does not reach so far.
    """
    first, last = window_schedule.before(max(span.start, since)), window_schedule.before(now)
    if span.end < now:
        last = min(window_schedule.around(span).end, last)
    return Window(first, last) if last > first else None


def snap(window_schedule: WindowSchedule | None, span: Window) -> Window:
    """A span, widened to whole cells; without a window schedule, or where it does not reach so far, as it is."""
    if window_schedule is None:
        return span
    try:
        return window_schedule.around(span)
    except InvalidWindow:
        return span
