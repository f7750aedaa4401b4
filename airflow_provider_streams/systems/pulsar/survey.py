"""Asks a cluster what planning needs to know of shards: times, ledgers, last messages, metadata, retention."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from airflow_provider_streams.errors import AccessError, SystemUnavailable
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.systems.pulsar import names
from airflow_provider_streams.systems.pulsar.admin import requests
from airflow_provider_streams.systems.pulsar.admin.answers import InternalInfo, InternalStats, Retention
from airflow_provider_streams.systems.pulsar.admin.client import AsyncAdminClient
from airflow_provider_streams.systems.pulsar.layout import at
from airflow_provider_streams.systems.pulsar.looks import Look, Place
from airflow_provider_streams.systems.pulsar.questions import Topic
from airflow_provider_streams.systems.rules import together

T = TypeVar("T")

Shards = Mapping[str, Topic]
"""The shards of a source, in order, each with its topic."""


class Readers(Protocol):
    """What only the binary protocol tells, as it is what readers are sent. Blocks."""

    def last_message_ids(self, topics: Iterable[str]) -> Mapping[str, Position | None]:
        """The last readable message of each shard; None: there is none."""

    def look(self, places: Sequence[Place]) -> Sequence[Look]:
        """What a reader is sent at each of these places."""


async def cluster_of(admin: AsyncAdminClient, otherwise: str) -> str:
    """The cluster's name, part of a plan since positions are valid there alone.

    An instance of several clusters tells an ordinary user all their names, but not which one answers: then `otherwise`.
    """
    found = [name for name in await admin(requests.clusters()) if name != "global"]
    return found[0] if len(found) == 1 else otherwise


async def look_up(admin: AsyncAdminClient, shards: Shards, publish_ms: int) -> dict[str, Position]:
    """Where the broker puts a time (milliseconds) in each shard; a partition not made yet is left out."""
    calls = [topic.of_shard(shard, requests.message_id_at(shard, publish_ms)) for shard, topic in shards.items()]
    answers = zip(shards, await admin.all(calls), strict=True)
    return {shard: at(answer.ledger, answer.entry) for shard, answer in answers if answer is not None}


async def stats_of(admin: AsyncAdminClient, shards: Shards) -> dict[str, InternalStats | None]:
    """The ledgers of each shard; None: a partition that has not been made yet. One call answers for a whole topic."""
    found: dict[str, InternalStats | None] = {}
    whole = [topic for topic in dict.fromkeys(shards.values()) if topic.partitions > 1]
    for one in await together(_by_topic(admin, topic) for topic in whole):
        found |= one
    rest = {shard: topic for shard, topic in shards.items() if shard not in found}
    calls = [topic.of_shard(shard, requests.internal_stats(shard)) for shard, topic in rest.items()]
    found |= dict(zip(rest, await admin.all(calls), strict=True))
    return {shard: found[shard] for shard in shards}


async def stats_if_there(admin: AsyncAdminClient, shards: Iterable[str]) -> dict[str, InternalStats | None]:
    """The ledgers of each shard; None: it does not exist any more."""
    asked = list(shards)
    calls = [requests.if_made(requests.internal_stats(shard)) for shard in asked]
    return dict(zip(asked, await admin.all(calls), strict=True))


async def _by_topic(admin: AsyncAdminClient, topic: Topic) -> Mapping[str, InternalStats]:
    try:
        return await admin(requests.partitioned_internal_stats(topic.name))
    except (AccessError, SystemUnavailable):
        # the partitions are asked one by one, and name the cause if it is a lasting one
        return {}


async def infos_of(admin: AsyncAdminClient, shards: Iterable[str]) -> dict[str, InternalInfo]:
    """What the metadata store has about shards that exist; one call for the partitions of a topic.

    A shard is left out where the broker does not tell.
    """
    by_topic: dict[str, list[str]] = {}
    for shard in shards:
        by_topic.setdefault(names.parent_of(shard), []).append(shard)
    asked = [topic if len(some) > 1 else some[0] for topic, some in by_topic.items()]
    wanted = {shard for some in by_topic.values() for shard in some}
    found = await together(_info(admin, name) for name in asked)
    return {shard: info for one in found for shard, info in one.items() if shard in wanted}


async def _info(admin: AsyncAdminClient, name: str) -> Mapping[str, InternalInfo]:
    try:
        return await admin(requests.internal_info(name))
    except (AccessError, SystemUnavailable):
        return {}


async def retention_of(admin: AsyncAdminClient, shards: Iterable[str]) -> dict[str, Retention | None]:
    """Each shard's retention; asked once per topic, as partitions share it. None: this user may not know."""
    topics = {shard: names.parent_of(shard) for shard in shards}
    asked = list(dict.fromkeys(topics.values()))
    found = dict(zip(asked, await admin.all([requests.retention(topic) for topic in asked]), strict=True))
    return {shard: found[topic] for shard, topic in topics.items()}
