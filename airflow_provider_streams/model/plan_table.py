"""A plan as a table that a person can check, for any log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from airflow_provider_streams.model.ddl import ddl
from airflow_provider_streams.model.decoding import ANY_NAME, ANY_VERSION, Decoding, WriterSchema
from airflow_provider_streams.model.plan import Plan, Range
from airflow_provider_streams.model.row_type import StructOf
from airflow_provider_streams.model.skipped import Skipped

MAX_ROWS = 50
"""A plan of more shards shows those with something to say, then the first ones."""

_UNITS = ("kB", "MB", "GB", "TB", "PB")
_STEP = 1000
_SMALL = 10
_NUMERIC = {"entries", "bytes", "tasks"}
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
            f" .. and {hidden:,} more shards, all of them ok or empty"
            if _all_plain(plan, shown)
            else f" .. and {hidden:,} more shards"
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
    widths = {name: max(len(name), *map(len, cells)) if cells else len(name) for name, cells in columns.items()}
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    for row in rows:
        cells = [
            cell.rjust(widths[name]) if name in _NUMERIC else cell.ljust(widths[name])
            for name, cell in zip(columns, row, strict=True)
        ]
        yield f" {'  '.join(cells)}".rstrip()


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
    for name, schemas in decoding.schemas.items():
        told = [f"{_versions(versions)} {format_}" for format_, versions in _by_format(schemas).items()]
        yield f" with  {f'{name}: ' if name != ANY_NAME else ''}{', '.join(told)}"


def _by_format(schemas: Mapping[str, WriterSchema]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for version, schema in schemas.items():
        found.setdefault(schema.format, []).append(version)
    return found


def _versions(versions: Sequence[str]) -> str:
    if list(versions) == [ANY_VERSION]:
        return "the given"
    first, last = versions[0], versions[-1]
    return f"version {first}" if len(versions) == 1 else f"versions {first} to {last} ({len(versions)})"


def _verdict(verdict: str) -> str:
    """The first word in capitals where it calls for attention."""
    word, colon, why = verdict.partition(":")
    return f"{word.upper()}:{why}" if colon else verdict


def _counts_entries(plan: Plan) -> bool:
    """Where bytes are what is counted, they need no second column."""
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
    counted = f"{entries:,} entries, " if _counts_entries(plan) else ""
    size = bytes_text(plan.estimate.bytes)
    return f" total {counted}{size}, {len(plan.splits):,} tasks   fingerprint {plan.fingerprint[:12]}"
