"""How Pulsar holds the events of a source: its policies, holds and rates, as one value for the retention guard."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.model.retention import Holding, Quota, Rules
from airflow_provider_streams.systems.pulsar.looks import Look, Place
from airflow_provider_streams.systems.pulsar.questions import Question, topics_of
from airflow_provider_streams.systems.pulsar.source import PulsarSource

if TYPE_CHECKING:
    from airflow_provider_streams.systems.pulsar.admin.answers import BacklogQuota, Retention, TopicStats


def holding(source: PulsarSource, reader: str | None, now: datetime) -> Question[Holding]:
    """How Pulsar holds the topics of a source: of all limits the least, of all rates the greatest."""
    from airflow_provider_streams.systems.pulsar.admin import requests  # noqa: PLC0415

    topics = yield from topics_of(source)
    policies = yield [
        request(topic.name)
        for topic in topics
        for request in (requests.retention, requests.message_ttl, requests.backlog_quotas)
    ]
    asked = {shard: topic.of_shard(shard, requests.stats(shard)) for topic in topics for shard in topic.shards}
    found: list[TopicStats | None] = yield list(asked.values())
    made = {shard: one for shard, one in zip(asked, found, strict=True) if one is not None}
    firsts: list[Look] = yield [Place(shard, 0, 0) for shard in made]
    stats, oldest = list(made.values()), [first.published for first in firsts]
    held = [_held_bytes(one, reader) for one in stats]
    return Holding(
        _rules(policies, is_held=all(size is not None for size in held)),
        max((_rate(one.storage_bytes, first, now) for one, first in zip(stats, oldest, strict=True)), default=0.0),
        min((first for first in oldest if first), default=None),
        max((size or 0 for size in held), default=0),
    )


def _held_bytes(stats: TopicStats, reader: str | None) -> int | None:
    """Bytes that a hold keeps on a shard; None: there is none."""
    from airflow_provider_streams.systems.pulsar.hold_subscription import HoldSubscription  # noqa: PLC0415

    holds = (HoldSubscription.of("", name, one) for name, one in stats.subscriptions.items())
    kept = [hold.bytes or 0 for hold in holds if hold and (reader is None or hold.mark.reader == reader)]
    return max(kept, default=None)


def _rate(stored: int, since: datetime | None, now: datetime) -> float:
    seconds = (now - since).total_seconds() if since else 0.0
    return stored / seconds if seconds >= 1 else 0.0


def _rules(policies: Sequence[Any], *, is_held: bool) -> Rules | None:
    """The strictest of several topics' policies, each a retention, a TTL and quotas; None: one is not known."""
    if any(policy is None for policy in policies):
        return None
    retentions: list[Retention] = list(policies[0::3])
    quotas: Iterable[BacklogQuota] = (quota for each in policies[2::3] for quota in each)
    return Rules(
        retention=_span(_least(one.seconds for one in retentions)),
        retention_bytes=_least(one.bytes for one in retentions),
        is_held=is_held,
        expiry=_span(_least(ttl or None for ttl in policies[1::3])),
        quotas=tuple(dict.fromkeys(Quota(one.limit_bytes, _span(one.limit_seconds), one.evicts) for one in quotas)),
    )


def _least(limits: Iterable[int | None]) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _span(seconds: int | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
