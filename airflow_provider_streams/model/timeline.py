"""Coverage drawn as text: one cell per window, so that a log or a terminal shows the gaps at a glance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Final

from airflow_provider_streams.model.coverage import Coverage, State, WindowState
from airflow_provider_streams.model.window import Window

MARKS: Final[dict[State, str]] = {"covered": "##", "missing": "..", "lost": "!!", "failed": "xx", "running": "~~"}

DOUBTS: Final = {"unproven": "#?", "loss recorded": "#!"}
"""Covered ones of these verdicts."""
_WHY: Final = {
    "unproven": "nobody can say whether events were removed before anybody looked",
    "loss recorded": "events were gone, and that was accepted",
}

_MARGIN = 16
_CAUSES = 10
_CAUSE_WIDTH = 200
_DAY = timedelta(days=1)
_NOTABLE_SKEW_SECONDS = 60.0


def draw(coverage: Coverage, title: str = "", *, horizon: datetime | None = None, width: int = 100) -> str:
    """The picture for logs and terminals, times in UTC; windows that overlap earlier ones stand in lines of their own.

    Args:
        coverage: what is drawn.
        title: a line above it, usually the source.
        horizon: the oldest time the stream can still serve; draws which windows can still be read.
        width: characters per line before the timeline wraps.
    """
    lines = [title] if title else []
    for layer in _layers(coverage.windows):
        lines.extend(_timeline(layer, horizon, width))
    lines.append(_summary(coverage))
    if horizon is not None:
        lines.append(f"oldest time the stream still serves: {horizon.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}")
    lines.extend(_causes(coverage.select("failed", "lost")))
    lines.extend(_moved(coverage.windows))
    lines.extend(_doubtful(coverage))
    lines.extend(_late(coverage))
    lines.extend(_undecodable(coverage))
    doubts = {verdict: mark for verdict, mark in DOUBTS.items() if _having(coverage, verdict)}
    marks: dict[str, str] = dict(MARKS.items()) | doubts
    lines.append("  ".join(f"{mark} {name}" for name, mark in marks.items()))
    return "\n".join(lines)


def _layers(windows: Iterable[WindowState]) -> list[list[WindowState]]:
    """Windows shared out so that those of one layer do not overlap."""
    layers: list[list[WindowState]] = []
    for item in windows:
        for layer in layers:
            if layer[-1].window.end <= item.window.start:
                layer.append(item)
                break
        else:
            layers.append([item])
    return layers


def _timeline(layer: Sequence[WindowState], horizon: datetime | None, width: int) -> Iterator[str]:
    heading, label = _formats([item.window for item in layer])
    cell = len(layer[0].window.start.strftime(label)) + 2
    room = max(1, (width - _MARGIN) // cell)
    held_before = False
    for block in _blocks(layer, heading, room):
        yield _line(
            block[0].window.start.strftime(heading), [item.window.start.strftime(label) for item in block], cell
        )
        yield _line("read", [DOUBTS.get(item.verdict, MARKS[item.state]) for item in block], cell)
        if horizon is not None:
            held = [item.window.start >= horizon for item in block]
            yield _line("retention", _retention(held, cell, begins=not held_before), cell)
            held_before = held_before or any(held)


def _line(name: str, cells: Iterable[str], cell: int) -> str:
    return (f" {name:<{_MARGIN - 1}}" + "".join(f"{text:<{cell}}" for text in cells)).rstrip()


def _retention(held: Sequence[bool], cell: int, *, begins: bool) -> Iterator[str]:
    """An unbroken line under the windows that can still be read, beginning at the oldest one."""
    for readable in held:
        if readable and begins:
            yield "|<".ljust(cell, "-")
            begins = False
        else:
            yield "-" * cell if readable else ""


def _formats(windows: Sequence[Window]) -> tuple[str, str]:
    """How a block and its cells are labelled: days within years, or times within days."""
    starts = [window.start for window in windows]
    if all(start.time() == time.min and window.length >= _DAY for start, window in zip(starts, windows, strict=True)):
        return "%Y", "%m-%d"
    if all(start.minute == start.second == start.microsecond == 0 for start in starts):
        return "%Y-%m-%d", "%H"
    if all(start.second == start.microsecond == 0 for start in starts):
        return "%Y-%m-%d", "%H:%M"
    return "%Y-%m-%d", "%H:%M:%S"


def _blocks(layer: Sequence[WindowState], heading: str, room: int) -> Iterator[list[WindowState]]:
    """Pieces of at most `room` windows under one heading."""
    block: list[WindowState] = []
    under = ""
    for item in layer:
        name = item.window.start.strftime(heading)
        if block and (len(block) == room or name != under):
            yield block
            block = []
        under = name
        block.append(item)
    if block:
        yield block


def _summary(coverage: Coverage) -> str:
    counts = coverage.counts
    parts = [f"covered {counts['covered']} of {len(coverage.windows)}"]
    parts += [f"{state} {counts[state]}" for state in ("running", "failed", "lost") if counts[state]]
    parts.append(f"missing {counts['missing']}" if counts["missing"] else "missing none")
    if coverage.next_missing:
        parts[-1] += f", next {coverage.next_missing}"
    overlaps = coverage.overlaps
    parts.append(f"overlap {len(overlaps)}, first {overlaps[0].span}" if overlaps else "overlap none")
    parts.append(f"{coverage.rows:,} rows")
    return "   ".join(parts)


def _causes(windows: Sequence[WindowState]) -> Iterator[str]:
    for item in windows[:_CAUSES]:
        cause = " ".join(item.cause.split()) or "no cause recorded"
        if len(cause) > _CAUSE_WIDTH:
            cause = f"{cause[:_CAUSE_WIDTH]}.."
        yield f"{MARKS[item.state]} {item.window}: {cause}"
    if len(windows) > _CAUSES:
        yield f"and {len(windows) - _CAUSES} more failed or lost windows"


def _having(coverage: Coverage, verdict: str) -> list[WindowState]:
    return [item for item in coverage.windows if item.verdict == verdict]


def _doubtful(coverage: Coverage) -> Iterator[str]:
    """Covered windows that may, or do, lack something."""
    for verdict, mark in DOUBTS.items():
        found = _having(coverage, verdict)
        for item in found[:_CAUSES]:
            yield f"{mark} {item.window}: {verdict}: {_WHY[verdict]}"
        if len(found) > _CAUSES:
            yield f"and {len(found) - _CAUSES} more windows with the verdict {verdict}"


def _late(coverage: Coverage) -> Iterator[str]:
    """Windows that would hold more rows if they were read again."""
    late = [item for item in coverage.windows if item.late_rows]
    for item in late[:_CAUSES]:
        yield f"++ {item.window}: {item.late_rows:,} rows appeared after it was read"
    if len(late) > _CAUSES:
        yield f"and {len(late) - _CAUSES} more windows with late rows, {coverage.late_rows:,} rows in all"


def _undecodable(coverage: Coverage) -> Iterator[str]:
    """Covered windows with events that are no rows, for they could not be decoded."""
    found = [item for item in coverage.windows if item.quarantined or item.dropped]
    for item in found[:_CAUSES]:
        yield f"?? {item.window}: {undecodable_words(item.quarantined, item.dropped)}"
    if len(found) > _CAUSES:
        both = undecodable_words(coverage.quarantined, coverage.dropped)
        yield f"and {len(found) - _CAUSES} more windows with events that could not be decoded, in all {both}"


def undecodable_words(quarantined: int, dropped: int) -> str:
    """What became of events that could not be decoded."""
    parts = [f"{quarantined:,} quarantined"] if quarantined or not dropped else []
    if dropped:
        parts.append(f"{dropped:,} dropped")
    return f"{' and '.join(parts)}: they could not be decoded"


def _moved(windows: Iterable[WindowState]) -> Iterator[str]:
    """Windows whose edges lie notably later than they say: nobody recorded cuts then."""
    moved = [
        (item, item.skew_seconds)
        for item in windows
        if item.skew_seconds and max(item.skew_seconds) > _NOTABLE_SKEW_SECONDS
    ]
    for item, (start, end) in moved[:_CAUSES]:
        yield f">> {item.window}: start moved by {start:+.1f} s, end by {end:+.1f} s: no cut was recorded earlier"
    if len(moved) > _CAUSES:
        yield f"and {len(moved) - _CAUSES} more windows with moved edges"
