"""Collects the earliest and latest event time of each piece of a split while it is read."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from airflow_provider_streams.model.plan.plan import Span, Split
from airflow_provider_streams.model.plan.time_statistics import TimeStatistics

Ints = npt.NDArray[np.int64]

MOST_PIECES: Final = 32
FEWEST_PIECES: Final = 4
PIECE_BYTES: Final = 512 * 1024
"""How many pieces a split has: a receipt stays small, and a piece is worth skipping."""


@dataclass(slots=True)
class _Piece:
    """What is known of the events that begin in `[first, end)` of a run."""

    run: int
    first: int
    end: int
    begin: int | None = None
    """Where its first event begins."""
    earliest: int | None = None
    latest: int | None = None
    unknown: int = 0

    def holds(self, run: int, unit: int) -> bool:
        return self.run == run and self.first <= unit < self.end

    def add(self, begin: int, earliest: int | None, latest: int | None, unknown: int = 0) -> None:
        self.begin = begin if self.begin is None else min(self.begin, begin)
        self.unknown += unknown
        if earliest is not None and latest is not None:
            self.earliest = earliest if self.earliest is None else min(self.earliest, earliest)
            self.latest = latest if self.latest is None else max(self.latest, latest)


@dataclass(frozen=True, slots=True)
class Times:
    """Times of events in whole numbers of a unit."""

    numbers: Ints
    unit: Fraction
    """In microseconds."""


class TimeBounds:
    """Times of one split's events; in any order, by one thread.

    Pieces are laid out ahead, from what the plan says is stored. Each then begins at the first event that was read, so
    no event is in two of them. If the stored units of a split cannot be counted, nothing is kept.
    """

    def __init__(self, split: Split) -> None:
        self._pieces = list(_laid_out(split))
        self._starts = [(piece.run, piece.first) for piece in self._pieces]
        self._current = _Piece(-1, 0, 0)

    def add(self, run: int, unit: int, time_us: int) -> None:
        """Add an event, or several of one time that begin there."""
        if piece := self._piece_at(run, unit):
            piece.add(unit, time_us, time_us)

    def add_unknown(self, run: int, unit: int) -> None:
        """Add an event whose time is not known."""
        if piece := self._piece_at(run, unit):
            piece.add(unit, None, None, 1)

    def add_all(self, runs: Ints, units: Ints, times: Times | None) -> None:
        """Add many events, in the order in which they are stored; None: their times are not known."""
        if not self._pieces or not len(units):
            return
        edges = [0, *(np.flatnonzero(np.diff(runs)) + 1).tolist(), len(runs)]
        for begin, end in pairwise(edges):
            part = None if times is None else Times(times.numbers[begin:end], times.unit)
            self._add_run(int(runs[begin]), units[begin:end], part)

    def merge(self, other: TimeBounds) -> None:
        """Add what was collected elsewhere of the same split."""
        for piece, more in zip(self._pieces, other._pieces, strict=True):
            if more.begin is not None:
                piece.add(more.begin, more.earliest, more.latest, more.unknown)

    def seen(self) -> tuple[TimeStatistics, ...]:
        """What is known of each piece, once all was read."""
        return tuple(
            TimeStatistics(Span(piece.run, piece.first, piece.end), piece.earliest, piece.latest, piece.unknown)
            for piece in _between_events(self._pieces)
        )

    def _piece_at(self, run: int, unit: int) -> _Piece | None:
        if not self._current.holds(run, unit):
            number = bisect_right(self._starts, (run, unit)) - 1
            if number < 0 or not self._pieces[number].holds(run, unit):
                return None
            self._current = self._pieces[number]
        return self._current

    def _add_run(self, run: int, units: Ints, times: Times | None) -> None:
        for piece in self._pieces:
            if piece.run == run and piece.first <= units[-1] and units[0] < piece.end:
                begin, end = np.searchsorted(units, (piece.first, piece.end)).tolist()
                if begin < end:
                    _add_part(piece, int(units[begin]), times, slice(begin, end))


def _add_part(piece: _Piece, begin: int, times: Times | None, part: slice) -> None:
    if times is None:
        piece.add(begin, None, None, part.stop - part.start)
        return
    numbers = times.numbers[part]
    piece.add(begin, math.floor(int(numbers.min()) * times.unit), math.ceil(int(numbers.max()) * times.unit))


def _laid_out(split: Split) -> Iterator[_Piece]:
    """Pieces of about as many units each, none of them in two runs."""
    wanted = min(max(split.bytes // PIECE_BYTES, FEWEST_PIECES), MOST_PIECES)
    step = max(1, -(-(split.entries or 0) // wanted))
    for span in split.spans:
        for first in range(span.first, span.end, step):
            yield _Piece(span.run, first, min(first + step, span.end))


def _between_events(pieces: list[_Piece]) -> Iterator[_Piece]:
    """Pieces that begin and end between two events; those without events join the piece before."""
    last: _Piece | None = None
    for piece in pieces:
        if last is not None and (piece.run, piece.first) == (last.run, last.end):
            if piece.begin is None:
                last = _joined(last, piece.end)
                continue
            yield _joined(last, piece.begin)
            last = _Piece(piece.run, piece.begin, piece.end, None, piece.earliest, piece.latest, piece.unknown)
        else:
            if last is not None:
                yield last
            last = piece
    if last is not None:
        yield last


def _joined(piece: _Piece, end: int) -> _Piece:
    return _Piece(piece.run, piece.first, end, None, piece.earliest, piece.latest, piece.unknown)
