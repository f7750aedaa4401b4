"""A window to positions: ask (`survey`), resolve (`cuts`), weigh loss (`retention`), put together (`building`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from airflow_provider_streams.errors import InvalidRequest, StartTrimmed, WindowNotReady
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.plan import Plan, PlanRequest
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.model.source import PulsarSource
from airflow_provider_streams.systems.pulsar import cuts
from airflow_provider_streams.systems.pulsar.admin import requests
from airflow_provider_streams.systems.pulsar.admin.answers import Retention
from airflow_provider_streams.systems.pulsar.admin.client import AsyncAdminClient, together
from airflow_provider_streams.systems.pulsar.building import FILTERED, Resolved, build
from airflow_provider_streams.systems.pulsar.cuts import Bounds, Shard
from airflow_provider_streams.systems.pulsar.layout import EARLIEST
from airflow_provider_streams.systems.pulsar.retention import (
    Evidence,
    doubt_in_window,
    doubt_since_position,
    held_since,
)
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
        if request.basis == "append" and (request.start_cut is None or request.end_cut is None):
            raise InvalidRequest(
                f"{request.source}: basis 'append' needs both cuts of the window: they are recorded in the journal, "
                "which operators and `airflow streams` ask"
            )
        now = self._clock()
        check_time(request, now)
        listed = await shards_of(self._admin, source)
        cluster = await cluster_of(self._admin, self._cluster)
        if request.basis == "append":
            listed = _present_at_end(request, listed)
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

    async def horizon(self, source: PulsarSource) -> datetime | None:
        """The time from which on every shard surely still holds what was published; None: nothing was removed."""
        listed = await shards_of(self._admin, source)
        shards = await survey(self._admin, self._last_messages, listed, None)
        found = await together(evidence_of(self._admin, shard, None, doubtful=True) for shard in shards)
        return max((moment for evidence in found if (moment := held_since(evidence)) is not None), default=None)

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
        if request.basis in FILTERED and shard.stats is not None and shard.stats.compacted_ledger is not None:
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
    if request.basis == "append" and request.start_cut is not None and request.end_cut is not None:
        return _recorded(request, known)
    if request.basis != "chained" or request.start_cut is None:
        cuts.check_shards(known, request.start_cut, request.end_cut)
        return request
    gone = sorted(request.start_cut.keys() - known.keys())
    if gone and request.on_loss == "fail":
        raise StartTrimmed(gone[0], request.start_cut[gone[0]], "nothing", "the topic no longer exists")
    cuts.check_shards(known, request.end_cut)
    return request


def _present_at_end(request: PlanRequest, listed: tuple[ShardName, ...]) -> tuple[ShardName, ...]:
    """A shard that its end cut does not name was made later: all of it belongs to later windows."""
    end = request.end_cut
    return listed if end is None else tuple(shard for shard in listed if shard.name in end)


def _recorded(request: PlanRequest, known: Mapping[str, object]) -> PlanRequest:
    """The request with recorded cuts that fit: a shard that was made in between is read from its beginning.

    Raises:
        StartTrimmed: a topic was deleted, some of whose events belong to the window, and loss is not accepted.
    """
    start, end = request.start_cut or Cut({}), request.end_cut or Cut({})
    gone = [shard for shard in end if shard not in known and end[shard] != start.get(shard)]
    if gone and request.on_loss == "fail":
        raise StartTrimmed(gone[0], start.get(gone[0], EARLIEST), "nothing", "the topic no longer exists")
    return replace(
        request,
        start_cut=Cut({shard: start.get(shard, EARLIEST) for shard in (*known, *gone)}),
        end_cut=Cut({shard: end[shard] for shard in known}),
    )


def _times(request: PlanRequest) -> tuple[int, int] | None:
    """The times to look up, in milliseconds: the window widened by slack."""
    if request.basis not in FILTERED:
        return None
    window, slack = request.window, request.slack
    return cuts.lookup_ms(window.start, -slack), cuts.lookup_ms(window.end, slack)


def _wanted_end(request: PlanRequest, shard: Shard) -> Position | None:
    """An end that is fixed before the tail is known; None: the tail it is."""
    if request.basis in FILTERED:
        return shard.end_at
    return request.end_cut[shard.name] if request.end_cut is not None else None


def _start_of(request: PlanRequest, shard: Shard) -> Position | None:
    return request.start_cut.get(shard.name) if request.start_cut is not None else None


def _bounds(request: PlanRequest, shard: Shard) -> Bounds:
    if request.basis in FILTERED:
        return cuts.publish(shard, request.window.start - request.slack)
    return cuts.given(shard, _start_of(request, shard), _wanted_end(request, shard))


def _is_doubtful(request: PlanRequest, shard: Shard, bounds: Bounds) -> bool:
    """Whether the start may be gone, so that proofs must be looked for."""
    if request.basis in FILTERED:
        return not cuts.is_held_from_before(shard, request.window.start - request.slack)
    return bounds.start < shard.layout.head and not shard.layout.holds(bounds.start.parts[0])


def _doubt(request: PlanRequest, bounds: Bounds, evidence: Evidence, now: datetime) -> str:
    if request.basis in FILTERED:
        return doubt_in_window(evidence, request.window, request.slack, now)
    return doubt_since_position(evidence, bounds.start)
