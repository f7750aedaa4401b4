"""Questions about topics and their backlogs, without I/O; `client/queries.py` runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self, TypeVar

from airflow_provider_streams.errors import InvalidRequest, SourceNotFound
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.systems.pulsar.client.admin import requests
from airflow_provider_streams.systems.pulsar.client.admin.responses import SubscriptionStats, TopicStats
from airflow_provider_streams.systems.pulsar.client.queries import Question, Topic, by_shard, topic
from airflow_provider_streams.systems.pulsar.metadata.ledgers import at
from airflow_provider_streams.systems.pulsar.planning.cuts import lookup_ms
from airflow_provider_streams.systems.rest.request import Request

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Backlog:
    """What a subscription has not acknowledged yet. Entries are not messages: a batch of 1,000 counts once."""

    entries: int
    bytes: int
    oldest: datetime | None = None
    """Publish time of its oldest entry; None: there is none, the broker did not say, or it is in no calendar."""

    @classmethod
    def of(cls, parts: Iterable[SubscriptionStats]) -> Self:
        """The backlog over several topics."""
        rows = tuple(parts)
        return cls(
            sum(row.entries for row in rows),
            sum(row.bytes or 0 for row in rows),
            min((row.oldest for row in rows if row.oldest), default=None),
        )

    def age(self, now: datetime) -> timedelta:
        """How long its oldest entry has been waiting; zero without one. Skew between the clocks shifts it."""
        if self.oldest is None or not self.entries:
            return timedelta(0)
        return max(now - self.oldest, timedelta(0))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        oldest = self.oldest.isoformat() if self.oldest else None
        return {"entries": self.entries, "bytes": self.bytes, "oldest": oldest}


def stats(topics: Iterable[Topic]) -> Question[dict[str, TopicStats]]:
    """Statistics by topic, one call for each, partitions summed.

    Raises:
        InvalidRequest: a source names only some partitions of a topic, and a topic's statistics sum all of them.
    """
    asked = {one.name: one for one in topics}
    if chosen := next((one for one in asked.values() if one.chosen), None):
        raise InvalidRequest(f"{chosen.name}: statistics are those of whole topics: name single partitions as topics")
    return (yield from by_shard(asked, lambda name: topic_stats(asked[name])))


def topic_stats(one: Topic) -> Request[TopicStats]:
    """The call for the statistics of a whole topic."""
    return requests.partitioned_stats(one.name) if one.partitions else requests.stats(one.name)


def backlog(topics: Iterable[Topic], subscription: str) -> Question[Backlog]:
    """A subscription's backlog over topics; raises `SourceNotFound` if a topic has no such subscription."""
    by_topic = yield from stats(topics)
    for name, answer in by_topic.items():
        if subscription not in answer.subscriptions:
            raise SourceNotFound(f"subscription {subscription} of {name}")
    return Backlog.of(answer.subscriptions[subscription] for answer in by_topic.values())


def cut_at(name: str, moment: datetime) -> Question[Cut]:
    """In each shard, the place before the first entry published at or after a time."""
    publish_ms = lookup_ms(moment)
    found = yield from of_topic(name, lambda shard: requests.message_id_at(shard, publish_ms))
    return Cut({shard: at(*entry) for shard, entry in found.items()})


def of_topic(name: str, call: Callable[[str], Request[T]]) -> Question[dict[str, T]]:
    """The answer to one call for each shard of a topic."""
    return (yield from by_shard((yield from topic(name)).shards, call))
