"""What operators change at a Pulsar cluster, without I/O: each change asks first, so that doing it twice is harmless.

They are questions, as `systems/pulsar/questions.py` has them: run one with `ask`. Each returns plain JSON values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.systems.pulsar.admin import changes, requests
from airflow_provider_streams.systems.pulsar.admin.answers import InternalStats, MessageId
from airflow_provider_streams.systems.pulsar.questions import Question, Topic
from airflow_provider_streams.systems.pulsar.questions import topic as existing
from airflow_provider_streams.systems.rest.request import AnyRequest

Summary = dict[str, Any]


def create_topic(name: str, partitions: int) -> Question[Summary]:
    """A topic; one with fewer partitions grows, any other existing one must be as asked.

    Raises:
        InvalidRequest: it exists with more partitions, or partitioned where it should not be, or the reverse.
    """
    call = changes.create_partitioned_topic(name, partitions) if partitions else changes.create_topic(name)
    (made,) = yield [call]
    if made is None:
        yield from update_partitions(name, partitions)
    return {"topic": name, "partitions": partitions, "created": bool(made)}


def update_partitions(name: str, partitions: int) -> Question[Summary]:
    """As many partitions as asked; there are never fewer than before.

    Raises:
        InvalidRequest: it has more already, or one of both numbers is 0 and the other is not.
    """
    found = yield from existing(name)
    if found.partitions == partitions:
        return {"topic": name, "partitions": partitions, "added": 0}
    if not found.partitions or not partitions:
        kinds = ("has no partitions", "is partitioned")
        raise InvalidRequest(f"{name} exists and {kinds[bool(found.partitions)]}: that cannot be changed")
    if found.partitions > partitions:
        raise InvalidRequest(f"{name} has {found.partitions} partitions already; Pulsar cannot take any away")
    yield [changes.update_partitions(name, partitions)]
    return {"topic": name, "partitions": partitions, "added": partitions - found.partitions}


def delete_topic(name: str, *, force: bool) -> Question[Summary]:
    """Without the topic and its data."""
    (partitions,) = yield [_or_absent(requests.partitions(name))]
    if partitions is None:
        return {"topic": name, "deleted": False}
    (gone,) = yield [changes.delete_topic(name, partitioned=partitions > 0, force=force)]
    return {"topic": name, "deleted": bool(gone)}


def terminate(name: str) -> Question[Summary]:
    """Nothing more can be written; returns the last entry of each partition."""
    found = yield from existing(name)
    if found.partitions:
        yield [changes.terminate_partitions(name)]
        ids = yield [requests.last_message_id(shard) for shard in found.shards]
    else:
        ids = yield [changes.terminate(name)]
    return {
        "topic": name,
        "last": {shard: f"{at.ledger}:{at.entry}" for shard, at in zip(found.shards, ids, strict=True)},
    }


def compact(name: str) -> Question[Summary]:
    """A compaction of each partition has been started, or is running."""
    return (yield from _per_shard(name, "started", changes.compact))


def trim(name: str) -> Question[Summary]:
    """What retention no longer keeps has been removed."""
    return (yield from _per_shard(name, "trimmed", changes.trim))


def offload(name: str, keep_bytes: int) -> Question[Summary]:
    """The oldest full ledgers of each partition are moving to long-term storage, until about `keep_bytes` stay."""
    found = yield from existing(name)
    stats: list[InternalStats] = yield [requests.internal_stats(shard) for shard in found.shards]
    bounds = {
        shard: bound
        for shard, one in zip(found.shards, stats, strict=True)
        if (bound := offload_bound(one, keep_bytes)) is not None
    }
    started = yield [changes.offload(shard, bound) for shard, bound in bounds.items()]
    return {
        "topic": name,
        "started": [shard for shard, yes in zip(bounds, started, strict=True) if yes],
        "up_to": {shard: f"{bound.ledger}:{bound.entry}" for shard, bound in bounds.items()},
    }


def offload_bound(stats: InternalStats, keep_bytes: int) -> MessageId | None:
    """The first position that stays on the bookies: before it, only full ledgers; None: there is nothing to move."""
    kept, bound = 0, None
    for ledger in reversed(stats.ledgers):
        if bound is not None and kept >= keep_bytes:
            break
        bound, kept = ledger, kept + ledger.bytes
    if bound is None or all(ledger.offloaded for ledger in stats.ledgers if ledger.ledger < bound.ledger):
        return None
    return MessageId(bound.ledger, 0)


def set_retention(name: str, retention: tuple[int, int] | None) -> Question[Summary]:
    """The topic's own retention, minutes and megabytes (-1: without limit); None: its namespace's again."""
    (found,) = yield [requests.partitions(name)]
    yield [changes.remove_retention(name) if retention is None else changes.set_retention(name, *retention)]
    minutes, megabytes = retention or (None, None)
    return {"topic": name, "partitions": found, "minutes": minutes, "megabytes": megabytes}


def create_subscription(name: str, subscription: str, at: Literal["earliest", "latest"]) -> Question[Summary]:
    """A durable subscription on every partition; where it exists it stays where it stands."""
    return (yield from _per_shard(name, "created", partial(changes.create_subscription, name=subscription, at=at)))


def drop_subscription(name: str, subscription: str, *, force: bool) -> Question[Summary]:
    """No such subscription on any partition; nor does the topic have to exist."""
    (partitions,) = yield [_or_absent(requests.partitions(name))]
    if partitions is None:
        return {"topic": name, "dropped": []}
    drop = partial(changes.drop_subscription, name=subscription, force=force)
    return (yield from _each(Topic(name, partitions), "dropped", drop))


def _per_shard(name: str, done: str, call: Callable[[str], AnyRequest]) -> Question[Summary]:
    found = yield from existing(name)
    return (yield from _each(found, done, call))


def _each(found: Topic, done: str, call: Callable[[str], AnyRequest]) -> Question[Summary]:
    """Calls for each shard; the summary names those where something was left to do."""
    answers: Sequence[Any] = yield [call(shard) for shard in found.shards]
    return {"topic": found.name, done: [shard for shard, yes in zip(found.shards, answers, strict=True) if yes]}


def _or_absent(request: AnyRequest) -> AnyRequest:
    return replace(request, absent=(*request.absent, (404, "")))
