"""A window to positions: ask (`survey`), resolve (`cuts`), weigh loss (`retention`), split (`splitting`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from airflow_provider_streams.errors import InvalidRequest, StartTrimmed, WindowNotReady
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.plan import Estimate, Loss, Plan, PlanRequest, Range, RowFilter, SourceRef, Split
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.model.source import PulsarSource
from airflow_provider_streams.systems.pulsar import cuts
from airflow_provider_streams.systems.pulsar.admin import requests
from airflow_provider_streams.systems.pulsar.admin.answers import Retention
from airflow_provider_streams.systems.pulsar.admin.client import AsyncAdminClient, together
from airflow_provider_streams.systems.pulsar.cuts import Bounds, Shard
from airflow_provider_streams.systems.pulsar.layout import EARLIEST
from airflow_provider_streams.systems.pulsar.names import parent_of
from airflow_provider_streams.systems.pulsar.retention import (
    Evidence,
    doubt_in_window,
    doubt_since_position,
    verdict,
)
from airflow_provider_streams.systems.pulsar.splitting import Piece, split
from airflow_provider_streams.systems.pulsar.survey import (
    LastMessages,
    ShardName,
    cluster_of,
    evidence_of,
    held_back,
    retention_of,
    shards_of,
    survey,
)

T = TypeVar("T")

_FILTERED = {"publish": "publish_time"}
"""Bases that look a time up, and the column whose values then decide each entry."""


def utc_now() -> datetime:
    """The clock that decides whether a window is over."""
    return datetime.now(UTC)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run asynchronous work to its end from blocking code; also inside a running event loop, which then waits."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


@dataclass(frozen=True, slots=True)
class Resolved:
    """One shard of a plan, before it is split."""

    shard: Shard
    bounds: Bounds
    evidence: Evidence
    doubt: str
    """Why its start may be gone; "": it is not."""


class Planner:
    """Makes plans of one cluster.

    Args:
        admin: its REST service.
        last_messages: asks the binary protocol where shards end.
        cluster: its name, if the cluster does not tell it.
        clock: the time that decides whether a window is over.
    """

    def __init__(
        self,
        admin: AsyncAdminClient,
        last_messages: LastMessages,
        *,
        cluster: str,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._admin, self._last_messages, self._cluster, self._clock = admin, last_messages, cluster, clock

    async def plan(self, request: PlanRequest) -> Plan:
        """Resolve a window to positions.

        Raises:
            WindowNotReady: its end is not certain yet.
            StartTrimmed: its start is no longer held, or that cannot be proven, and loss is not accepted.
            SourceNotFound: a topic does not exist.
            InvalidRequest: cuts that do not fit the source.
        """
        source = _pulsar_source(request)
        if request.basis == "event":
            raise InvalidRequest(
                f"{request.source}: Pulsar's entries carry publish times, so windows have the basis 'publish'; "
                "filter rows by event_time in a transform, over a window with enough slack"
            )
        now = self._clock()
        check_time(request, now)
        listed = await shards_of(self._admin, source)
        cluster = await cluster_of(self._admin, self._cluster)
        request = _with_new_shards(request, listed)
        shards = await self._surveyed(request, listed)
        retention = await retention_of(self._admin, shards)
        resolved = await together(self._resolved(request, shard, retention[shard.name], now) for shard in shards)
        return build(request, resolved, cluster=cluster, now=now)

    async def shards(self, source: PulsarSource) -> tuple[str, ...]:
        """The full names of a source's shards now."""
        return tuple(shard.name for shard in await shards_of(self._admin, source))

    async def cut_at(self, source: PulsarSource, rule: Callable[[Shard], Position]) -> Cut:
        """The cut `earliest` or `latest` of a source now."""
        listed = await shards_of(self._admin, source)
        shards = await survey(self._admin, self._last_messages, listed, None)
        return Cut({shard.name: rule(shard) for shard in shards})

    async def _surveyed(self, request: PlanRequest, listed: Sequence[ShardName]) -> list[Shard]:
        shards = await survey(self._admin, self._last_messages, listed, _times(request))
        shards = await together(self._with_info(request, shard) for shard in shards)
        ends = {shard.name: end for shard in shards if (end := _wanted_end(request, shard)) is not None}
        beyond = {
            shard.name: f"its end {ends[shard.name]} lies beyond the tail {shard.layout.end}"
            for shard in shards
            if shard.name in ends and cuts.is_beyond_tail(shard, ends[shard.name])
        }
        shards, blocked = await held_back(
            self._admin, self._last_messages, shards, {shard.name: ends.get(shard.name, EARLIEST) for shard in shards}
        )
        if waiting := {**beyond, **blocked}:
            raise WindowNotReady(request.source, request.window, "; ".join(f"{k}: {v}" for k, v in waiting.items()))
        return shards

    async def _with_info(self, request: PlanRequest, shard: Shard) -> Shard:
        """Metadata too where the lookup by time cannot be trusted."""
        if request.basis in _FILTERED and shard.stats is not None and shard.stats.compacted_ledger is not None:
            return replace(shard, info=await self._admin(requests.internal_info(shard.name)))
        return shard

    async def _resolved(
        self, request: PlanRequest, shard: Shard, retention: Retention | None, now: datetime
    ) -> Resolved:
        bounds = _bounds(request, shard)
        doubtful = _is_doubtful(request, shard, bounds)
        evidence = await evidence_of(self._admin, shard, retention, doubtful=doubtful)
        return Resolved(shard, bounds, evidence, _doubt(request, bounds, evidence, now) if doubtful else "")


def _pulsar_source(request: PlanRequest) -> PulsarSource:
    if not isinstance(request.source, PulsarSource):
        raise InvalidRequest(f"{request.source} is not a Pulsar source")
    return request.source


def check_time(request: PlanRequest, now: datetime) -> None:
    """A window of time is over, and slack too where its end is looked up.

    Raises:
        WindowNotReady: not yet.
    """
    wait = {"chained": timedelta(0), "publish": request.slack}.get(request.basis)
    if wait is not None and now < request.window.end + wait:
        ready = request.window.end + wait
        raise WindowNotReady(request.source, request.window, f"it is certain at {ready.isoformat()} at the earliest")


def _with_new_shards(request: PlanRequest, listed: Sequence[ShardName]) -> PlanRequest:
    """The request, its cuts checked. A chain starts a shard that is new to it at the head: nothing is skipped."""
    known = {shard.name: shard for shard in listed}
    if request.basis != "chained" or request.start_cut is None:
        cuts.check_shards(known, request.start_cut, request.end_cut)
        return request
    gone = sorted(request.start_cut.keys() - known.keys())
    if gone and request.on_loss == "fail":
        raise StartTrimmed(gone[0], request.start_cut[gone[0]], "nothing", "the topic no longer exists")
    cuts.check_shards(known, request.end_cut)
    return request


def _times(request: PlanRequest) -> tuple[int, int] | None:
    """The times to look up, in milliseconds: the window widened by slack."""
    if request.basis not in _FILTERED:
        return None
    window, slack = request.window, request.slack
    return cuts.lookup_ms(window.start, -slack), cuts.lookup_ms(window.end, slack)


def _wanted_end(request: PlanRequest, shard: Shard) -> Position | None:
    """An end that is fixed before the tail is known; None: the tail it is."""
    if request.basis in _FILTERED:
        return shard.end_at
    return request.end_cut[shard.name] if request.end_cut is not None else None


def _start_of(request: PlanRequest, shard: Shard) -> Position | None:
    return request.start_cut.get(shard.name) if request.start_cut is not None else None


def _bounds(request: PlanRequest, shard: Shard) -> Bounds:
    if request.basis in _FILTERED:
        return cuts.publish(shard, request.window.start - request.slack)
    return cuts.given(shard, _start_of(request, shard), _wanted_end(request, shard))


def _is_doubtful(request: PlanRequest, shard: Shard, bounds: Bounds) -> bool:
    """Whether the start may be gone, so that proofs must be looked for."""
    if request.basis in _FILTERED:
        return not cuts.is_held_from_before(shard, request.window.start - request.slack)
    return bounds.start < shard.layout.head and not shard.layout.holds(bounds.start.parts[0])


def _doubt(request: PlanRequest, bounds: Bounds, evidence: Evidence, now: datetime) -> str:
    if request.basis in _FILTERED:
        return doubt_in_window(evidence, request.window, request.slack, now)
    return doubt_since_position(evidence, bounds.start)


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
    timed = request.basis in _FILTERED
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
    column = _FILTERED.get(request.basis)
    return RowFilter(column, request.window.start_ms, request.window.end_ms) if column else None
