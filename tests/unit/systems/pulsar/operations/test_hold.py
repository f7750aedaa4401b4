from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.pulsar.operations.hold import HoldSubscription, Mark, held

THEN = datetime(2026, 11, 20, tzinfo=UTC)
HOUR = timedelta(hours=1)


def on_shard(name: str, shard: str, size: int | None, since: datetime | None = None) -> HoldSubscription:
    return HoldSubscription(shard, name, Mark("dag.read", Position((1, 0, -1)), THEN, since), size, THEN)


def test_a_hold_on_several_shards_is_one_from_the_earliest_place():
    found = held([on_shard("a", "s0", 10, THEN - HOUR), on_shard("b", "s0", 1), on_shard("a", "s1", 20, THEN)])
    assert [(hold.name, hold.reader, hold.since, hold.oldest, hold.bytes, set(hold.positions)) for hold in found] == [
        ("a", "dag.read", THEN - HOUR, THEN, 30, {"s0", "s1"}),
        ("b", "dag.read", None, THEN, 1, {"s0"}),
    ]


def test_what_a_hold_keeps_is_not_known_if_one_shard_does_not_tell():
    (found,) = held([on_shard("a", "s0", 10), on_shard("a", "s1", None)])
    assert found.bytes is None
