"""What operators change at a Pulsar cluster: questions without I/O, which return plain JSON values.

Each change asks first, so that a repetition is harmless.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.systems.pulsar.client.admin import changes, requests
from airflow_provider_streams.systems.pulsar.client.admin.responses import EntryId, InternalStats
from airflow_provider_streams.systems.pulsar.client.queries import Question, Topic, by_shard
from airflow_provider_streams.systems.pulsar.client.queries import topic as existing
from airflow_provider_streams.systems.rest.request import AnyRequest

Summary = dict[str, Any]


def create_topic(name: str, partitions: int) -> Question[Summary]:
    """Create a topic, or add partitions to an existing one; raises as `update_partitions`."""
    (made,) = yield [changes.create_topic(name, partitions)]
    if made is None:
        yield from update_partitions(name, partitions)
    return {"topic": name, "partitions": partitions, "created": bool(made)}


def update_partitions(name: str, partitions: int) -> Question[Summary]:
    """Add partitions to a topic.

    Raises:
        InvalidRequest: it has more partitions, or only one of both numbers of partitions is 0.
    """
    found = yield from existing(name)
    if found.partitions == partitions:
        return {"topic": name, "partitions": partitions, "added": 0}
    if not found.partitions or not partitions:
        kinds = ("has no partitions", "is partitioned")
        raise InvalidRequest(f"{name} exists and {kinds[bool(found.partitions)]}: that cannot be changed")
    if found.partitions > partitions:
        raise InvalidRequest(
            f"{name} has {counted(found.partitions, 'partition')} already; Pulsar cannot take any away"
        )
    yield [changes.update_partitions(name, partitions)]
    return {"topic": name, "partitions": partitions, "added": partitions - found.partitions}


def delete_topic(name: str, *, force: bool) -> Question[Summary]:
    """Delete a topic and its data."""
    (partitions,) = yield [_or_absent(requests.partitions(name))]
    if partitions is None:
        return {"topic": name, "deleted": False}
    (gone,) = yield [changes.delete_topic(name, partitioned=partitions > 0, force=force)]
    return {"topic": name, "deleted": bool(gone)}


def terminate(name: str) -> Question[Summary]:
    """End a topic for writers; returns the last entry of each partition."""
    found = yield from existing(name)
    if found.partitions:
        yield [changes.terminate_partitions(name)]
    last = yield from by_shard(found.shards, requests.last_message_id if found.partitions else changes.terminate)
    return {"topic": name, "last": {shard: str(entry) for shard, entry in last.items()}}


def compact(name: str) -> Question[Summary]:
    """Start a compaction of each partition where none is running."""
    return (yield from _per_shard(name, "started", changes.compact))


def trim(name: str) -> Question[Summary]:
    """Remove what retention no longer keeps."""
    return (yield from _per_shard(name, "trimmed", changes.trim))


def offload(name: str, keep_bytes: int) -> Question[Summary]:
    """Start to move the oldest full ledgers of each partition to long-term storage, until about `keep_bytes` stay."""
    stats = yield from by_shard((yield from existing(name)).shards, requests.internal_stats)
    found = {shard: offload_bound(one, keep_bytes) for shard, one in stats.items()}
    bounds = {shard: bound for shard, bound in found.items() if bound is not None}
    started = yield from by_shard(bounds, lambda shard: changes.offload(shard, bounds[shard]))
    return {
        "topic": name,
        "started": [shard for shard, done in started.items() if done],
        "up_to": {shard: str(bound) for shard, bound in bounds.items()},
    }


def offload_bound(stats: InternalStats, keep_bytes: int) -> EntryId | None:
    """The first entry that stays on the bookies, with only full ledgers before it; None: there is nothing to move."""
    kept, bound = 0, None
    for ledger in reversed(stats.ledgers):
        if bound is not None and kept >= keep_bytes:
            break
        bound, kept = ledger, kept + ledger.bytes
    if bound is None or all(ledger.offloaded for ledger in stats.ledgers if ledger.ledger < bound.ledger):
        return None
    return EntryId(bound.ledger, 0)


def set_retention(name: str, retention: tuple[int, int] | None) -> Question[Summary]:
    """Set a topic's own retention in minutes and megabytes (-1: without limit); None: return to its namespace's."""
    (found,) = yield [requests.partitions(name)]
    yield [changes.set_retention(name, retention)]
    minutes, megabytes = retention or (None, None)
    return {"topic": name, "partitions": found, "minutes": minutes, "megabytes": megabytes}


def create_subscription(name: str, subscription: str, at: Literal["earliest", "latest"]) -> Question[Summary]:
    """Create a durable subscription on every partition; an existing one stays where it is."""
    return (yield from _per_shard(name, "created", partial(changes.create_subscription, name=subscription, at=at)))


def drop_subscription(name: str, subscription: str, *, force: bool) -> Question[Summary]:
    """Remove a subscription from every partition; the topic need not exist."""
    (partitions,) = yield [_or_absent(requests.partitions(name))]
    if partitions is None:
        return {"topic": name, "dropped": []}
    drop = partial(changes.drop_subscription, name=subscription, force=force)
    return (yield from _each(Topic(name, partitions), "dropped", drop))


def _per_shard(name: str, done: str, call: Callable[[str], AnyRequest]) -> Question[Summary]:
    found = yield from existing(name)
    return (yield from _each(found, done, call))


def _each(found: Topic, done: str, call: Callable[[str], AnyRequest]) -> Question[Summary]:
    """Make a call for each shard; the summary names the shards that it changed."""
    answers = yield from by_shard(found.shards, call)
    return {"topic": found.name, done: [shard for shard, changed in answers.items() if changed]}


def _or_absent(request: AnyRequest) -> AnyRequest:
    return replace(request, absent=(*request.absent, (404, "")))
