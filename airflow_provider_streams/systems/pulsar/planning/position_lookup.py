"""Where a window is in each shard of its source, and whether its end is final.

An open transaction holds back all entries after its first one, so entries before a place may still become readable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from airflow_provider_streams.errors import ProtocolError, SourceNotFound, SystemUnavailable, WindowNotReady
from airflow_provider_streams.model.plan.plan import PlanRequest
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.io_free_rules import together
from airflow_provider_streams.systems.pulsar.client.admin import requests
from airflow_provider_streams.systems.pulsar.client.admin.client import AsyncAdminClient
from airflow_provider_streams.systems.pulsar.client.admin.responses import EntryId, InternalStats
from airflow_provider_streams.systems.pulsar.client.queries import Topic
from airflow_provider_streams.systems.pulsar.metadata.ledgers import EARLIEST, Layout, after, at
from airflow_provider_streams.systems.pulsar.metadata.topics import topic_stats
from airflow_provider_streams.systems.pulsar.planning import cuts
from airflow_provider_streams.systems.pulsar.planning.boundary_search import Edge, edges_of
from airflow_provider_streams.systems.pulsar.planning.cluster_state import ClusterState, Shards
from airflow_provider_streams.systems.pulsar.planning.cuts import FILTERED, Found, Shard


class Finder:
    """Finds windows in the shards of one cluster."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster

    async def find(self, request: PlanRequest, shards: Shards) -> list[Found]:
        """Where a window is in each shard; raises `WindowNotReady` if its end is not certain yet."""
        if request.basis in FILTERED:
            found = await self._by_time(request, shards)
        else:
            found = [_found(request, shard) for shard in await self.survey(shards)]
        ends = {one.shard.name: _certain_end(request, one) for one in found}
        beyond = {
            one.shard.name: f"its end {ends[one.shard.name]} is beyond the tail {one.shard.layout.end}"
            for one in found
            if cuts.is_beyond_tail(one.shard, ends[one.shard.name])
        }
        waiting, passed = await waiting_shards(self._cluster.admin, [one.shard for one in found], ends)
        later = await self._open_after(request, [one for one in found if one.shard.name in waiting], waiting)
        if not_ready := {**beyond, **{name: one for name, one in waiting.items() if name not in later}}:
            raise WindowNotReady(request.source, request.window, _listed(not_ready))
        last: Mapping[str, Position | None] = {}
        if asked := passed | later.keys():
            last = await self._cluster.last_message_ids(sorted(asked))
        return [_moved(request, later.get(one.shard.name, one), last) for one in found]

    async def in_doubt(self, request: PlanRequest, shards: Shards) -> Shards:
        """The shards whose open transactions may hold back messages from before the window's end.

        Raises:
            WindowNotReady: one of them certainly does.
        """
        stored = [Shard(name, stats) for name, stats in (await self._cluster.stats(shards)).items()]
        waiting, _ = await waiting_shards(
            self._cluster.admin, stored, {shard.name: shard.layout.end for shard in stored}
        )
        times = await together(published_open(self._cluster.admin, one) for one in waiting.values())
        published = dict(zip(waiting, times, strict=True))
        end_ms, slack_ms = request.stored.end_ms, cuts.milliseconds(request.slack)
        before = {name: waiting[name] for name, ms in published.items() if ms is not None and ms < end_ms}
        if before:
            raise WindowNotReady(request.source, request.window, _listed(before))
        return {name: shards[name] for name, ms in published.items() if ms is None or ms < end_ms + slack_ms}

    async def _open_after(
        self, request: PlanRequest, found: Sequence[Found], waiting: Mapping[str, Waiting]
    ) -> dict[str, Found]:
        """The shards whose open transactions began after the window, so that their first messages prove its end."""
        starts = {one.shard.name: one.edges[0] for one in found if one.edges}
        published = await together(published_open(self._cluster.admin, waiting[name]) for name in starts)
        after_ms = request.stored.end_ms + cuts.milliseconds(request.slack)
        later = {
            name: (start, Edge(waiting[name].first, is_proven=True))
            for (name, start), publish_ms in zip(starts.items(), published, strict=True)
            if publish_ms is not None and publish_ms >= after_ms + start.disorder_ms
        }
        return {one.shard.name: replace(one, edges=later[one.shard.name]) for one in found if one.shard.name in later}

    async def _by_time(self, request: PlanRequest, shards: Shards) -> list[Found]:
        """Bases that look publish times up, before they list ledgers, so that these contain the answers.

        The closing times of ledgers would save lookups but cost more probes, as edges lie inside ledgers.
        """
        stored, slack_ms = request.stored, cuts.milliseconds(request.slack)
        times = stored.start_ms, stored.end_ms
        reach = times[0] - slack_ms, times[1] + slack_ms
        starts, ends = await together(self._cluster.look_up(shards, publish_ms) for publish_ms in reach)
        stats = await self._cluster.stats(shards)
        walks = {
            shard: edges_of(shard, layout, (starts.get(shard, EARLIEST), ends.get(shard, EARLIEST)), times, slack_ms)
            for shard, one in stats.items()
            if not (layout := Layout.of(one)).is_empty
        }
        edges = await self._cluster.walk(walks)
        return [_between(request, name, one, edges.get(name)) for name, one in stats.items()]

    async def survey(self, shards: Shards) -> list[Shard]:
        """What shards hold. Last messages are asked for before ledgers, so these contain them, unless they are gone."""
        last = await self._last_messages(shards)
        stats = await self._cluster.stats(shards)
        return [Shard(shard, stats[shard], last.get(shard)) for shard in shards]

    async def _last_messages(self, shards: Shards) -> Mapping[str, Position | None]:
        try:
            return await self._cluster.last_message_ids(shards)
        except SourceNotFound:
            if not any(topic.partitions for topic in shards.values()):
                raise
        stats = await self._cluster.stats(shards)
        return await self._cluster.last_message_ids(shard for shard, found in stats.items() if found is not None)


def _listed(reasons: Mapping[str, object]) -> str:
    return "; ".join(f"{shard}: {reason}" for shard, reason in reasons.items())


def _between(request: PlanRequest, name: str, stats: InternalStats | None, edges: tuple[Edge, Edge] | None) -> Found:
    """A window of time in one shard; without edges, the shard stores nothing."""
    nothing = Edge(Layout.of(stats).end, is_proven=False)
    known = edges or (nothing, nothing)
    last = max((edge.last for edge in known if edge.last is not None), default=None)
    return _found(request, Shard(name, stats, at(*last) if last else None), known)


def _found(request: PlanRequest, shard: Shard, edges: tuple[Edge, Edge] | None = None) -> Found:
    """A window between its edges, or between given cuts or the shard's own bounds."""
    if edges:
        return Found(shard, cuts.publish(shard, *edges), edges)
    start, end = request.start_cut or Cut({}), request.end_cut or Cut({})
    return Found(shard, cuts.given(shard, start.get(shard.name), end.get(shard.name)))


def _certain_end(request: PlanRequest, found: Found) -> Position:
    """The place before which nothing may become readable later, for the window to be whole."""
    if found.edges:
        # a readable message after an end proves it; otherwise everything stored may belong to the window
        return found.bounds.end if found.edges[1].is_proven else found.shard.layout.end
    if request.end_cut is not None:
        return request.end_cut[found.shard.name]
    return EARLIEST


def _moved(request: PlanRequest, found: Found, last: Mapping[str, Position | None]) -> Found:
    """The same with a new tail."""
    if found.shard.name not in last:
        return found
    return _found(request, replace(found.shard, last=last[found.shard.name]), found.edges)


@dataclass(frozen=True, slots=True)
class Waiting:
    """What an open transaction holds back in a shard."""

    shard: Shard
    last: EntryId
    """The last entry before the wanted end that waits."""
    first: Position
    """The first one: a message of the transaction."""

    def __str__(self) -> str:
        return f"entry {self.last} waits for an open transaction"


async def waiting_shards(
    admin: AsyncAdminClient, shards: Sequence[Shard], ends: Mapping[str, Position]
) -> tuple[dict[str, Waiting], set[str]]:
    """The shards whose end is not final, and the shards with entries after their tail whose end is final.

    Only a shard that stores entries between its tail and its end needs a call. Once all of these are final, everything
    readable is before a tail that is asked for later.
    """
    asked = [(shard, entry) for shard in shards if (entry := cuts.waiting_entry(shard, ends[shard.name]))]
    buffers = await admin.all([requests.transaction_buffer(shard.name) for shard, _ in asked])
    waiting: dict[str, Waiting] = {}
    for (shard, entry), buffer in zip(asked, buffers, strict=True):
        if buffer is None or (buffer.max_read is not None and entry <= buffer.max_read):
            continue  # every entry up to this one is readable now or never
        layout = shard.layout
        first = layout.head if buffer.max_read is None else layout.shifted(layout.inside(after(buffer.max_read)), 0)
        waiting[shard.name] = Waiting(shard, entry, first)
    return waiting, {shard.name for shard, _ in asked} - waiting.keys()


async def published_open(admin: AsyncAdminClient, waiting: Waiting) -> int | None:
    """When the first waiting message was published, in milliseconds; None: `requests.peek` cannot tell."""
    ledger, entry, _ = waiting.first.parts
    try:
        seen = await admin(requests.peek(waiting.shard.name, ledger, entry))
    except (SystemUnavailable, ProtocolError):
        return None
    if seen is None or seen.marker_type is not None or seen.publish_time is None:
        return None
    return int(seen.publish_time.timestamp() * 1000)


async def has_open_transactions(admin: AsyncAdminClient, topics: Iterable[Topic]) -> bool:
    """Whether some transaction is open on one of these topics; one call for each."""
    return any(one.open_transactions for one in await admin.all(map(topic_stats, topics)))
