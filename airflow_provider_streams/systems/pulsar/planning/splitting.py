"""Cuts one shard's range into splits for Spark tasks, at whole entries. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise

from airflow_provider_streams.model.plan.plan import Range, Span, Split
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.pulsar.metadata.ledgers import Layout, at

MAX_SPLITS = 8
"""Per shard: each split is a consumer on the shard's one broker, which a few readers saturate."""

TARGET_ENTRIES = 50_000
"""A broker hands about 20,000 entries a second to one reader, however small they are."""

_NEAR = 0.15
"""A ledger boundary this close (in splits) replaces a place inside a ledger: offloaded blocks end at boundaries."""


def split(layout: Layout, part: Range, target_bytes: int, first_index: int = 0) -> tuple[Split, ...]:
    """Adjacent splits that cover a range exactly; none when nothing is stored in it.

    Bytes decide their sizes, as no one knows how many messages an entry holds; small entries count instead.
    """
    spans = layout.spans(part.start, part.end)
    if not spans:
        return ()
    bounds = [part.start, *_inner_cuts(layout, spans, _count(layout, spans, target_bytes)), part.end]
    splits = []
    for index, (start, end) in enumerate(pairwise(bounds), first_index):
        inside = layout.spans(start, end)
        splits.append(Split(index, part.shard, start, end, layout.bytes_of(inside), inside))
    return tuple(splits)


def _count(layout: Layout, spans: Sequence[Span], target_bytes: int) -> int:
    entries = sum(span.entries for span in spans)
    wanted = max(math.ceil(layout.bytes_of(spans) / target_bytes), math.ceil(entries / TARGET_ENTRIES), 1)
    return min(wanted, MAX_SPLITS, entries)


def _inner_cuts(layout: Layout, spans: Sequence[Span], splits: int) -> list[Position]:
    """At most `splits - 1` increasing positions, strictly inside, that divide the weight about evenly."""
    # an entry weighs its bytes and a constant for the broker's work
    weights = [layout.entry_bytes(span.run) + 1.0 for span in spans]
    ends = list(accumulate(span.entries * weight for span, weight in zip(spans, weights, strict=True)))
    total = ends[-1]
    cuts: list[Position] = []
    row = 0
    for number in range(1, splits):
        goal = total * number / splits
        while ends[row] < goal:
            row += 1
        cut = _cut_in(spans, row, (ends[row] - goal) / weights[row], _NEAR * total / splits / weights[row])
        if cut is not None and (not cuts or cut > cuts[-1]):
            cuts.append(cut)
    return cuts


def _cut_in(spans: Sequence[Span], row: int, before_end: float, near: float) -> Position | None:
    """The place so many entries before a span's end, or a boundary at most `near` entries off."""
    span = spans[row]
    if before_end <= near and row + 1 < len(spans):
        return at(spans[row + 1].run, spans[row + 1].first)
    entry = span.end - max(1, min(span.entries, round(before_end)))
    if entry - span.first <= near and row:
        entry = span.first
    if entry <= span.first:
        return at(span.run, span.first) if row else None
    return at(span.run, entry)
