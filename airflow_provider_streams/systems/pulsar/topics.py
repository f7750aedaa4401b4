"""What Airflow's users ask of topics, as questions without I/O; `systems/pulsar/questions.py` says how they are run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_provider_streams.errors import InvalidRequest, SourceNotFound
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.systems.pulsar.admin import requests
from airflow_provider_streams.systems.pulsar.admin.answers import InternalStats, MessageId, TopicStats
from airflow_provider_streams.systems.pulsar.backlog import Backlog
from airflow_provider_streams.systems.pulsar.questions import Question, Topic, topic
from airflow_provider_streams.systems.rest.request import AnyRequest

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def stats(topics: Iterable[Topic]) -> Question[dict[str, TopicStats]]:
    """Statistics by topic, one call for each, partitions summed.

    Raises:
        InvalidRequest: only some partitions of a topic are meant, which a topic's statistics do not tell apart.
    """
    asked = tuple(topics)
    if chosen := next((one for one in asked if one.chosen), None):
        raise InvalidRequest(f"{chosen.name}: statistics are those of whole topics: name single partitions as topics")
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
