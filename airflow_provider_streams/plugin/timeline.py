"""One reader's windows as columns: what the page draws thousands of, without an object for each."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from airflow_provider_streams.model.coverage import STATES, Coverage, WindowState
from airflow_provider_streams.model.window import Window

FINGERPRINT_LENGTH: Final = 12
"""Hex digits of a fingerprint that people see."""
CAUSE_LENGTH: Final = 300
MOST_BLANKS: Final = 20_000
"""Blank time is not cut into more windows than this."""


def coverage_of(
    known: Iterable[WindowState], span: Window, beat: Window | None, since: datetime | None, now: datetime
) -> Coverage:
    """The known windows that touch a span, and the missing ones between and after them.

    Args:
        known: what the journal knows.
        span: what is looked at.
        beat: any window of the reader's usual length: missing windows lie on its grid. None: none is missing.
        since: when the reader's first window started; None: none is missing.
        now: no window that ends later is missing yet.
    """
    windows = [item for item in known if item.window.start < span.end and item.window.end > span.start]
    if beat is not None and since is not None:
        windows += _missing(windows, span, beat, since, now)
    return Coverage(span, tuple(sorted(windows, key=lambda item: item.window)))


def _missing(
    windows: list[WindowState], span: Window, beat: Window, since: datetime, now: datetime
) -> list[WindowState]:
    """Windows of the grid that nobody planned or tried."""
    start = on_grid(max(span.start, since), beat)
    start += beat.length if start < since else timedelta(0)
    end = on_grid(min(span.end, now), beat)
    if end <= start:
        return []
    length = beat.length if (end - start) / beat.length <= MOST_BLANKS else None
    known = {item.window for item in windows}
    return [item for item in Coverage.of(windows, start, end, length).select("missing") if item.window not in known]


def on_grid(moment: datetime, beat: Window) -> datetime:
    """The last start of a window on `beat`'s grid that is not after the moment."""
    return beat.start + (moment - beat.start) // beat.length * beat.length


def columns(coverage: Coverage) -> dict[str, Any]:
    """Parallel arrays, one element per window, in order of time.

    `start` and `length` are in seconds (`start` since the span's start), `state` and `cause` are indexes into
    `states` and `causes`.
    """
    causes: dict[str, int] = {"": 0}
    zero = coverage.span.start
    windows = coverage.windows
    cause = [causes.setdefault(item.cause[:CAUSE_LENGTH], len(causes)) for item in windows]
    return {
        "zero": zero.timestamp(),
        "states": STATES,
        "causes": list(causes),
        "start": [_seconds(item.window.start - zero) for item in windows],
        "length": [_seconds(item.window.length) for item in windows],
        "state": [STATES.index(item.state) for item in windows],
        "rows": [item.rows for item in windows],
        "bytes": [item.bytes for item in windows],
        "late": [item.late_rows or 0 for item in windows],
        "attempts": [item.attempts for item in windows],
        "cause": cause,
        "fingerprint": [item.fingerprint[:FINGERPRINT_LENGTH] for item in windows],
    }


def next_due(beat: Window | None, now: datetime) -> float | None:
    """When the next window ends, in seconds since 1970; until then time alone makes none missing."""
    if beat is None:
        return None
    return (on_grid(now, beat) + beat.length).astimezone(UTC).timestamp()


def _seconds(duration: timedelta) -> int | float:
    seconds = duration.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds
