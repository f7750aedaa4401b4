from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow_provider_streams.model.position import Position
from airflow_provider_streams.plugin.holds import by_name
from airflow_provider_streams.systems.pulsar.hold_subscription import Mark, PinSubscription

THEN = datetime(2026, 11, 20, tzinfo=UTC)


def pin(name: str, shard: str, size: int | None, since: datetime | None = None) -> PinSubscription:
    return PinSubscription(shard, name, Mark("dag.read", Position((1, 0, -1)), THEN, since), size, THEN)


def test_a_pin_on_several_shards_is_one_hold_from_the_earliest_place():
    hour = timedelta(hours=1)
    found = list(by_name([pin("a", "s0", 10, THEN - hour), pin("b", "s0", 1), pin("a", "s1", 20, THEN)]))
    assert [(hold.name, hold.reader, hold.since, hold.bytes) for hold in found] == [
        ("a", "dag.read", THEN - hour, 30),
        ("b", "dag.read", THEN, 1),
    ]


def test_what_a_pin_keeps_is_not_known_if_one_shard_does_not_tell():
    assert next(by_name([pin("a", "s0", 10), pin("a", "s1", None)])).bytes is None
