"""How long Pulsar keeps the events of a source: policies, holds and rates in one value for the retention guard."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from airflow_provider_streams.model.stream.retention import Holding, Quota, Rules
from airflow_provider_streams.systems.pulsar.client.admin import requests
from airflow_provider_streams.systems.pulsar.client.admin.responses import BacklogQuota, Retention, TopicStats
from airflow_provider_streams.systems.pulsar.client.queries import Question, by_shard, shards_of, topics_of
from airflow_provider_streams.systems.pulsar.metadata.names import parents
from airflow_provider_streams.systems.pulsar.operations.hold import HoldSubscription
from airflow_provider_streams.systems.pulsar.planning.entry_probe import EntryProbe, ProbePoint
from airflow_provider_streams.systems.pulsar.source import PulsarSource


def holding(source: PulsarSource, reader: str | None, now: datetime) -> Question[Holding]:
    """How Pulsar keeps the topics of a source: the least of all limits, the greatest of all rates."""
    topics = yield from topics_of(source)
    policies = yield [
        request(name)  # of a partition, the broker refuses to tell policies
        for name in parents(topic.name for topic in topics)
        for request in _POLICIES
    ]
    shards = shards_of(topics)
    found = yield from by_shard(shards, lambda shard: shards[shard].of_shard(shard, requests.stats(shard)))
    existing = {shard: one for shard, one in found.items() if one is not None}
    firsts: list[EntryProbe] = yield [ProbePoint(shard, 0, 0) for shard in existing]
    stats, oldest = list(existing.values()), [first.published for first in firsts]
    held = [_held_bytes(one, reader) for one in stats]
    return Holding(
        _rules(policies, is_held=all(size is not None for size in held)),
        max((_rate(one.storage_bytes, first, now) for one, first in zip(stats, oldest, strict=True)), default=0.0),
        min((first for first in oldest if first), default=None),
        max((size or 0 for size in held), default=0),
    )


def _held_bytes(stats: TopicStats, reader: str | None) -> int | None:
    """Bytes that a hold keeps on a shard; None: there is none."""
    holds = (HoldSubscription.of("", name, one) for name, one in stats.subscriptions.items())
    kept = [hold.bytes or 0 for hold in holds if hold and (reader is None or hold.mark.reader == reader)]
    return max(kept, default=None)


def _rate(stored: int, since: datetime | None, now: datetime) -> float:
    seconds = (now - since).total_seconds() if since else 0.0
    return stored / seconds if seconds >= 1 else 0.0


_POLICIES = (
    requests.retention,
    requests.message_ttl,
    requests.backlog_quotas,
    requests.namespace_backlog_quotas,
)


def _rules(policies: Sequence[Any], *, is_held: bool) -> Rules | None:
    """The strictest of several topics' policies, each as `_POLICIES`; None: one of them is not known.

    A topic's own quota of a kind takes the place of its namespace's.
    """
    if any(policy is None for policy in policies):
        return None
    each = len(_POLICIES)
    retentions: list[Retention] = list(policies[0::each])
    own_and_shared = zip(policies[2::each], policies[3::each], strict=True)
    quotas: Iterable[BacklogQuota] = (quota for own, shared in own_and_shared for quota in {**shared, **own}.values())
    return Rules(
        retention=_span(_least(one.seconds for one in retentions)),
        retention_bytes=_least(one.bytes for one in retentions),
        is_held=is_held,
        expiry=_span(_least(ttl or None for ttl in policies[1::each])),
        quotas=tuple(dict.fromkeys(Quota(one.limit_bytes, _span(one.limit_seconds), one.evicts) for one in quotas)),
    )


def _least(limits: Iterable[int | None]) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _span(seconds: int | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
