"""How the fake system turns a window into a plan; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import PlanMismatch, StartTrimmed, WindowNotReady
from airflow_provider_streams.model.plan.plan import (
    Estimate,
    Loss,
    Plan,
    PlanRequest,
    Range,
    SourceRef,
    Span,
    Split,
)
from airflow_provider_streams.model.plan.row_filter import RowFilter
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.testing.fake.server_state import Truth

if TYPE_CHECKING:
    from airflow_provider_streams.model.stream.source import Source


def plan(truth: Truth, request: PlanRequest) -> Plan:
    """See `StreamSystem.plan`."""
    start, end = _cuts(truth, request)
    head = cut_at(truth, request.source, truth.head)
    ranges, losses = _ranges(truth, request, start, end)
    splits = tuple(_splits(truth, ranges, request.target_split_bytes))
    return Plan(
        reader=request.reader,
        source=SourceRef(
            request.source.system, request.source.conn_id, (str(request.source),), incarnation_of(truth, request.source)
        ),
        window=request.window,
        basis=request.basis,
        filter=_row_filter(request),
        start_cut=start,
        end_cut=end,
        ranges=ranges,
        splits=splits,
        estimate=Estimate(sum(r.bytes for r in ranges), sum(r.entries or 0 for r in ranges)),
        observed_at=truth.end_time,
        head=head,
        losses=losses,
    )


def incarnation_of(truth: Truth, source: object) -> tuple[tuple[str, str], ...]:
    """What tells this incarnation of the stream from another one."""
    return ((str(source), truth.life),)


def cut_at(truth: Truth, source: Source, number: int) -> Cut:
    """The cut at the same event in every shard."""
    names = truth.streams.split(",") if str(source) == "*" else str(source).split(",")
    return Cut({f"{name}-{shard}": Position.of(number) for name in names for shard in range(truth.shards)})


def _cuts(truth: Truth, request: PlanRequest) -> tuple[Cut, Cut]:
    window, source = request.window, request.source
    by_time = request.basis in ("publish", "event")
    if by_time and window.end > truth.end_time:
        raise WindowNotReady(source, window, f"events are known only until {truth.end_time.isoformat()}")
    slack = request.slack if request.basis == "publish" else timedelta(0)
    first = max(truth.at(window.start - slack), min(truth.head, truth.at(window.start))) if by_time else truth.head
    last = truth.at(window.end + slack) if by_time else truth.events
    start = request.start_cut or cut_at(truth, source, first)
    end = request.end_cut or cut_at(truth, source, last)
    if start.keys() != end.keys():
        raise PlanMismatch(f"{source}: start and end cut must name the same shards")
    return start, end


def _row_filter(request: PlanRequest) -> RowFilter | None:
    if request.basis not in ("publish", "event"):
        return None
    return RowFilter("publish_time", request.window.start_ms, request.window.end_ms)


def _ranges(truth: Truth, request: PlanRequest, start: Cut, end: Cut) -> tuple[tuple[Range, ...], tuple[Loss, ...]]:
    ranges, losses = [], []
    head = Position.of(truth.head)
    for shard, wanted in start.items():
        if wanted < head and wanted < end[shard]:
            if request.on_loss == "fail":
                raise StartTrimmed(shard, wanted, head)
            losses.append(Loss(shard, wanted, min(head, end[shard]), "trimmed"))
        first = min(max(wanted, head), end[shard])
        entries = end[shard].parts[0] - first.parts[0]
        verdict = "ok" if entries else "empty"
        ranges.append(Range(shard, first, end[shard], entries * truth.value_bytes, entries, head, verdict))
    return tuple(ranges), tuple(losses)


def _splits(truth: Truth, ranges: Iterable[Range], target_bytes: int) -> Iterator[Split]:
    step = max(1, target_bytes // max(1, truth.value_bytes))
    index = 0
    for one in ranges:
        for first in range(one.start.parts[0], one.end.parts[0], step):
            end = min(first + step, one.end.parts[0])
            size = (end - first) * truth.value_bytes
            yield Split(index, one.shard, Position.of(first), Position.of(end), size, (Span(0, first, end),))
            index += 1
