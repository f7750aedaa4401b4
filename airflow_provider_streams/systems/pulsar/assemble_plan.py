"""Resolved shards to a plan: ranges, splits, losses, estimates. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from airflow_provider_streams.errors import StartTrimmed, StartUnproven
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.plan import (
    UNPROVEN,
    Estimate,
    Loss,
    Plan,
    PlanRequest,
    Range,
    SourceRef,
    Split,
)
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.model.row_filter import AnyFilter, FieldFilter, RowFilter, Stored
from airflow_provider_streams.model.selection import Selection
from airflow_provider_streams.systems.pulsar.beginning import Doubt, Evidence, verdict
from airflow_provider_streams.systems.pulsar.cuts import Bounds, Shard
from airflow_provider_streams.systems.pulsar.identity import identities
from airflow_provider_streams.systems.pulsar.layout import EARLIEST
from airflow_provider_streams.systems.pulsar.names import parent_of
from airflow_provider_streams.systems.pulsar.splitting import Piece, split

MOST_REMARKS = 20

FILTERED = {"publish": "publish_time", "event": "event_time"}
"""Bases that look a time up, and the column whose values then decide each entry."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """One shard of a plan, before it is split."""

    shard: Shard
    bounds: Bounds
    evidence: Evidence
    doubt: Doubt | None
    """Why its start may be gone; None: it is not."""
    remark: str = ""
    """What was done to find its bounds, beyond looking them up."""
    loss: Loss | None = None
    """Of a window that ends in a life of the shard that is gone: where it lay."""

    @property
    def is_lost(self) -> bool:
        """Events of its start were removed."""
        return self.doubt is not None and self.doubt.is_lost


def build(request: PlanRequest, resolved: Sequence[Resolved], *, cluster: str, observed_at: datetime) -> Plan:
    """The plan of resolved shards. Pure.

    Raises:
        StartTrimmed: the start of a shard was removed, and loss is not accepted.
        StartUnproven: nobody can say whether it was, and that is not accepted.
    """
    losses = [_loss(request, item, item.doubt) for item in resolved if item.doubt and item.is_lost]
    losses += _gone(request, resolved)
    _check_unproven(request, resolved)
    ranges, pieces = [], []
    for item in resolved:
        ranges.append(_range(item, observed_at))
        pieces += [
            (item.shard.name, piece)
            for piece in split(item.shard.layout, ranges[-1].start, ranges[-1].end, request.target_split_bytes)
        ]
    infos = {item.shard.name: item.evidence.info for item in resolved if item.evidence.info}
    names = tuple(dict.fromkeys(parent_of(item.shard.name) for item in resolved))
    return Plan(
        reader=request.reader,
        source=SourceRef("pulsar", cluster, names, identities(infos)),
        window=request.window,
        basis=request.basis,
        filter=_row_filter(request),
        start_cut=Cut({part.shard: part.start for part in ranges}),
        end_cut=Cut({part.shard: part.end for part in ranges}),
        ranges=tuple(ranges),
        splits=tuple(_split(index, *piece) for index, piece in enumerate(pieces)),
        estimate=Estimate(sum(part.bytes for part in ranges)),
        observed_at=observed_at,
        head=Cut({item.shard.name: item.shard.layout.head for item in resolved}),
        losses=tuple(losses),
        tail=Cut({item.shard.name: item.shard.layout.end for item in resolved}),
        remarks=_remarks(resolved),
    )


def with_selection(plan: Plan, selection: Selection | None) -> Plan:
    """The plan, of which only chosen keys land."""
    if selection is None:
        return plan
    remark = f"only {selection} land: all is read, and the others are counted as filtered"
    return replace(plan, selection=selection, remarks=(*plan.remarks, remark))


def _wanted(request: PlanRequest, item: Resolved) -> object:
    return request.window.start.isoformat() if request.basis in FILTERED else item.bounds.start


def _loss(request: PlanRequest, item: Resolved, doubt: Doubt) -> Loss:
    head = item.shard.layout.head
    if request.on_loss == "fail":
        raise StartTrimmed(item.shard.name, _wanted(request, item), head, doubt.cause)
    start = EARLIEST if request.basis in FILTERED else item.bounds.start
    return item.loss or Loss(item.shard.name, start, head, doubt.cause)


def _gone(request: PlanRequest, resolved: Sequence[Resolved]) -> list[Loss]:
    """Shards that were read by the chain before, or seen, and are no more; `plan` has refused them unless accepted."""
    present = {item.shard.name for item in resolved}
    seen, is_timed = request.first_seen, request.basis in FILTERED
    before = request.start_cut if request.start_cut is not None else Cut({})
    if is_timed and seen is not None and seen.at < request.stored.end:
        before = Cut({shard: end for shard, end in seen.tail.items() if end > EARLIEST})
    return [
        Loss(name, EARLIEST if is_timed else position, position, "the topic no longer exists")
        for name, position in before.items()
        if name not in present
    ]


def _check_unproven(request: PlanRequest, resolved: Sequence[Resolved]) -> None:
    for item in resolved:
        if request.on_unproven == "fail" and item.doubt and not item.is_lost:
            raise StartUnproven(item.shard.name, request.window, item.doubt.cause)


def _range(item: Resolved, now: datetime) -> Range:
    shard, layout, end = item.shard, item.shard.layout, item.bounds.end
    # what is lost cannot be read: the range is what remains
    start = min(max(item.bounds.start, layout.head), end) if item.is_lost else item.bounds.start
    spans = layout.spans(start, end)
    return Range(
        shard=shard.name,
        start=start,
        end=end,
        bytes=layout.bytes_of(spans),
        entries=sum(span.entries for span in spans),
        first_kept=layout.head,
        verdict=_verdict(item, start, end, now),
    )


def _verdict(item: Resolved, start: Position, end: Position, now: datetime) -> str:
    if item.doubt:
        return f"{'lost' if item.is_lost else UNPROVEN}: {item.doubt.cause}"
    return verdict(item.evidence, start, end, now)


def _remarks(resolved: Sequence[Resolved]) -> tuple[str, ...]:
    told = [f"{item.shard.name}: {item.remark}" for item in resolved if item.remark]
    more = len(told) - MOST_REMARKS
    return (*told[:MOST_REMARKS], *([f"the same is true of {more} more shards"] if more > 0 else []))


def _split(index: int, shard: str, piece: Piece) -> Split:
    return Split(index, shard, piece.start, piece.end, piece.bytes, piece.spans)


def _row_filter(request: PlanRequest) -> AnyFilter | None:
    column, window, event = FILTERED.get(request.basis), request.window, request.event
    if request.basis == "event" and event.event_time is not None:
        return FieldFilter(event.event_time, window.start_us, window.end_us, event.unit, Stored("publish_time"))
    return RowFilter(column, request.window.start_ms, request.window.end_ms) if column else None
