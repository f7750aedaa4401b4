"""A plan as a table that a person can check before anything is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from airflow_provider_streams.model.plan import Plan, Range

MOST_ROWS = 40
"""Ranges shown; of a plan with more, those worth a look come first."""

_HEAD = ("shard", "start", "end", "entries", "bytes", "tasks", "first kept", "verdict")
_RIGHT = frozenset({"entries", "bytes", "tasks"})


def plan_table(plan: Plan) -> str:
    """Each range with its positions, size, tasks, first kept position and verdict; then the totals."""
    tasks = Counter(split.shard for split in plan.splits)
    shown = _worth_a_look(plan.ranges)
    rows = [_HEAD, *(_row(one, tasks[one.shard], plan) for one in shown)]
    lines = [_title(plan), *(f"  {line}" for line in _aligned(rows))]
    if len(shown) < len(plan.ranges):
        lines.append(f"  .. and {len(plan.ranges) - len(shown)} more ranges, ok or empty")
    lines += [f"  lost: {loss.shard} [{loss.start}, {loss.end}): {loss.cause}" for loss in plan.losses]
    lines.append(f"  total {_totals(plan)}   fingerprint {plan.fingerprint}")
    return "\n".join(lines)


def size_text(count: int) -> str:
    """Bytes in the largest unit that keeps the number readable: `512 B`, `63 MB`, `1.4 GB`."""
    size, units = float(count), ("B", "kB", "MB", "GB", "TB")
    for unit in units[:-1]:
        if size < 1000:  # noqa: PLR2004 - decimal units
            return _size(size, unit)
        size /= 1000
    return _size(size, units[-1])


def _size(size: float, unit: str) -> str:
    return f"{size:.1f} {unit}" if size < 10 and unit != "B" else f"{size:.0f} {unit}"  # noqa: PLR2004 - two digits


def _title(plan: Plan) -> str:
    names = ", ".join(plan.source.names[:3]) + (
        f" and {len(plan.source.names) - 3} more" if plan.source.names[3:] else ""
    )
    kept = f"   keeping {plan.filter.column} in the window" if plan.filter else ""
    return f"{plan.source.system}  {names}   window {plan.window}   basis {plan.basis}   reader {plan.reader}{kept}"


def _row(one: Range, tasks: int, plan: Plan) -> tuple[str, ...]:
    return (
        _short(one.shard, plan),
        str(one.start),
        str(one.end),
        "-" if one.entries is None else f"{one.entries:,}",
        size_text(one.bytes),
        str(tasks),
        "-" if one.first_kept is None else str(one.first_kept),
        _verdict(one.verdict),
    )


def _verdict(verdict: str) -> str:
    """Calm ones as they are; the first word of one that needs attention in capitals."""
    if verdict in ("ok", "empty", "unknown"):
        return verdict
    word, colon, rest = verdict.partition(":")
    return f"{word.upper()}{colon}{rest}"


def _short(shard: str, plan: Plan) -> str:
    """A shard of the only topic is told by its end; of several, by its name."""
    if len(plan.source.names) == 1:
        return shard.removeprefix(plan.source.names[0]).lstrip("-/") or shard.rpartition("/")[2]
    return shard.removeprefix("persistent://")


def _worth_a_look(ranges: tuple[Range, ...]) -> list[Range]:
    if len(ranges) <= MOST_ROWS:
        return list(ranges)
    ranked = sorted(ranges, key=lambda one: (one.verdict in ("ok", "empty"), -one.bytes))
    chosen = {one.shard for one in ranked[:MOST_ROWS]}
    return [one for one in ranges if one.shard in chosen][:MOST_ROWS]


def _totals(plan: Plan) -> str:
    counted = [one.entries for one in plan.ranges if one.entries is not None]
    entries = f"{sum(counted):,} entries, " if counted else ""
    events = f"about {plan.estimate.events:,} events, " if plan.estimate.events is not None else ""
    tasks = f"{len(plan.splits)} task{'s' if len(plan.splits) != 1 else ''}"
    return f"{entries}{events}{size_text(plan.estimate.bytes)}, {tasks}"


def _aligned(rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = (
            cell.rjust(width) if name in _RIGHT else cell.ljust(width)
            for name, cell, width in zip(_HEAD, row, widths, strict=True)
        )
        yield "  ".join(cells).rstrip()
