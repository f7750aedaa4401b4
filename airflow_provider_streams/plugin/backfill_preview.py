"""What a backfill of a selected span would read, estimated. Nothing is read or changed here. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import median
from typing import Any, Final

from airflow_provider_streams.journal.coverage_rollup import Piece
from airflow_provider_streams.model.window.backfill import Select, Selection
from airflow_provider_streams.model.window.coverage import RunRef, State, WindowState
from airflow_provider_streams.model.window.window import Window, earlier, later

NEIGHBORHOOD: Final = timedelta(days=7)
_NEIGHBORS = 3
_ANY_RUN = RunRef(0, "", "", "", 1)


@dataclass(frozen=True, slots=True)
class PagePreview:
    """What a backfill would do."""

    pieces: tuple[Piece, ...]
    """The windows that it would read, ordered by time."""
    beyond: int | None
    """How many of them start before the retention horizon; None: the horizon is not known."""
    rows: int | None
    """Estimated from the covered windows around each; None: there is none."""
    bytes: int | None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        counts: Counter[State] = Counter()
        for piece in self.pieces:
            counts[piece.state] += piece.windows
        return {
            "windows": counts.total(),
            "counts": counts,
            "beyond_horizon": self.beyond,
            "rows": self.rows,
            "bytes": self.bytes,
        }


def preview(inside: Sequence[Piece], nearby: Sequence[Piece], select: Select, horizon: datetime | None) -> PagePreview:
    """Of windows that are wholly in a span; those that are being read are left to their tasks.

    Args:
        inside: the span's windows, in order of time.
        nearby: those and the windows around the span.
        select: which of them.
        horizon: the oldest time the stream can still serve; None: not known.
    """
    chosen = tuple(taken for piece in inside if (taken := _taken(piece, select)).windows)
    held = [_held(piece, horizon) for piece in chosen]
    beyond = sum(piece.windows for piece in chosen) - sum(piece.windows for piece in held)
    covered = [one for one in nearby if one.state == "covered"]
    rows, size = _estimate([piece for piece in held if piece.windows], covered)
    return PagePreview(chosen, None if horizon is None else beyond, rows, size)


def around(span: Window) -> Window:
    """A span and its surroundings, which show how much it may hold."""
    return Window(earlier(span.start, NEIGHBORHOOD), later(span.end, NEIGHBORHOOD))


def _taken(piece: Piece, select: Select) -> Piece:
    """What is chosen of a piece, by the rule of the backfill itself."""
    run = _ANY_RUN if piece.attempts else None
    item = WindowState(piece.window, piece.state, attempts=piece.attempts, run=run, late_rows=piece.late_rows or None)
    if not Selection(frozenset({select}), is_alive=lambda _run: True).takes(item):
        return _share(piece, 0)
    return _share(piece, piece.late) if select == "late" and piece.state == "covered" else piece


def _held(piece: Piece, horizon: datetime | None) -> Piece:
    """What of a piece starts after the horizon; of several windows, by their share of time."""
    if horizon is None or piece.window.start >= horizon:
        return piece
    if piece.windows == 1 or piece.window.end <= horizon:
        return _share(piece, 0)
    return _share(piece, int(piece.windows * ((piece.window.end - horizon) / piece.window.length)))


def _share(piece: Piece, windows: int) -> Piece:
    return replace(piece, windows=windows, seconds=piece.seconds * windows / piece.windows)


def _estimate(chosen: Sequence[Piece], covered: Sequence[Piece]) -> tuple[int | None, int | None]:
    """From the rows per second of the covered windows around each."""
    if not covered:
        return None, None
    starts = [piece.window.start for piece in covered]
    rows = size = 0.0
    for piece in chosen:
        at = bisect_left(starts, piece.window.start)
        near = covered[max(0, at - _NEIGHBORS) : at + _NEIGHBORS]
        rows += piece.seconds * median(one.rows / one.seconds for one in near)
        size += piece.seconds * median(one.bytes / one.seconds for one in near)
    return round(rows), round(size)
