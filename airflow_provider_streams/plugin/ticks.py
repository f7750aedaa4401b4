"""The edges of a reader's grid in a stretch of time, ready to be counted. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from airflow_provider_streams.errors import InvalidWindow
from airflow_provider_streams.model.grid import Every, Grid
from airflow_provider_streams.model.window import EPOCH, Window

MOST_EDGES: Final = 2_000
"""So many edges of a calendar or a cron expression are looked up; beyond that their mean distance is taken."""
_US = timedelta(microseconds=1)


class Ticks(Protocol):
    """Edges by their number, in microseconds since 1970."""

    def first(self, us: int) -> int:
        """The number of the first edge at or after a time."""

    def at(self, number: int) -> int:
        """The edge of a number."""


@dataclass(frozen=True, slots=True)
class EvenTicks:
    """Edges of one distance."""

    begin: int
    length: int

    def first(self, us: int) -> int:
        """See `Ticks`."""
        return -((self.begin - us) // self.length)

    def at(self, number: int) -> int:
        """See `Ticks`."""
        return self.begin + number * self.length


@dataclass(frozen=True, slots=True)
class ListedTicks:
    """Edges one by one."""

    edges: tuple[int, ...]

    def first(self, us: int) -> int:
        """See `Ticks`."""
        return bisect_left(self.edges, us)

    def at(self, number: int) -> int:
        """See `Ticks`; behind the last one, the last one."""
        return self.edges[min(number, len(self.edges) - 1)]


@dataclass(frozen=True, slots=True)
class Listed(Grid):
    """A grid's cells in a stretch of time, looked up once: a cron expression takes its time for each."""

    edges: Sequence[datetime]

    def __str__(self) -> str:
        return f"{len(self.edges)} edges"

    def before(self, moment: datetime) -> datetime:
        """See `Grid`."""
        return self._edge(bisect_right(self.edges, moment) - 1, moment)

    def after(self, moment: datetime) -> datetime:
        """See `Grid`."""
        return self._edge(bisect_right(self.edges, moment), moment)

    def _edge(self, number: int, moment: datetime) -> datetime:
        if not 0 <= number < len(self.edges):
            raise InvalidWindow(f"{moment.isoformat()} is outside of the edges that were looked up")
        return self.edges[number]


@dataclass(frozen=True, slots=True)
class Beat:
    """How the windows of a reader tile a stretch of time that begins and ends at an edge."""

    stretch: Window
    grid: Grid
    """Holds in the stretch."""
    ticks: Ticks
    is_exact: bool = True
    """Otherwise the ticks only tell how many edges there are, roughly."""

    @property
    def cells(self) -> int:
        """How many cells the stretch has."""
        return self.ticks.first(to_us(self.stretch.end)) - self.ticks.first(to_us(self.stretch.start))

    def edges(self) -> list[datetime] | None:
        """All of them, where they are few and not of one distance."""
        return list(self.grid.edges) if isinstance(self.grid, Listed) else None


def beat(grid: Grid, stretch: Window) -> Beat:
    """The edges in a stretch of whole cells."""
    if isinstance(grid, Every):
        return Beat(stretch, grid, EvenTicks(to_us(stretch.start), grid.length // _US))
    edges = [stretch.start]
    # one more than needed: who asks for the cell at the end finds that it ends later
    while edges[-1] <= stretch.end and len(edges) <= MOST_EDGES:
        edges.append(grid.after(edges[-1]))
    if edges[-1] > stretch.end:
        return Beat(stretch, Listed(edges), ListedTicks(tuple(map(to_us, edges))))
    mean = (edges[-1] - edges[0]) / (len(edges) - 1)
    return Beat(stretch, grid, EvenTicks(to_us(stretch.start), max(1, mean // _US)), is_exact=False)


def ended(grid: Grid, span: Window, since: datetime, now: datetime) -> Window | None:
    """The cells that touch a span, hold or follow a reader's first window, and have ended; None: there is none.

    Raises:
        InvalidWindow: the grid does not reach so far.
    """
    first = grid.before(max(span.start, since))
    last = grid.before(now) if span.end >= now else min(_up(grid, span.end), grid.before(now))
    return Window(first, last) if last > first else None


def snap(grid: Grid | None, span: Window) -> Window:
    """A span, widened to whole cells; without a grid, or where it does not reach so far, as it is."""
    if grid is None:
        return span
    try:
        return grid.around(span)
    except InvalidWindow:
        return span


def to_us(moment: datetime) -> int:
    """Microseconds since 1970, exactly."""
    return (moment - EPOCH) // _US


def of_us(us: int) -> datetime:
    """The reverse of `to_us`."""
    return EPOCH + us * _US


def _up(grid: Grid, moment: datetime) -> datetime:
    last = grid.before(moment)
    return last if last == moment else grid.after(moment)
