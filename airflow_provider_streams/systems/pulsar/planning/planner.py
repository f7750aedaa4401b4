"""A window to positions: where it is, whether it is still held, and the plan of both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from airflow_provider_streams.model.plan.plan import Plan, PlanRequest
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.stream.tail_observation import Incarnation, TailObservation
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pulsar.client.admin.responses import InternalStats
from airflow_provider_streams.systems.pulsar.client.queries import (
    Topic,
    aask,
    remaining_topics_of,
    shards_of,
    topics_of,
)
from airflow_provider_streams.systems.pulsar.metadata import incarnation as incarnations
from airflow_provider_streams.systems.pulsar.metadata.ledgers import Layout
from airflow_provider_streams.systems.pulsar.metadata.schemas import decoding_for
from airflow_provider_streams.systems.pulsar.planning import request_validation, start_verification
from airflow_provider_streams.systems.pulsar.planning.assemble_plan import Resolved, build
from airflow_provider_streams.systems.pulsar.planning.cluster_state import ClusterState, Shards
from airflow_provider_streams.systems.pulsar.planning.cuts import FILTERED, Found, Shard
from airflow_provider_streams.systems.pulsar.planning.entry_probe import ProbePoint
from airflow_provider_streams.systems.pulsar.planning.position_lookup import Finder, has_open_transactions
from airflow_provider_streams.systems.pulsar.planning.shard_evidence import Evidence, seen_by_shard
from airflow_provider_streams.systems.pulsar.source import PulsarSource

T = TypeVar("T")


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
        cluster: its state.
        clock: the time that decides whether a window is over.
    """

    def __init__(self, cluster: ClusterState, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._cluster, self._clock, self._admin = cluster, clock, cluster.admin
        self._finder = Finder(cluster)

    async def plan(self, request: PlanRequest) -> Plan:
        """Resolve a window to positions. It reads schemas last, to know every version before the window's end.

        Raises:
            WindowNotReady: its end is not certain yet.
            StartTrimmed: events of its start were removed, and loss is not accepted.
            StartUnproven: nothing shows whether events were removed, and that is not accepted.
            SourceNotFound: a topic does not exist.
            InvalidRequest: cuts that do not fit the source.
        """
        source = request_validation.source_of(request)
        request_validation.check_time(request, self._clock())
        shards = shards_of(
            await aask(self._admin, remaining_topics_of(source, request_validation.seen_topics(request)))
        )
        request_validation.check_server_time(request, self._admin.clock.latest())
        gone = request_validation.gone_since_seen(request, shards)
        request_validation.check_lacking(request, shards, gone)
        if request.basis == "append":
            shards = request_validation.present_at_end(request, shards)
        # only a cut whose incarnation is known needs the present one
        known = dict((*request.start_incarnation, *request.end_incarnation))
        infos = await self._cluster.infos(shard for shard in shards if shard in known)
        recreated = request_validation.RecreatedShards.of(request, infos)
        request = request_validation.with_new_shards(recreated.request(), shards)
        found = await self._finder.find(request, shards) if shards else []
        evidence = await self._evidence(request, found)
        cluster, now = await self._cluster.name(), self._clock()
        resolved = [_resolved(request, one, evidence[one.shard.name], recreated) for one in found]
        plan = build(request, resolved, gone, cluster=cluster, observed_at=now)
        if not request.with_schemas:
            return plan
        return replace(plan, decoding=await aask(self._admin, decoding_for(source, shards)))

    async def check_ready(self, request: PlanRequest, topics: tuple[Topic, ...] | None = None) -> None:
        """Check only whether the window's end is certain, in as few calls as possible.

        The rule and its `WindowNotReady` are the same as in `plan`. Without an open transaction, one call per topic is
        enough. With an open one, four calls per shard tell whether it wrote something before the window's end.
        """
        source = request_validation.source_of(request)
        request_validation.check_time(request, self._clock())
        if topics is None:
            topics = await aask(self._admin, topics_of(source))
        is_filtered = request.basis in FILTERED
        is_open = is_filtered and await has_open_transactions(self._admin, topics)
        request_validation.check_server_time(request, self._admin.clock.latest())
        if request.basis == "chained" or (is_filtered and not is_open):
            return  # a chained window ends at the tail
        shards: Shards = shards_of(topics)
        if request.basis in FILTERED:
            shards = await self._finder.in_doubt(request, shards)
        await self._finder.find(request_validation.with_new_shards(replace(request, on_loss="record"), shards), shards)

    async def shards(self, source: PulsarSource) -> dict[str, Topic]:
        """The present shards of a source, in order, each with its topic."""
        return shards_of(await aask(self._admin, topics_of(source)))

    async def cut_at(self, source: PulsarSource, rule: Callable[[Shard], Position]) -> Cut:
        """The cut `earliest` or `latest` of a source now."""
        shards = await self.shards(source)
        return Cut({shard.name: rule(shard) for shard in await self._finder.survey(shards)})

    async def observe_tail(self, source: PulsarSource) -> TailObservation:
        """Where the shards of a source end now, and which incarnations these are."""
        return await self.observe_topics(await aask(self._admin, topics_of(source)))

    async def observe_topics(self, topics: Sequence[Topic]) -> TailObservation:
        """The same for known topics."""
        shards = shards_of(topics)
        stats = await self._cluster.stats(shards)
        infos = await self._cluster.infos(shards)
        layouts = {shard: Layout.of(found) for shard, found in stats.items()}
        empty = frozenset(shard for shard, found in stats.items() if found and layouts[shard].is_empty)
        tail = Cut({shard: layout.end for shard, layout in layouts.items()})
        return TailObservation(self._clock(), tail, incarnations.incarnations_of(infos), empty)

    async def incarnation(self, source: PulsarSource) -> Incarnation:
        """The present incarnation of each shard of a source."""
        return incarnations.incarnations_of(await self._cluster.infos(await self.shards(source)))

    async def check_origin(self, plan: Plan) -> None:
        """Raise `SourceReplaced` for a plan of another cluster or incarnation; usually by one call per topic."""
        # the read reports a topic that is gone
        planned = [shard for shard, _ in plan.source.incarnation]
        infos = await self._cluster.infos(await self._cluster.existing(planned))
        incarnations.check_incarnations(plan, infos)
        if unknown := list(incarnations.unknown_shards(plan, infos)):
            incarnations.check_ledgers(plan, await self._cluster.stats_if_exists(unknown))
            incarnations.check_name(plan, await self._cluster.name())

    async def horizon(self, source: PulsarSource) -> datetime | None:
        """The time since which every shard still holds everything published; None: nothing was removed."""
        shards = await self.shards(source)
        stats = await self._cluster.stats(shards)
        infos = await self._cluster.infos(shards)
        first = await self._first_published(stats)
        found = [Evidence(shard, stats[shard], infos.get(shard), None, first.get(shard)) for shard in shards]
        return max(
            (moment for evidence in found if (moment := start_verification.held_since(evidence)) is not None),
            default=None,
        )

    async def _evidence(self, request: PlanRequest, found: list[Found]) -> dict[str, Evidence]:
        """What can prove that nothing was removed, and when data will be; needs metadata from after the ledgers."""
        shards = [one.shard.name for one in found]
        infos = await self._cluster.infos(shards)
        retention = await self._cluster.retention(shards)
        seen = seen_by_shard(request.tail_observations)
        return {
            one.shard.name: Evidence(
                one.shard.name,
                one.shard.stats,
                infos.get(one.shard.name),
                retention[one.shard.name],
                one.edges[0].first_published if one.edges else None,
                seen.get(one.shard.name, ()),
            )
            for one in found
        }

    async def _first_published(self, stats: Mapping[str, InternalStats | None]) -> dict[str, datetime]:
        layouts = {shard: Layout.of(found) for shard, found in stats.items()}
        places = [ProbePoint(shard, *layout.head.parts[:2]) for shard, layout in layouts.items() if not layout.is_empty]
        met = zip(places, await self._cluster.probe(places), strict=True)
        return {place.topic: moment for place, probe in met if (moment := probe.published) is not None}


def _resolved(
    request: PlanRequest, found: Found, evidence: Evidence, recreated: request_validation.RecreatedShards
) -> Resolved:
    if recreated.is_quiet(found.shard.name):
        return Resolved(found, evidence, None)
    gone = recreated.doubt(found.shard.name)
    loss = recreated.loss(found.shard.name, gone) if gone else None
    return Resolved(found, evidence, gone or _doubt(request, found, evidence), loss)


def _doubt(request: PlanRequest, found: Found, evidence: Evidence) -> start_verification.Doubt | None:
    if found.edges is None:
        shard = found.shard.name
        start = request.start_cut.get(shard) if request.start_cut is not None else None
        if start is None:
            return start_verification.doubt_at_head(evidence, Window(request.window.start, request.seen_until))
        # `RecreatedShards` has compared the incarnation of the cut: observations of another one came before it
        known = shard in dict(request.start_incarnation)
        ours = replace(evidence, seen=evidence.of_this_incarnation) if known else evidence
        return start_verification.doubt_since_position(ours, start, request.seen_before)
    return start_verification.doubt_in_window(
        evidence, request.stored, request.slack, older_is_held=found.edges[0].is_proven
    )
