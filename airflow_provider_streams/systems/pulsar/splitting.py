"""Cuts one shard's range into pieces for Spark tasks, at whole entries. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from airflow_provider_streams.model.plan import Span
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.systems.pulsar.layout import Layout, at

MAX_PIECES = 8
"""Per shard: each piece is a consumer on the shard's one broker, which a few readers saturate."""

TARGET_ENTRIES = 50_000
"""A broker hands about 20,000 entries a second to one reader, however small they are."""

_NEAR = 0.15
"""A ledger boundary this close (in pieces) is taken instead of a place inside a ledger: offloaded blocks end there."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a range and the entries stored in it."""

    start: Position
    end: Position
    bytes: int
    spans: tuple[Span, ...]


def split(layout: Layout, start: Position, end: Position, target_bytes: int) -> tuple[Piece, ...]:
    """Adjacent pieces that cover `[start, end)` exactly; none when nothing is stored in it.

    Sized by bytes, since nothing tells how many messages an entry holds, and by entries where these are small.
    """
    spans = layout.spans(start, end)
    if not spans:
        return ()
    bounds = [start, *_inner_cuts(layout, spans, _count(layout, spans, target_bytes)), end]
    return tuple(_piece(layout, left, right) for left, right in pairwise(bounds))


def _piece(layout: Layout, start: Position, end: Position) -> Piece:
    spans = layout.spans(start, end)
    return Piece(start, end, layout.bytes_of(spans), spans)


def _count(layout: Layout, spans: Sequence[Span], target_bytes: int) -> int:
    entries = sum(span.entries for span in spans)
    wanted = max(math.ceil(layout.bytes_of(spans) / target_bytes), math.ceil(entries / TARGET_ENTRIES), 1)
    return min(wanted, MAX_PIECES, entries)


def _inner_cuts(layout: Layout, spans: Sequence[Span], pieces: int) -> list[Position]:
    """At most `pieces - 1` positions, strictly inside and increasing, that part the weight about evenly."""
    # an entry weighs its bytes and a share of what the broker pays for any entry
    weights = [layout.entry_bytes(span.run) + 1.0 for span in spans]
    ends = []
    total = 0.0
    for span, weight in zip(spans, weights, strict=True):
        total += span.entries * weight
        ends.append(total)
    cuts: list[Position] = []
    row = 0
    for number in range(1, pieces):
        goal = total * number / pieces
        while ends[row] < goal:
            row += 1
        cut = _cut_in(spans, row, (ends[row] - goal) / weights[row], _NEAR * total / pieces / weights[row])
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
