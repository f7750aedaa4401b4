"""Asks a cluster for all that planning needs to know of shards: times, ledgers, last messages, metadata, retention."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from airflow_provider_streams.errors import AccessError, SourceNotFound, SystemUnavailable
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.io_free_rules import run, together
from airflow_provider_streams.systems.pulsar.client.admin import requests
from airflow_provider_streams.systems.pulsar.client.admin.client import AsyncAdminClient
from airflow_provider_streams.systems.pulsar.client.admin.responses import InternalInfo, InternalStats, Retention
from airflow_provider_streams.systems.pulsar.client.queries import Topic
from airflow_provider_streams.systems.pulsar.metadata.ledgers import at
from airflow_provider_streams.systems.pulsar.metadata.names import parent_of
from airflow_provider_streams.systems.pulsar.planning.entry_probe import EntryProbe, Key, ProbePoint, Walk, side_by_side
from airflow_provider_streams.systems.rest.request import Request

T = TypeVar("T")

Shards = Mapping[str, Topic]
"""The shards of a source, in order, each with its topic."""


class Readers(Protocol):
    """What readers are sent, which only the binary protocol knows. Blocks."""

    def last_message_ids(self, topics: Iterable[str]) -> Mapping[str, Position | None]:
        """The last readable message of each shard; None: there is none."""

    def probe(self, places: Sequence[ProbePoint]) -> Sequence[EntryProbe]:
        """What a reader is sent at each of these places."""


class ClusterState:
    """The present state of one cluster.

    Args:
        admin: its REST service.
        readers: asks the binary protocol.
        fallback_name: its name, if the cluster does not tell it.
    """

    def __init__(self, admin: AsyncAdminClient, readers: Readers, fallback_name: str = "") -> None:
        self.admin, self._readers, self._fallback_name = admin, readers, fallback_name

    async def name(self) -> str:
        """The cluster's name, which a plan records because its positions are valid only there.

        An instance of several clusters lists all their names, but does not say which one answers: then the fallback.
        """
        found = [name for name in await self.admin(requests.clusters()) if name != "global"]
        return found[0] if len(found) == 1 else self._fallback_name

    async def walk(self, walks: Mapping[Key, Walk[T]]) -> dict[Key, T]:
        """The results of walks."""
        return await asyncio.to_thread(run, side_by_side(walks), self._readers.probe)

    async def probe(self, places: Sequence[ProbePoint]) -> Sequence[EntryProbe]:
        """What readers are sent at these places."""
        return await asyncio.to_thread(self._readers.probe, places)

    async def last_message_ids(self, shards: Iterable[str]) -> Mapping[str, Position | None]:
        """The last readable message of each shard; None: there is none."""
        return await asyncio.to_thread(self._readers.last_message_ids, list(shards))

    async def look_up(self, shards: Shards, publish_ms: int) -> dict[str, Position]:
        """Where the broker puts a time (milliseconds) in each shard, without partitions that were never created."""
        calls = [topic.of_shard(shard, requests.message_id_at(shard, publish_ms)) for shard, topic in shards.items()]
        answers = zip(shards, await self.admin.all(calls), strict=True)
        return {shard: at(*answer) for shard, answer in answers if answer is not None}

    async def stats(self, shards: Shards) -> dict[str, InternalStats | None]:
        """The ledgers of each shard; None: a partition that was never created. One call answers for a whole topic."""
        found: dict[str, InternalStats | None] = {}
        whole = [topic for topic in dict.fromkeys(shards.values()) if topic.partitions > 1]
        # calls for single partitions follow a failure, and fail with the cause if it is a lasting one
        for one in await together(self._or_none(requests.partitioned_internal_stats(topic.name)) for topic in whole):
            found |= one or {}
        rest = {shard: topic for shard, topic in shards.items() if shard not in found}
        calls = [topic.of_shard(shard, requests.internal_stats(shard)) for shard, topic in rest.items()]
        found |= dict(zip(rest, await self.admin.all(calls), strict=True))
        return {shard: found[shard] for shard in shards}

    async def stats_if_exists(self, shards: Iterable[str]) -> dict[str, InternalStats | None]:
        """The ledgers of each shard; None: it no longer exists."""
        asked = list(shards)
        calls = [requests.if_exists(requests.internal_stats(shard)) for shard in asked]
        return dict(zip(asked, await self.admin.all(calls), strict=True))

    async def existing(self, shards: Iterable[str]) -> list[str]:
        """The shards whose topics exist."""
        topics = {shard: parent_of(shard) for shard in shards}
        asked = list(dict.fromkeys(topics.values()))
        counts = await self.admin.all(requests.if_exists(requests.partitions(topic)) for topic in asked)
        found = {topic for topic, count in zip(asked, counts, strict=True) if count is not None}
        return [shard for shard, topic in topics.items() if topic in found]

    async def infos(self, shards: Iterable[str]) -> dict[str, InternalInfo]:
        """What the metadata store has about shards that exist, where the broker tells; one call for all of a topic."""
        by_topic: dict[str, list[str]] = {}
        for shard in shards:
            by_topic.setdefault(parent_of(shard), []).append(shard)
        found = await together(self._infos_of_topic(topic, some) for topic, some in by_topic.items())
        return {shard: info for one in found for shard, info in one.items()}

    async def retention(self, shards: Iterable[str]) -> dict[str, Retention | None]:
        """Each shard's retention, which its topic's partitions share; None: this user may not read it."""
        topics = {shard: parent_of(shard) for shard in shards}
        asked = list(dict.fromkeys(topics.values()))
        found = dict(zip(asked, await self.admin.all(map(requests.retention, asked)), strict=True))
        return {shard: found[topic] for shard, topic in topics.items()}

    async def _infos_of_topic(self, topic: str, shards: Sequence[str]) -> dict[str, InternalInfo]:
        if len(shards) == 1:
            return dict(await self._or_none(requests.internal_info(shards[0])) or {})
        found = await self._or_none(requests.internal_info_of_all(topic))
        if found is None:
            # one partition that does not exist fails the call for all of them
            stats = await self.stats_if_exists(shards)
            some = [self._or_none(requests.internal_info(shard)) for shard, one in stats.items() if one]
            found = {shard: info for one in await together(some) for shard, info in (one or {}).items()}
        return {shard: found[shard] for shard in shards if shard in found}

    async def _or_none(self, request: Request[T]) -> T | None:
        try:
            return await self.admin(request)
        except (AccessError, SourceNotFound, SystemUnavailable):
            return None
