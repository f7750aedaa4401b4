"""Questions to Pulsar's admin API that take several calls, without I/O: each yields calls and receives their results.

`ask` runs one with the blocking client, `aask` with the asynchronous one, so both edges ask the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from airflow_provider_streams.errors import SourceNotFound
from airflow_provider_streams.hooks.backlog import Backlog
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.model.source import PulsarSource
from airflow_provider_streams.systems.pulsar import names
from airflow_provider_streams.systems.pulsar.admin import requests
from airflow_provider_streams.systems.pulsar.admin.answers import InternalStats, MessageId, TopicStats
from airflow_provider_streams.systems.pulsar.admin.client import AdminClient, AsyncAdminClient
from airflow_provider_streams.systems.pulsar.admin.requests import AnyRequest

T = TypeVar("T")
Question = Generator[Sequence[AnyRequest], list[Any], T]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that exists; 0 partitions: it is not partitioned."""

    name: str
    partitions: int

    @property
    def shards(self) -> tuple[str, ...]:
        """Its partitions' names, or its own."""
        if not self.partitions:
            return (self.name,)
        return tuple(names.partition_name(self.name, number) for number in range(self.partitions))


def topic(name: str) -> Question[Topic]:
    """A topic with its number of partitions."""
    (partitions,) = yield [requests.partitions(name)]
    return Topic(name, partitions)


def topics_of(source: PulsarSource) -> Question[tuple[Topic, ...]]:
    """The topics of a source, those that its pattern matches now included."""
    found = source.topics
    if source.pattern:
        (listed,) = yield [requests.topics(names.namespace_of(source.pattern))]
        found = names.matching(source.pattern, listed)
        if not found:
            raise SourceNotFound(source.pattern)
    counts = yield [requests.partitions(name) for name in found]
    return tuple(Topic(name, count) for name, count in zip(found, counts, strict=True))


def stats(topics: Iterable[Topic]) -> Question[dict[str, TopicStats]]:
    """Statistics by topic, one call for each, partitions summed."""
    asked = tuple(topics)
    answers = yield [_stats(one) for one in asked]
    return {one.name: answer for one, answer in zip(asked, answers, strict=True)}


def backlog(topics: Iterable[Topic], subscription: str) -> Question[Backlog]:
    """A subscription's backlog over topics, one call for each."""
    by_topic = yield from stats(topics)
    for name, answer in by_topic.items():
        if subscription not in answer.subscriptions:
            raise SourceNotFound(f"subscription {subscription} of {name}")
    return Backlog.of(answer.subscriptions[subscription] for answer in by_topic.values())


def internal_stats(name: str) -> Question[dict[str, InternalStats]]:
    """The ledgers of each shard of a topic."""
    return (yield from _by_shard(name, requests.internal_stats))


def last_message_id(name: str) -> Question[dict[str, MessageId]]:
    """The last stored entry of each shard of a topic."""
    return (yield from _by_shard(name, requests.last_message_id))


def cut_at(name: str, moment: datetime) -> Question[Cut]:
    """In each shard, the place before the first entry published at or after a time."""
    publish_ms = -((_EPOCH - moment) // timedelta(milliseconds=1))
    found: Mapping[str, MessageId] = yield from _by_shard(name, lambda shard: requests.message_id_at(shard, publish_ms))
    return Cut({shard: Position.of(at.ledger, at.entry, -1) for shard, at in found.items()})


def _by_shard(name: str, call: Any) -> Question[dict[str, Any]]:
    shards = (yield from topic(name)).shards
    answers = yield [call(shard) for shard in shards]
    return dict(zip(shards, answers, strict=True))


def _stats(one: Topic) -> AnyRequest:
    return requests.partitioned_stats(one.name) if one.partitions else requests.stats(one.name)


def ask(client: AdminClient, question: Question[T]) -> T:
    """The answer, with the blocking client.

    Raises:
        AccessError, SystemUnavailable, ProtocolError: the cluster refuses or does not answer.
    """
    results: list[Any] | None = None
    while True:
        try:
            calls = question.send(results) if results is not None else next(question)
        except StopIteration as end:
            answer: T = end.value
            return answer
        results = [client(call) for call in calls]


async def aask(client: AsyncAdminClient, question: Question[T]) -> T:
    """The answer, with the asynchronous client; calls that do not depend on each other run side by side.

    Raises:
        AccessError, SystemUnavailable, ProtocolError: the cluster refuses or does not answer.
    """
    results: list[Any] | None = None
    while True:
        try:
            calls = question.send(results) if results is not None else next(question)
        except StopIteration as end:
            answer: T = end.value
            return answer
        results = list(await asyncio.gather(*(client(call) for call in calls)))
