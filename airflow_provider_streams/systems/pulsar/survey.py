"""Asks a cluster what planning needs to know: shards, positions, ledgers, last messages, proofs against loss."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from airflow_provider_streams.errors import SourceNotFound
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.model.source import PulsarSource
from airflow_provider_streams.systems.pulsar import names
from airflow_provider_streams.systems.pulsar.admin import requests
from airflow_provider_streams.systems.pulsar.admin.answers import InternalStats, MessageId, Retention
from airflow_provider_streams.systems.pulsar.admin.client import AsyncAdminClient, together
from airflow_provider_streams.systems.pulsar.admin.requests import Condition, Request
from airflow_provider_streams.systems.pulsar.cuts import Shard, waiting_entry
from airflow_provider_streams.systems.pulsar.layout import at
from airflow_provider_streams.systems.pulsar.retention import Evidence

T = TypeVar("T")

LastMessages = Callable[[Sequence[str]], Mapping[str, Position | None]]
"""Asks the binary protocol for the last readable message of each shard; None: there is none. Blocks."""

# a partition is made when it is first used; until then it is not there, though its topic is
_NOT_MADE: tuple[Condition, ...] = ((404, "not yet created"), (404, "not found"))


@dataclass(frozen=True, slots=True)
class ShardName:
    """One shard of a source."""

    name: str
    is_expanded: bool
    """It was found as a partition of a named topic, so that it may not have been made yet."""


async def shards_of(admin: AsyncAdminClient, source: PulsarSource) -> tuple[ShardName, ...]:
    """Every shard of a source, partitions in order, each once.

    Raises:
        SourceNotFound: a topic does not exist, or nothing matches the pattern.
    """
    topics = await _topics(admin, source)
    counts = await together(_partition_count(admin, topic) for topic in topics)
    found = [
        shard
        for topic, count in zip(topics, counts, strict=True)
        for shard in (
            [ShardName(names.partition_name(topic, number), True) for number in range(count)]
            or [ShardName(topic, False)]
        )
    ]
    return tuple({shard.name: shard for shard in found}.values())


async def _topics(admin: AsyncAdminClient, source: PulsarSource) -> tuple[str, ...]:
    if source.pattern is None:
        return source.topics
    namespace = names.namespace_of(source.pattern)
    listed = await admin.all([requests.topics(namespace), requests.partitioned_topics(namespace)])
    found = names.matching(source.pattern, [topic for topics in listed for topic in topics])
    if not found:
        raise SourceNotFound(f"a topic that matches {source.pattern}")
    return found


async def _partition_count(admin: AsyncAdminClient, topic: str) -> int:
    return 0 if names.partition_of(topic) >= 0 else await admin(requests.partitions(topic))


async def cluster_of(admin: AsyncAdminClient, otherwise: str) -> str:
    """The cluster's name, part of a plan since positions are valid there alone.

    An instance of several clusters tells an ordinary user all their names, but not which one answers: then `otherwise`.
    """
    found = [name for name in await admin(requests.clusters()) if name != "global"]
    return found[0] if len(found) == 1 else otherwise


async def survey(
    admin: AsyncAdminClient, last_messages: LastMessages, shards: Sequence[ShardName], times: tuple[int, int] | None
) -> list[Shard]:
    """What resolving a window needs of each shard; `times` (milliseconds) are its start and end to look up, if any.

    The order is what makes it right: times first, then last messages, then ledgers, so that whatever an earlier answer
    names is in the later ones.
    """
    starts, ends = await _look_up(admin, shards, times) if times else ({}, {})
    last = await _last(admin, last_messages, shards)
    stats = await together(_stats(admin, shard) for shard in shards)
    return [
        Shard(shard.name, found, last.get(shard.name), starts.get(shard.name), ends.get(shard.name))
        for shard, found in zip(shards, stats, strict=True)
    ]


async def _last(
    admin: AsyncAdminClient, last_messages: LastMessages, shards: Sequence[ShardName]
) -> Mapping[str, Position | None]:
    try:
        return await asyncio.to_thread(last_messages, [shard.name for shard in shards])
    except SourceNotFound:
        if not any(shard.is_expanded for shard in shards):
            raise
    stats = await together(_stats(admin, shard) for shard in shards)
    made = [shard.name for shard, found in zip(shards, stats, strict=True) if found is not None]
    return await asyncio.to_thread(last_messages, made)


async def _look_up(
    admin: AsyncAdminClient, shards: Sequence[ShardName], times: tuple[int, int]
) -> tuple[dict[str, Position], dict[str, Position]]:
    answers = await admin.all([_lookup(shard, ms) for ms in times for shard in shards])
    places = [None if answer is None else at(answer.ledger, answer.entry) for answer in answers]
    return _known(shards, places[: len(shards)]), _known(shards, places[len(shards) :])


def _known(shards: Sequence[ShardName], places: Sequence[Position | None]) -> dict[str, Position]:
    return {shard.name: place for shard, place in zip(shards, places, strict=True) if place is not None}


def _lookup(shard: ShardName, publish_ms: int) -> Request[MessageId | None]:
    return _unless_not_made(shard, requests.message_id_at(shard.name, publish_ms))


async def _stats(admin: AsyncAdminClient, shard: ShardName) -> InternalStats | None:
    return await admin(_unless_not_made(shard, requests.internal_stats(shard.name)))


def _unless_not_made(shard: ShardName, request: Request[T]) -> Request[T | None]:
    return replace(request, absent=_NOT_MADE) if shard.is_expanded else request


async def held_back(
    admin: AsyncAdminClient, last_messages: LastMessages, shards: Sequence[Shard], ends: Mapping[str, Position]
) -> tuple[list[Shard], dict[str, str]]:
    """The shards with last messages that count for these ends, and which shards an open transaction holds back, why.

    Where entries stand between the tail and the wanted end, the last of them is looked at: once it is final, all are,
    and the tail asked for again after that has everything readable before it.
    """
    waiting = {shard.name: entry for shard in shards if (entry := waiting_entry(shard, ends[shard.name]))}
    peeked = await admin.all([requests.peek(name, entry.ledger, entry.entry) for name, entry in waiting.items()])
    blocked = {
        name: f"entry {entry.ledger}:{entry.entry} waits for an open transaction"
        for (name, entry), seen in zip(waiting.items(), peeked, strict=True)
        if seen is not None and seen.uncommitted
    }
    if blocked or not waiting:
        return list(shards), blocked
    last = await asyncio.to_thread(last_messages, list(waiting))
    return [replace(shard, last=last.get(shard.name, shard.last)) for shard in shards], {}


async def retention_of(admin: AsyncAdminClient, shards: Sequence[Shard]) -> dict[str, Retention | None]:
    """Each shard's retention; asked once per topic, as partitions share it. None: this user may not know."""
    topics = list(dict.fromkeys(names.parent_of(shard.name) for shard in shards))
    found = dict(zip(topics, await admin.all([requests.retention(topic) for topic in topics]), strict=True))
    return {shard.name: found[names.parent_of(shard.name)] for shard in shards}


async def evidence_of(
    admin: AsyncAdminClient, shard: Shard, retention: Retention | None, *, doubtful: bool
) -> Evidence:
    """What can prove that nothing was removed (for a doubtful shard), and when its data will be."""
    if shard.stats is None or not (doubtful or _expires(retention)):
        return Evidence(shard.stats, shard.info, retention)
    info = shard.info or await admin(requests.internal_info(shard.name))
    first: datetime | None = None
    if doubtful and not shard.layout.is_empty:
        ledger, entry, _ = shard.layout.head.parts
        seen = await admin(requests.peek(shard.name, ledger, entry))
        first = seen.publish_time if seen is not None else None
    return Evidence(shard.stats, info, retention, first)


def _expires(retention: Retention | None) -> bool:
    return retention is not None and not retention.unlimited
