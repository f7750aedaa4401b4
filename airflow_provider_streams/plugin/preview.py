"""What a backfill of a selected span would read, and the command that does it. Nothing is read or changed here."""

from __future__ import annotations

import shlex
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any, Final, Literal, get_args

from airflow_provider_streams.model.coverage import Coverage, State, WindowState
from airflow_provider_streams.model.window import Window

Select = Literal["missing", "failed", "all"]
SELECTS: tuple[Select, ...] = get_args(Select)

CHOSEN: Final[dict[Select, tuple[State, ...]]] = {
    "missing": ("missing", "lost", "failed"),
    "failed": ("failed",),
    "all": ("missing", "lost", "failed", "covered"),
}
"""Which states a backfill reads again; running windows are never touched."""

_NEIGHBOURS = 3


@dataclass(frozen=True, slots=True)
class Preview:
    """What a backfill would do."""

    windows: tuple[WindowState, ...]
    """Those it would read, ordered by time."""
    beyond: int | None
    """How many of them start before the retention horizon; None: the horizon is not known."""
    rows: int | None
    """Estimated from the covered windows beside each; None: there is none."""
    bytes: int | None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        counts: dict[State, int] = {}
        for item in self.windows:
            counts[item.state] = counts.get(item.state, 0) + 1
        return {
            "windows": len(self.windows),
            "counts": counts,
            "beyond_horizon": self.beyond,
            "rows": self.rows,
            "bytes": self.bytes,
        }


def preview(coverage: Coverage, span: Window, select: Select, horizon: datetime | None) -> Preview:
    """Of the windows that lie wholly in `span`."""
    inside = [item for item in coverage.windows if span.start <= item.window.start and item.window.end <= span.end]
    chosen = tuple(item for item in inside if item.state in CHOSEN[select])
    beyond = None if horizon is None else sum(item.window.start < horizon for item in chosen)
    held = [item for item in chosen if horizon is None or item.window.start >= horizon]
    rows, size = _estimate(held, coverage.select("covered"))
    return Preview(chosen, beyond, rows, size)


def _estimate(chosen: Sequence[WindowState], covered: Sequence[WindowState]) -> tuple[int | None, int | None]:
    if not covered:
        return None, None
    starts = [item.window.start for item in covered]
    rows = size = 0.0
    for item in chosen:
        at = bisect_left(starts, item.window.start)
        beside = covered[max(0, at - _NEIGHBOURS) : at + _NEIGHBOURS]
        # windows of another length hold another share of the stream
        shares = [item.window.length / one.window.length for one in beside]
        rows += median(one.rows * share for one, share in zip(beside, shares, strict=True))
        size += median(one.bytes * share for one, share in zip(beside, shares, strict=True))
    return round(rows), round(size)


@dataclass(frozen=True, slots=True)
class SourceName:
    """A source's key, taken apart: `system:connection:name`."""

    system: str
    conn_id: str
    name: str

    @classmethod
    def of(cls, key: str) -> SourceName:
        """From `Source.key`; a name may hold colons, a connection may not."""
        system, _, rest = key.partition(":")
        conn_id, _, name = rest.partition(":")
        return cls(system, conn_id, name)

    @property
    def title(self) -> str:
        """For people: without what every name of the system begins with."""
        return self.name.replace("persistent://", "")


def backfill_command(key: str, reader: str, span: Window, length: timedelta, select: Select) -> str:
    """The command line that fills the span, ready for a shell."""
    source = SourceName.of(key)
    names = source.name.split(",") if source.system == "pulsar" else [source.name]
    words = ["airflow", "streams", "backfill", source.system, *names]
    words += ["--conn-id", source.conn_id, "--reader", reader]
    words += ["--start", _iso(span.start), "--end", _iso(span.end)]
    words += ["--window-length", _duration(length), "--select", select]
    return shlex.join(words)


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _duration(length: timedelta) -> str:
    """`90m`, `1h`, `1d`, or seconds."""
    seconds = length.total_seconds()
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds % size == 0:
            return f"{int(seconds // size)}{unit}"
    return f"{seconds:g}s"
