"""Resolved shards to a plan: ranges, splits, losses, estimates. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from airflow_provider_streams.errors import StartTrimmed, StartUnproven
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.model.plan.plan import (
    UNPROVEN,
    Estimate,
    Loss,
    Plan,
    PlanRequest,
    Range,
    SourceRef,
    Split,
)
from airflow_provider_streams.model.plan.row_filter import AnyFilter, FieldFilter, RowFilter, Stored
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.key_selection import Selection
from airflow_provider_streams.systems.pulsar.metadata.incarnation import incarnations_of
from airflow_provider_streams.systems.pulsar.metadata.ledgers import EARLIEST, Layout
from airflow_provider_streams.systems.pulsar.metadata.names import parent_of
from airflow_provider_streams.systems.pulsar.planning.cuts import FILTERED, Found
from airflow_provider_streams.systems.pulsar.planning.request_validation import source_of
from airflow_provider_streams.systems.pulsar.planning.shard_evidence import Evidence
from airflow_provider_streams.systems.pulsar.planning.splitting import split
from airflow_provider_streams.systems.pulsar.planning.start_verification import Doubt, verdict

MOST_REMARKS = 20


@dataclass(frozen=True, slots=True)
class Resolved:
    """One shard of a plan, before it is split."""

    found: Found
    evidence: Evidence
    doubt: Doubt | None
    """Why its start may be gone; None: it is not."""
    loss: Loss | None = None
    """Where the window lay, if it ends in an incarnation of the shard that is gone."""

    @property
    def name(self) -> str:
        """The shard."""
        return self.found.shard.name

    @property
    def layout(self) -> Layout:
        """What the shard stores."""
        return self.found.shard.layout

    @property
    def is_lost(self) -> bool:
        """Events of its start were removed."""
        return self.doubt is not None and self.doubt.is_lost


def build(
    request: PlanRequest, resolved: Sequence[Resolved], gone: Cut, *, cluster: str, observed_at: datetime
) -> Plan:
    """The plan of resolved shards; `gone` are the ends of shards that were seen and no longer exist.

    Raises:
        StartTrimmed: the start of a shard was removed, and loss is not accepted.
        StartUnproven: nothing shows whether it was removed, and that is not accepted.
    """
    losses = [_loss(request, item, item.doubt) for item in resolved if item.doubt and item.is_lost]
    losses += _gone(request, resolved, gone)
    for item in resolved:
        if request.on_unproven == "fail" and item.doubt and not item.is_lost:
            raise StartUnproven(item.name, request.window, item.doubt.cause)
    ranges = [_range(item, observed_at) for item in resolved]
    splits: list[Split] = []
    for item, part in zip(resolved, ranges, strict=True):
        splits += split(item.layout, part, request.target_split_bytes, len(splits))
    infos = {item.name: item.evidence.info for item in resolved if item.evidence.info}
    source = source_of(request)
    # all topics may be gone
    shards = [item.name for item in resolved] or [loss.shard for loss in losses] or source.topics
    names = tuple(dict.fromkeys(map(parent_of, shards)))
    return Plan(
        reader=request.reader,
        source=SourceRef("pulsar", cluster, names, incarnations_of(infos)),
        window=request.window,
        basis=request.basis,
        filter=_row_filter(request),
        start_cut=Cut({part.shard: part.start for part in ranges}),
        end_cut=Cut({part.shard: part.end for part in ranges}),
        ranges=tuple(ranges),
        splits=tuple(splits),
        estimate=Estimate(sum(part.bytes for part in ranges)),
        observed_at=observed_at,
        head=Cut({item.name: item.layout.head for item in resolved}),
        losses=tuple(losses),
        tail=Cut({item.name: item.layout.end for item in resolved}),
        remarks=_remarks(resolved, source.selection),
        selection=source.selection,
    )


def _loss(request: PlanRequest, item: Resolved, doubt: Doubt) -> Loss:
    head, start = item.layout.head, item.found.bounds.start
    if request.on_loss == "fail":
        wanted = request.window.start.isoformat() if request.basis in FILTERED else start
        raise StartTrimmed(item.name, wanted, head if item.found.shard.stats else "nothing", doubt.cause)
    if request.basis in FILTERED:
        start = EARLIEST
    if doubt.place is not None:
        start = min(doubt.place, head)
    return item.loss or Loss(item.name, start, head, doubt.cause)


def _gone(request: PlanRequest, resolved: Sequence[Resolved], gone: Cut) -> list[Loss]:
    """Shards that the chain read before, or that were seen, and that no longer exist; the request accepts loss."""
    present = {item.name for item in resolved}
    before = request.start_cut if request.start_cut is not None else Cut({})
    ended = [(name, position, position) for name, position in before.items() if name not in present]
    ended += [(name, EARLIEST, position) for name, position in gone.items()]
    return [Loss(*place, "the topic no longer exists") for place in ended]


def _range(item: Resolved, now: datetime) -> Range:
    layout, start, end = item.layout, item.found.bounds.start, item.found.bounds.end
    if item.is_lost:  # the range is what remains
        start = min(max(start, layout.head), end)
    spans = layout.spans(start, end)
    return Range(
        shard=item.name,
        start=start,
        end=end,
        bytes=layout.bytes_of(spans),
        entries=sum(span.entries for span in spans),
        first_kept=layout.head,
        verdict=(
            f"{'lost' if item.is_lost else UNPROVEN}: {item.doubt.cause}"
            if item.doubt
            else verdict(item.evidence, start, end, now)
        ),
    )


def _remarks(resolved: Sequence[Resolved], selection: Selection | None) -> tuple[str, ...]:
    told = [f"{item.name}: {item.found.remark}" for item in resolved if item.found.remark]
    if (more := len(told) - MOST_REMARKS) > 0:
        told[MOST_REMARKS:] = [f"the same is true of {counted(more, 'more shard')}"]
    if selection is not None:
        told.append(f"only {selection} land: all is read, and the others are counted as filtered")
    return tuple(told)


def _row_filter(request: PlanRequest) -> AnyFilter | None:
    column, window, event = FILTERED.get(request.basis), request.window, request.event
    if request.basis == "event" and event.event_time is not None:
        return FieldFilter(event.event_time, window.start_us, window.end_us, event.unit, Stored("publish_time"))
    return RowFilter(column, request.window.start_ms, request.window.end_ms) if column else None
