"""A window to positions: where it lies (`finding`), whether it is held (`retention`), put together (`building`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.plan import Plan, PlanRequest
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.model.sighting import Identity, Sighting
from airflow_provider_streams.systems.pulsar.admin import requests
from airflow_provider_streams.systems.pulsar.admin.answers import InternalStats
from airflow_provider_streams.systems.pulsar.admin.client import AsyncAdminClient
from airflow_provider_streams.systems.pulsar.assemble_plan import FILTERED, Resolved, build, with_selection
from airflow_provider_streams.systems.pulsar.beginning import (
    Doubt,
    Evidence,
    doubt_at_head,
    doubt_in_window,
    doubt_since_position,
    held_since,
)
from airflow_provider_streams.systems.pulsar.cuts import Shard
from airflow_provider_streams.systems.pulsar.finality import has_open_transactions
from airflow_provider_streams.systems.pulsar.finding import Finder, Found
from airflow_provider_streams.systems.pulsar.identity import (
    check_ledgers,
    check_lives,
    check_name,
    identities,
    unknown_shards,
)
from airflow_provider_streams.systems.pulsar.layout import Layout
from airflow_provider_streams.systems.pulsar.lives import Lives
from airflow_provider_streams.systems.pulsar.looks import Place, moment_of
from airflow_provider_streams.systems.pulsar.names import parent_of
from airflow_provider_streams.systems.pulsar.questions import Topic, aask, shards_of, topics_of
from airflow_provider_streams.systems.pulsar.requested import (
    check_seen,
    check_time,
    present_at_end,
    source_of,
    with_new_shards,
)
from airflow_provider_streams.systems.pulsar.schemas import decoding_for
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.pulsar.survey import (
    Readers,
    Shards,
    cluster_of,
    infos_of,
    retention_of,
    stats_if_there,
    stats_of,
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
        readers: asks the binary protocol what readers are sent.
        cluster: its name, if the cluster does not tell it.
        clock: the time that decides whether a window is over.
    """

    def __init__(
        self,
        admin: AsyncAdminClient,
        readers: Readers,
        *,
        cluster: str,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._admin, self._readers, self._cluster, self._clock = admin, readers, cluster, clock
        self._finder = Finder(admin, readers)

    async def plan(self, request: PlanRequest) -> Plan:
        """Resolve a window to positions.

        Raises:
            WindowNotReady: its end is not certain yet.
            StartTrimmed: events of its start were removed, and loss is not accepted.
            StartUnproven: nobody can say whether they were, and that is not accepted.
            SourceNotFound: a topic does not exist.
            InvalidRequest: cuts that do not fit the source.
        """
        source = source_of(request)
        check_time(request, self._clock())
        shards = await self._shards(source)
        if request.basis == "append":
            shards = present_at_end(request, shards)
        check_seen(request, shards)
        lives = await self._lives(request, shards)
        request = with_new_shards(lives.request(), shards)
        found = await self._finder.find(request, shards)
        evidence = await self._evidence(request, found)
        cluster = await cluster_of(self._admin, self._cluster)
        now = self._clock()
        resolved = [_resolved(request, one, evidence[one.shard.name], lives, now) for one in found]
        plan = build(request, resolved, cluster=cluster, observed_at=now)
        if request.with_schemas:
            plan = replace(plan, decoding=await aask(self._admin, decoding_for(source, shards)))
        return with_selection(plan, source.selection)

    async def check_ready(self, request: PlanRequest, topics: tuple[Topic, ...] | None = None) -> None:
        """Whether the window's end is certain; whether its start is still held is the read's business.

        The same rule as `plan`, in as few calls as the case takes: one a topic where no transaction is open. An open
        one that wrote something before the window's end holds it back, four calls a shard say so.

        Args:
            request: the window.
            topics: those of its source, if they are known already.

        Raises:
            WindowNotReady: it is not certain yet.
        """
        source = source_of(request)
        check_time(request, self._clock())
        if request.basis == "chained":
            # it ends at the tail, wherever that is
            return
        if topics is None:
            topics = await aask(self._admin, topics_of(source))
        if request.basis in FILTERED and not await has_open_transactions(self._admin, topics):
            return
        shards: Shards = shards_of(topics)
        if request.basis in FILTERED:
            shards = await self._finder.in_doubt(request, shards)
        await self._finder.find(with_new_shards(replace(request, on_loss="record"), shards), shards)

    async def shards(self, source: PulsarSource) -> tuple[str, ...]:
        """The full names of a source's shards now."""
        return tuple(await self._shards(source))

    async def cut_at(self, source: PulsarSource, rule: Callable[[Shard], Position]) -> Cut:
        """The cut `earliest` or `latest` of a source now."""
        shards = await self._shards(source)
        return Cut({shard.name: rule(shard) for shard in await self._finder.survey(shards)})

    async def look_at(self, source: PulsarSource) -> Sighting:
        """Where the shards of a source end now, and which life of theirs this is."""
        return await self.look(await aask(self._admin, topics_of(source)))

    async def look(self, topics: Sequence[Topic]) -> Sighting:
        """The same of topics that are known."""
        shards = shards_of(topics)
        stats = await stats_of(self._admin, shards)
        infos = await infos_of(self._admin, shards)
        tail = Cut({shard: Layout.of(found).end for shard, found in stats.items()})
        return Sighting(self._clock(), tail, identities(infos))

    async def identity(self, source: PulsarSource) -> Identity:
        """Which life of each of a source's shards this is."""
        shards = await self._shards(source)
        return identities(await infos_of(self._admin, shards))

    async def check_origin(self, plan: Plan) -> None:
        """Refuse a plan of another cluster, or of another life of a topic; one call per topic, where that is enough.

        Raises:
            OtherCluster: what answers is not what the plan was made of.
        """
        # of a topic that is gone the read tells
        planned = [shard for shard, _ in plan.source.identity]
        infos = await infos_of(self._admin, await self._existing(planned))
        check_lives(plan, infos)
        if unknown := list(unknown_shards(plan, infos)):
            check_ledgers(plan, await stats_if_there(self._admin, unknown))
            check_name(plan, await cluster_of(self._admin, self._cluster))

    async def _shards(self, source: PulsarSource) -> dict[str, Topic]:
        return shards_of(await aask(self._admin, topics_of(source)))

    async def _existing(self, shards: Iterable[str]) -> list[str]:
        topics = {shard: parent_of(shard) for shard in shards}
        asked = list(dict.fromkeys(topics.values()))
        counts = await self._admin.all(requests.if_made(requests.partitions(topic)) for topic in asked)
        there = {topic for topic, count in zip(asked, counts, strict=True) if count is not None}
        return [shard for shard, topic in topics.items() if topic in there]

    async def horizon(self, source: PulsarSource) -> datetime | None:
        """The time from which on every shard still holds what was published; None: nothing was removed."""
        shards = await self._shards(source)
        stats = await stats_of(self._admin, shards)
        infos = await infos_of(self._admin, shards)
        first = await self._first_published(stats)
        found = [Evidence(shard, stats[shard], infos.get(shard), None, first.get(shard)) for shard in shards]
        return max((moment for evidence in found if (moment := held_since(evidence)) is not None), default=None)

    async def _lives(self, request: PlanRequest, shards: Shards) -> Lives:
        """Asks only where a cut's life is known."""
        known = dict((*request.start_identity, *request.end_identity))
        return Lives.of(request, await infos_of(self._admin, [shard for shard in shards if shard in known]))

    async def _evidence(self, request: PlanRequest, found: list[Found]) -> dict[str, Evidence]:
        """What can prove that nothing was removed, and when data will be. Metadata are asked for after ledgers."""
        shards = [one.shard.name for one in found]
        infos = await infos_of(self._admin, shards)
        retention = await retention_of(self._admin, shards)
        return {
            one.shard.name: Evidence(
                one.shard.name,
                one.shard.stats,
                infos.get(one.shard.name),
                retention[one.shard.name],
                moment_of(one.start.first_ms) if one.start else None,
                request.first_seen,
            )
            for one in found
        }

    async def _first_published(self, stats: Mapping[str, InternalStats | None]) -> dict[str, datetime]:
        layouts = {shard: Layout.of(found) for shard, found in stats.items()}
        places = [Place(shard, *layout.head.parts[:2]) for shard, layout in layouts.items() if not layout.is_empty]
        looks = await asyncio.to_thread(self._readers.look, places)
        met = zip(places, looks, strict=True)
        return {place.topic: moment for place, look in met if (moment := look.published) is not None}


def _resolved(request: PlanRequest, found: Found, evidence: Evidence, lives: Lives, now: datetime) -> Resolved:
    gone = lives.doubt(found.shard.name)
    loss = lives.loss(found.shard.name, gone) if gone else None
    doubt = gone or _doubt(request, found, evidence, now)
    return Resolved(found.shard, found.bounds, evidence, doubt, found.remark, loss)


def _doubt(request: PlanRequest, found: Found, evidence: Evidence, now: datetime) -> Doubt | None:
    if found.start is None:
        start = request.start_cut.get(found.shard.name) if request.start_cut is not None else None
        if start is not None:
            return doubt_since_position(evidence, start)
        return doubt_at_head(evidence, request.window)
    return doubt_in_window(evidence, request.stored, request.slack, now, older_is_held=found.start.is_proven)
