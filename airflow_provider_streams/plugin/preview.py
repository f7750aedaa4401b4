"""What a backfill of a selected span would read, and the command that does it. Nothing is read or changed here."""

from __future__ import annotations

import shlex
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

from airflow_provider_streams.model.backfill import Select, Selection
from airflow_provider_streams.model.basis import default_basis
from airflow_provider_streams.model.coverage import Coverage, State, WindowState
from airflow_provider_streams.model.source import PravegaSource, PulsarSource, Source
from airflow_provider_streams.model.window import Window

_NEIGHBOURS = 3
_REPEATABLE = ("publish", "append", "event")
"""Bases whose windows can be read in any order."""


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
    """Of the windows that lie wholly in `span`; those that are being read are left to their tasks."""
    chosen = Selection(frozenset({select}), is_alive=lambda _run: True).of(coverage, span)
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
        return self.name.removeprefix("pattern:").replace("persistent://", "")


def backfill_command(
    source: Source, reader: str, span: Window, length: timedelta, select: Select, *, basis: str | None = None
) -> str | None:
    """The command that previews filling the span, ready for a shell, an option a line.

    It ends in `--dry-run`, because where the rows go only the DAG's author knows. None: windows of this basis follow
    one on another, or are the user's own positions; no backfill can read them.
    """
    if basis is not None and basis not in _REPEATABLE:
        return None
    pattern = source.pattern if isinstance(source, PulsarSource) else None
    lines = [["airflow", "streams", "backfill", source.system], ["--pattern", pattern] if pattern else _names(source)]
    if isinstance(source, PravegaSource) and source.event_time_unit != "ms":
        lines += [["--event-time-unit", source.event_time_unit]]
    lines += [["--conn-id", source.conn_id], ["--reader", reader]]
    lines += [["--start", _iso(span.start)], ["--end", _iso(span.end)]]
    lines += [["--window-length", _duration(length)], ["--select", select]]
    if basis is not None and basis != default_basis(source.system):
        lines += [["--basis", basis]]
    if select == "lost":
        lines += [["--on-loss", "record"]]
    return " \\\n  ".join(shlex.join(words) for words in [*lines, ["--dry-run"]])


def _names(source: Source) -> list[str]:
    return list(source.topics) if isinstance(source, PulsarSource) else [str(source)]


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _duration(length: timedelta) -> str:
    """`90m`, `1h`, `1d`, or seconds."""
    seconds = length.total_seconds()
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds % size == 0:
            return f"{int(seconds // size)}{unit}"
    return f"{seconds:g}s"
