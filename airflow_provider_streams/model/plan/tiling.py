"""Whether a plan holds together: its ranges tile its cuts, and its splits tile its ranges, with what it skips. Pure.

A plan whose parts leave something out would be read, proven against itself, and called complete.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from airflow_provider_streams.errors.plurals import counted

if TYPE_CHECKING:
    from airflow_provider_streams.model.plan.plan import Plan, Range, Skipped, Split
    from airflow_provider_streams.model.stream.position import Position


def problems(plan: Plan) -> Iterator[str]:
    """Every place where something is missing or doubled, for a person."""
    ranges = {one.shard: one for one in plan.ranges}
    if len(ranges) != len(plan.ranges):
        yield "a shard has two ranges"
    yield from _ranges(plan, ranges)
    splits: dict[str, list[Split | Skipped]] = defaultdict(list)
    for split in plan.splits:
        splits[split.shard].append(split)
    for skipped in plan.skipped:
        splits[skipped.shard].append(skipped)
        splits[skipped.shard].sort(key=lambda part: (part.start, part.end))
    for shard in splits.keys() - ranges.keys():
        yield f"{shard} has splits, but no range"
    for shard, one in ranges.items():
        yield from _splits(one, splits[shard])


def _ranges(plan: Plan, ranges: dict[str, Range]) -> Iterator[str]:
    """A range begins where the start cut is, or where a loss that begins there ends; and ends where the end cut is."""
    for shard, position in plan.start_cut.items():
        one = ranges.get(shard)
        if one is None:
            yield f"the start cut names {shard}, which no range reads"
        elif one.start != position and not _is_lost(plan, one, position):
            yield f"{shard} is read from {one.start} on, but its start cut is {position}"
    for shard, position in plan.end_cut.items():
        one = ranges.get(shard)
        if one is None:
            yield f"the end cut names {shard}, which no range reads"
        elif one.end != position:
            yield f"{shard} is read up to {one.end}, but its end cut is {position}"
    for shard, one in ranges.items():
        if one.end < one.start:
            yield f"the range of {shard} ends at {one.end}, before it starts at {one.start}"


def _is_lost(plan: Plan, one: Range, position: Position) -> bool:
    """Whether one loss explains everything between a cut's position and where its range starts."""
    return any(loss.shard == one.shard and loss.start <= position and loss.end == one.start for loss in plan.losses)


def _splits(one: Range, splits: Sequence[Split | Skipped]) -> Iterator[str]:
    if not splits:
        if one.entries or (one.entries is None and one.start < one.end):
            units = "" if one.entries is None else f"{one.entries} "
            yield f"nothing reads the {units}stored units of {one.shard}"
        return
    for split in splits:
        if split.end < split.start:
            yield f"{_named(split)} of {one.shard} ends at {split.end}, before it starts at {split.start}"
    edges = [(split.start, split.end) for split in splits]
    if edges[0][0] != one.start or edges[-1][1] != one.end:
        yield f"the splits of {one.shard} read [{edges[0][0]}, {edges[-1][1]}) of its range [{one.start}, {one.end})"
    for (_, end), (start, _) in pairwise(edges):
        if start != end:
            yield f"the splits of {one.shard} end at {end} and go on at {start}"
    entries = [split.entries for split in splits]
    if one.entries is not None and None not in entries and (held := sum(filter(None, entries))) != one.entries:
        yield f"the splits of {one.shard} hold {counted(held, 'stored unit')}, its range {one.entries:,}"


def _named(split: Split | Skipped) -> str:
    index = getattr(split, "index", None)
    return "a skipped piece" if index is None else f"split {index}"
