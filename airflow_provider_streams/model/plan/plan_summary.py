"""A plan as a table that a person can check, and the remarks of many plans, each shown once. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.model.plan.plan import Plan, Range, Skipped
from airflow_provider_streams.model.schema.ddl import ddl
from airflow_provider_streams.model.schema.decoding import ANY_NAME, ANY_VERSION, Decoding, WriterSchema
from airflow_provider_streams.model.schema.types import StructOf

MAX_ROWS = 50
"""A plan of more shards shows those with a notable verdict, then the first ones."""
IN_NO_WINDOW: Final = "in no window"
"""The words of a remark on events that no window holds: such remarks come first."""
MOST_NOTES: Final = 10

T = TypeVar("T")

_UNITS = ("kB", "MB", "GB", "TB", "PB")
_STEP = 1000
_SMALL = 10
_NUMERIC = {"entries", "bytes", "tasks"}
"""Columns that are aligned to the right."""
_PLAIN = {"ok", "empty"}
_MOST_SKIPPED = 20


def plan_table(plan: Plan, *, max_rows: int = MAX_ROWS) -> str:
    """Shards, positions, sizes, tasks, first kept positions and verdicts of a plan, remarks, and its totals.

    Args:
        plan: the plan.
        max_rows: how many shards to show at most; the others are counted.
    """
    shown = _shown(plan.ranges, max_rows)
    lines = [_title(plan), *_columns(plan, shown)]
    if hidden := len(plan.ranges) - len(shown):
        lines.append(
            f" .. and {counted(hidden, 'more shard')}, all of them ok or empty"
            if _all_plain(plan, shown)
            else f" .. and {counted(hidden, 'more shard')}"
        )
    lines += [f" lost  {loss.shard} {loss.start} .. {loss.end}: {loss.cause}" for loss in plan.losses]
    lines += _skipped(plan.skipped)
    lines += [f" note  {remark}" for remark in plan.remarks]
    lines += _decoded(plan.decoding) if plan.decoding else []
    return "\n".join([*lines, _totals(plan)])


def bytes_text(size: int) -> str:
    """A size for people, in decimal units: `999 B`, `1.5 MB`, `63 MB`."""
    value = float(size)
    if value < _STEP:
        return f"{size} B"
    for unit in _UNITS:
        value /= _STEP
        if round(value, 1) < _STEP or unit == _UNITS[-1]:
            return f"{value:.1f} {unit}" if value < _SMALL else f"{value:,.0f} {unit}"
    raise AssertionError("the last unit ends the loop")


def _title(plan: Plan) -> str:
    rows = f"   rows by {plan.filter.column}" if plan.filter else ""
    names = ", ".join(plan.source.names)
    basis = f"{plan.basis}{_edges(plan)}"
    return f"{plan.source.system}  {names}   window {plan.window}   basis {basis}   reader {plan.reader}{rows}"


def _edges(plan: Plan) -> str:
    """How much later than the window's edges its cuts were sampled."""
    return " (edges {:+.1f} s, {:+.1f} s)".format(*plan.skew_seconds) if plan.skew_seconds else ""


def _shown(ranges: Sequence[Range], max_rows: int) -> list[Range]:
    if len(ranges) <= max_rows:
        return list(ranges)
    telling = sorted(range(len(ranges)), key=lambda index: (ranges[index].verdict in _PLAIN, index))
    return [ranges[index] for index in sorted(telling[:max_rows])]


def _all_plain(plan: Plan, shown: Sequence[Range]) -> bool:
    told = sum(part.verdict not in _PLAIN for part in shown)
    return told == sum(part.verdict not in _PLAIN for part in plan.ranges)


def _columns(plan: Plan, shown: Sequence[Range]) -> Iterable[str]:
    tasks = Counter(split.shard for split in plan.splits)
    prefix = _common_folder([part.shard for part in plan.ranges])
    columns: dict[str, list[str]] = {
        "shard": [part.shard.removeprefix(prefix) for part in shown],
        "start": [str(part.start) for part in shown],
        "end": [str(part.end) for part in shown],
        "entries": ["" if part.entries is None else f"{part.entries:,}" for part in shown],
        "bytes": [bytes_text(part.bytes) for part in shown],
        "tasks": [str(tasks[part.shard]) for part in shown],
        "first kept": ["" if part.first_kept is None else str(part.first_kept) for part in shown],
        "verdict": [_verdict(part.verdict) for part in shown],
    }
    if not _counts_entries(plan):
        del columns["entries"]
    return table_lines([tuple(columns), *zip(*columns.values(), strict=True)])


def table_lines(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows of as many cells as the first one, which names the columns, each as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.rjust(width) if name in _NUMERIC else cell.ljust(width)
            for name, cell, width in zip(rows[0], row, widths, strict=True)
        ]
        yield f" {'  '.join(cells)}".rstrip()


def by_relevance(remarks: Iterable[str]) -> list[str]:
    """Those on events that no window holds, then the others, in their order."""
    return sorted(remarks, key=lambda remark: IN_NO_WINDOW not in remark)


def by_remark(made: Iterable[tuple[T, Iterable[str]]]) -> dict[str, list[T]]:
    """For each remark who has it, the most relevant remark first."""
    found: dict[str, list[T]] = {}
    for whose, remarks in made:
        for remark in remarks:
            found.setdefault(remark, []).append(whose)
    return {remark: found[remark] for remark in by_relevance(found)}


def note_lines(found: Mapping[str, Sequence[T]], named: Callable[[Sequence[T]], str]) -> Iterator[str]:
    """The first remarks, and who has them."""
    for remark in list(found)[:MOST_NOTES]:
        yield f" note  {named(found[remark])}: {remark}"
    if (more := len(found) - MOST_NOTES) > 0:
        yield f" note  .. and {more:,} more: the plan of each window has its own"


def _skipped(skipped: Sequence[Skipped]) -> Iterable[str]:
    for one in skipped[:_MOST_SKIPPED]:
        yield f" skip  {one.shard} {one.start} .. {one.end}, {bytes_text(one.bytes)}: {one.because}"
    if (more := len(skipped) - _MOST_SKIPPED) > 0:
        yield f" skip  .. and {more:,} more"


def _decoded(decoding: Decoding) -> Iterable[str]:
    """What the payloads become, and by which schemas of each name."""
    value = decoding.value
    yield f" rows  {ddl(value) if isinstance(value, StructOf) else f'value {value}'}"
    if decoding.key is not None:
        yield f" keys  _key {decoding.key}"
    for name, others in _other_types(decoding).items():
        yield f" other {f'{name}: ' if name != ANY_NAME else ''}{', '.join(others)}: set aside"
    for name, schemas in decoding.schemas.items():
        told = [f"{_versions(versions)} {format_}" for format_, versions in _by_format(schemas).items()]
        yield f" with  {f'{name}: ' if name != ANY_NAME else ''}{', '.join(told)}"


def _other_types(decoding: Decoding) -> dict[str, list[str]]:
    """By name, the record types whose events are no rows."""
    types = decoding.types
    if types is None:
        return {}
    found = {
        name: [type_ or "events without a type" for type_ in dict.fromkeys(of.values()) if type_ not in types.columns]
        for name, of in types.of.items()
    }
    return {name: others for name, others in found.items() if others}


def _by_format(schemas: Mapping[str, WriterSchema]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for version, schema in schemas.items():
        found.setdefault(schema.format, []).append(version)
    return found


def _versions(versions: Sequence[str]) -> str:
    if list(versions) == [ANY_VERSION]:
        return "the given"
    if not versions:
        return "none"
    ordered = sorted(versions, key=lambda version: (len(version), version))
    first, last = ordered[0], ordered[-1]
    return f"version {first}" if len(versions) == 1 else f"versions {first} to {last} ({len(versions)})"


def _verdict(verdict: str) -> str:
    """With the first word in capitals where it needs attention."""
    word, colon, why = verdict.partition(":")
    return f"{word.upper()}:{why}" if colon else verdict


def _counts_entries(plan: Plan) -> bool:
    """Whether entries are counted, and are not bytes."""
    return any(part.entries is not None and part.entries != part.bytes for part in plan.ranges)


def _common_folder(names: Sequence[str]) -> str:
    """What all names begin with, up to its last slash."""
    if not names:
        return ""
    first, last = min(names), max(names)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[: first.rfind("/", 0, same) + 1]


def _totals(plan: Plan) -> str:
    entries = sum(part.entries or 0 for part in plan.ranges)
    stored = f"{counted(entries, 'entry')}, " if _counts_entries(plan) else ""
    size = bytes_text(plan.estimate.bytes)
    return f" total {stored}{size}, {counted(len(plan.splits), 'task')}   fingerprint {plan.fingerprint[:12]}"
