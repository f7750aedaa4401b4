"""Where a window lies in each shard of its source."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from airflow_provider_streams.errors import SourceNotFound, WindowNotReady
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.plan import PlanRequest
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.systems.pulsar import cuts
from airflow_provider_streams.systems.pulsar.admin.answers import InternalStats
from airflow_provider_streams.systems.pulsar.admin.client import AsyncAdminClient
from airflow_provider_streams.systems.pulsar.assemble_plan import FILTERED
from airflow_provider_streams.systems.pulsar.cuts import Bounds, Shard
from airflow_provider_streams.systems.pulsar.edges import Edge, edges_of
from airflow_provider_streams.systems.pulsar.finality import Waiting, published_open, waiting_shards
from airflow_provider_streams.systems.pulsar.layout import EARLIEST, Layout
from airflow_provider_streams.systems.pulsar.looks import walk_all
from airflow_provider_streams.systems.pulsar.survey import Readers, Shards, look_up, stats_of
from airflow_provider_streams.systems.rules import together


@dataclass(frozen=True, slots=True)
class Found:
    """Where a window lies in one shard."""

    shard: Shard
    bounds: Bounds
    start: Edge | None = None
    """Of a window of time: what its start rests on."""
    end: Edge | None = None

    @property
    def remark(self) -> str:
        """What was done to find it, beyond looking its times up."""
        if self.start is None or self.end is None:
            return ""
        walked = (("start", "earlier", self.start.walked), ("end", "later", self.end.walked))
        told = [f"its {name} is {count:,} entries {way}" for name, way, count in walked if count]
        clocks = [f"messages are {timedelta(milliseconds=self.start.disorder_ms)} out of order"]
        because = clocks if self.start.disorder_ms else ["other clocks lie between"]
        return f"{' and '.join(told)} than the lookup by time says: {because[0]}" if told else ""


class Finder:
    """Finds windows in the shards of one cluster.

    Args:
        admin: its REST service.
        readers: asks the binary protocol what readers are sent.
    """

    def __init__(self, admin: AsyncAdminClient, readers: Readers) -> None:
        self._admin, self._readers = admin, readers

    async def find(self, request: PlanRequest, shards: Shards) -> list[Found]:
        """Where the window lies.

        Raises:
            WindowNotReady: its end is not certain yet.
        """
        found = await (self._by_time if request.basis in FILTERED else self._by_position)(request, shards)
        ends = {one.shard.name: _certain_end(request, one) for one in found}
        beyond = {
            one.shard.name: f"its end {ends[one.shard.name]} lies beyond the tail {one.shard.layout.end}"
            for one in found
            if cuts.is_beyond_tail(one.shard, ends[one.shard.name])
        }
        waiting, passed = await waiting_shards(self._admin, [one.shard for one in found], ends)
        later = await self._open_after(request, [one for one in found if one.shard.name in waiting], waiting)
        if not_ready := {**beyond, **{name: one for name, one in waiting.items() if name not in later}}:
            raise WindowNotReady(request.source, request.window, _listed(not_ready))
        last: Mapping[str, Position | None] = {}
        if asked := passed | later.keys():
            last = await asyncio.to_thread(self._readers.last_message_ids, sorted(asked))
        return [_moved(request, later.get(one.shard.name, one), last) for one in found]

    async def in_doubt(self, request: PlanRequest, shards: Shards) -> Shards:
        """The shards of which open transactions leave it open whether the window's end is certain.

        Raises:
            WindowNotReady: of one of them it is not, for a message waits that was published before the end.
        """
        stored = [Shard(name, stats) for name, stats in (await stats_of(self._admin, shards)).items()]
        waiting, _ = await waiting_shards(self._admin, stored, {shard.name: shard.layout.end for shard in stored})
        times = await together(published_open(self._admin, one) for one in waiting.values())
        published = dict(zip(waiting, times, strict=True))
        end_ms, slack_ms = request.stored.end_ms, cuts.milliseconds(request.slack)
        before = {name: waiting[name] for name, ms in published.items() if ms is not None and ms < end_ms}
        if before:
            raise WindowNotReady(request.source, request.window, _listed(before))
        return {name: shards[name] for name, ms in published.items() if ms is None or ms < end_ms + slack_ms}

    async def _open_after(
        self, request: PlanRequest, found: Sequence[Found], waiting: Mapping[str, Waiting]
    ) -> dict[str, Found]:
        """The shards whose open transactions began after the window: their first messages prove its end."""
        timed = [one for one in found if one.start is not None and one.end is not None]
        published = await together(published_open(self._admin, waiting[one.shard.name]) for one in timed)
        after_ms = request.stored.end_ms + cuts.milliseconds(request.slack)
        return {
            one.shard.name: replace(one, end=Edge(waiting[one.shard.name].first, is_proven=True))
            for one, publish_ms in zip(timed, published, strict=True)
            if publish_ms is not None and one.start is not None and publish_ms >= after_ms + one.start.disorder_ms
        }

    async def _by_time(self, request: PlanRequest, shards: Shards) -> list[Found]:
        """By publish times. They are looked up before ledgers are listed, so that what is answered is among these.

        The times at which ledgers were closed would save the lookups, and cost more looks: edges lie inside ledgers.
        """
        stored, slack_ms = request.stored, cuts.milliseconds(request.slack)
        times = stored.start_ms, stored.end_ms
        reach = times[0] - slack_ms, times[1] + slack_ms
        starts, ends = await together(look_up(self._admin, shards, publish_ms) for publish_ms in reach)
        stats = await stats_of(self._admin, shards)
        walks = {
            shard: edges_of(shard, layout, (starts.get(shard, EARLIEST), ends.get(shard, EARLIEST)), times, slack_ms)
            for shard, one in stats.items()
            if not (layout := Layout.of(one)).is_empty
        }
        edges = await asyncio.to_thread(walk_all, self._readers.look, walks)
        return [_between(name, one, edges.get(name)) for name, one in stats.items()]

    async def _by_position(self, request: PlanRequest, shards: Shards) -> list[Found]:
        """The bases whose cuts are given, or are the shard's own."""
        start = request.start_cut if request.start_cut is not None else Cut({})
        end = request.end_cut if request.end_cut is not None else Cut({})
        surveyed = await self.survey(shards)
        return [Found(shard, cuts.given(shard, start.get(shard.name), end.get(shard.name))) for shard in surveyed]

    async def survey(self, shards: Shards) -> list[Shard]:
        """What shards hold. Last messages are asked for before ledgers: what they name is among these, or gone."""
        last = await self._last_messages(shards)
        stats = await stats_of(self._admin, shards)
        return [Shard(shard, stats[shard], last.get(shard)) for shard in shards]

    async def _last_messages(self, shards: Shards) -> Mapping[str, Position | None]:
        try:
            return await asyncio.to_thread(self._readers.last_message_ids, list(shards))
        except SourceNotFound:
            if not any(topic.partitions for topic in shards.values()):
                raise
        made = [shard for shard, found in (await stats_of(self._admin, shards)).items() if found is not None]
        return await asyncio.to_thread(self._readers.last_message_ids, made)


def _listed(reasons: Mapping[str, object]) -> str:
    return "; ".join(f"{shard}: {reason}" for shard, reason in reasons.items())


def _between(name: str, stats: InternalStats | None, edges: tuple[Edge, Edge] | None) -> Found:
    """A window of time in one shard; without edges nothing is stored there."""
    nothing = Edge(Layout.of(stats).end, is_proven=False)
    start, end = edges or (nothing, nothing)
    last = max((edge.last for edge in (start, end) if edge.last is not None), default=None)
    shard = Shard(name, stats, Position.of(*last, -1) if last else None)
    return Found(shard, cuts.publish(shard, start, end), start, end)


def _certain_end(request: PlanRequest, found: Found) -> Position:
    """Up to where nothing may become readable any more, for the window to be whole."""
    if found.end is not None:
        # what proves an end is a readable message behind it; otherwise whatever is stored may belong to the window
        return found.bounds.end if found.end.is_proven else found.shard.layout.end
    if request.end_cut is not None:
        return request.end_cut[found.shard.name]
    return EARLIEST


def _moved(request: PlanRequest, found: Found, last: Mapping[str, Position | None]) -> Found:
    """The same with a tail that was asked for again."""
    if found.shard.name not in last:
        return found
    shard = replace(found.shard, last=last[found.shard.name])
    if found.start is not None and found.end is not None:
        return replace(found, shard=shard, bounds=cuts.publish(shard, found.start, found.end))
    start, end = request.start_cut or Cut({}), request.end_cut or Cut({})
    return replace(found, shard=shard, bounds=cuts.given(shard, start.get(shard.name), end.get(shard.name)))
