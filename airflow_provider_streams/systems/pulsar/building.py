"""Resolved shards to a plan: ranges, splits, losses, estimates. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from airflow_provider_streams.errors import StartTrimmed
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.plan import Estimate, Loss, Plan, PlanRequest, Range, RowFilter, SourceRef, Split
from airflow_provider_streams.systems.pulsar.cuts import Bounds, Shard
from airflow_provider_streams.systems.pulsar.layout import EARLIEST
from airflow_provider_streams.systems.pulsar.names import parent_of
from airflow_provider_streams.systems.pulsar.retention import Evidence, verdict
from airflow_provider_streams.systems.pulsar.splitting import Piece, split

FILTERED = {"publish": "publish_time"}
"""Bases that look a time up, and the column whose values then decide each entry."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """One shard of a plan, before it is split."""

    shard: Shard
    bounds: Bounds
    evidence: Evidence
    doubt: str
    """Why its start may be gone; "": it is not."""


def build(request: PlanRequest, resolved: Sequence[Resolved], *, cluster: str, now: datetime) -> Plan:
    """The plan of resolved shards. Pure.

    Raises:
        StartTrimmed: a shard's start is in doubt, and loss is not accepted.
    """
    losses = [_loss(request, item) for item in resolved if item.doubt]
    losses += _gone(request, resolved)
    ranges, pieces = [], []
    for item in resolved:
        ranges.append(_range(item, now))
        pieces += [
            (item.shard.name, piece)
            for piece in split(item.shard.layout, ranges[-1].start, ranges[-1].end, request.target_split_bytes)
        ]
    return Plan(
        reader=request.reader,
        source=SourceRef("pulsar", cluster, tuple(dict.fromkeys(parent_of(item.shard.name) for item in resolved))),
        window=request.window,
        basis=request.basis,
        filter=_row_filter(request),
        start_cut=Cut({part.shard: part.start for part in ranges}),
        end_cut=Cut({part.shard: part.end for part in ranges}),
        ranges=tuple(ranges),
        splits=tuple(_split(index, *piece) for index, piece in enumerate(pieces)),
        estimate=Estimate(sum(part.bytes for part in ranges)),
        observed_at=now,
        head=Cut({item.shard.name: item.shard.layout.head for item in resolved}),
        losses=tuple(losses),
    )


def _loss(request: PlanRequest, item: Resolved) -> Loss:
    timed = request.basis in FILTERED
    head = item.shard.layout.head
    if request.on_loss == "fail":
        wanted = request.window.start.isoformat() if timed else item.bounds.start
        raise StartTrimmed(item.shard.name, wanted, head, item.doubt)
    return Loss(item.shard.name, EARLIEST if timed else item.bounds.start, head, item.doubt)


def _gone(request: PlanRequest, resolved: Sequence[Resolved]) -> list[Loss]:
    """Shards that the chain read before and that are no more; `plan` has refused them unless loss is accepted."""
    present = {item.shard.name for item in resolved}
    before = request.start_cut if request.start_cut is not None else Cut({})
    return [
        Loss(name, position, position, "the topic no longer exists")
        for name, position in before.items()
        if name not in present
    ]


def _range(item: Resolved, now: datetime) -> Range:
    shard, layout, end = item.shard, item.shard.layout, item.bounds.end
    # what is lost cannot be read: the range is what remains
    start = min(max(item.bounds.start, layout.head), end) if item.doubt else item.bounds.start
    spans = layout.spans(start, end)
    held = verdict(item.evidence, start, end, now)
    return Range(
        shard=shard.name,
        start=start,
        end=end,
        bytes=layout.bytes_of(spans),
        entries=sum(span.entries for span in spans),
        first_kept=layout.head,
        verdict=f"lost: {item.doubt}" if item.doubt else held,
    )


def _split(index: int, shard: str, piece: Piece) -> Split:
    return Split(index, shard, piece.start, piece.end, piece.bytes, piece.spans)


def _row_filter(request: PlanRequest) -> RowFilter | None:
    column = FILTERED.get(request.basis)
    return RowFilter(column, request.window.start_ms, request.window.end_ms) if column else None
