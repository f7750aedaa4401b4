"""Coverage drawn as text: one cell per window, so that a log or a terminal shows the gaps at a glance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Final, TypeVar

from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.model.window.coverage import Coverage, State, WindowState
from airflow_provider_streams.model.window.window import Window

MARKS: Final[dict[State, str]] = {"covered": "##", "missing": "..", "lost": "!!", "failed": "xx", "running": "~~"}

DOUBTS: Final = {"unproven": "#?", "loss recorded": "#!"}
"""Covered ones of these verdicts."""
_WHY: Final = {
    "unproven": "events may have been removed before the source was first observed",
    "loss recorded": "events were gone, and that was accepted",
}

_MARGIN = 16
_CAUSES = 10
_CAUSE_WIDTH = 200
_DAY = timedelta(days=1)
_NOTABLE_SKEW_SECONDS = 60.0

T = TypeVar("T")


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
    lines.extend(_listed(coverage.select("failed", "lost"), _cause, "failed or lost windows"))
    lines.extend(_moved(coverage.windows))
    lines.extend(_doubtful(coverage.windows))
    lines.extend(_late(coverage))
    lines.extend(_undecodable(coverage))
    verdicts = {item.verdict for item in coverage.windows}
    marks = [*MARKS.items(), *((verdict, mark) for verdict, mark in DOUBTS.items() if verdict in verdicts)]
    lines.append("  ".join(f"{mark} {name}" for name, mark in marks))
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
    parts.append(f"{counted(coverage.totals['rows'], 'row')}")
    return "   ".join(parts)


def _listed(items: Sequence[T], line: Callable[[T], str], others: str) -> Iterator[str]:
    """A line for each of the first items, and one that counts the others."""
    yield from map(line, items[:_CAUSES])
    if len(items) > _CAUSES:
        yield f"and {len(items) - _CAUSES} more {others}"


def _cause(item: WindowState) -> str:
    cause = " ".join(item.cause.split()) or "no cause recorded"
    shown = f"{cause[:_CAUSE_WIDTH]}.." if len(cause) > _CAUSE_WIDTH else cause
    return f"{MARKS[item.state]} {item.window}: {shown}"


def _doubtful(windows: Iterable[WindowState]) -> Iterator[str]:
    """Covered windows that may, or do, lack something."""
    for verdict, mark in DOUBTS.items():
        found = [f"{mark} {item.window}: {verdict}: {_WHY[verdict]}" for item in windows if item.verdict == verdict]
        yield from _listed(found, str, f"windows with the verdict {verdict}")


def _late(coverage: Coverage) -> Iterator[str]:
    """Windows that would hold more rows if they were read again."""
    late = [item for item in coverage.windows if item.late_rows]
    return _listed(
        late,
        lambda item: f"++ {item.window}: {counted(item.late_rows or 0, 'row')} appeared after it was read",
        f"windows with late rows, {counted(coverage.totals['late_rows'], 'row')} in all",
    )


def _undecodable(coverage: Coverage) -> Iterator[str]:
    """Covered windows with events that could not be decoded, and so are no rows."""
    both = undecodable_words(coverage.totals["quarantined"], coverage.totals["dropped"])
    return _listed(
        [item for item in coverage.windows if item.quarantined or item.dropped],
        lambda item: f"?? {item.window}: {undecodable_words(item.quarantined, item.dropped)}",
        f"windows with events that could not be decoded, in all {both}",
    )


def undecodable_words(quarantined: int, dropped: int) -> str:
    """What became of events that could not be decoded."""
    parts = [f"{quarantined:,} quarantined"] if quarantined or not dropped else []
    if dropped:
        parts.append(f"{dropped:,} dropped")
    return f"{' and '.join(parts)}: they could not be decoded"


def _moved(windows: Iterable[WindowState]) -> Iterator[str]:
    """Windows whose edges are notably later than they say, because no cuts were recorded then."""
    moved = [
        (item.window, *item.skew_seconds)
        for item in windows
        if item.skew_seconds and max(item.skew_seconds) > _NOTABLE_SKEW_SECONDS
    ]
    return _listed(
        moved,
        lambda one: f">> {one[0]}: start moved by {one[1]:+.1f} s, end by {one[2]:+.1f} s: no cut was recorded earlier",
        "windows with moved edges",
    )
