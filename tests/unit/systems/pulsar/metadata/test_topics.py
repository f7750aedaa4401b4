from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow_provider_streams.systems.pulsar.client.admin.responses import SubscriptionStats
from airflow_provider_streams.systems.pulsar.metadata.topics import Backlog

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
OLD = NOW - timedelta(minutes=5)


def stats(entries: int, size: int | None, oldest: datetime | None) -> SubscriptionStats:
    return SubscriptionStats(entries, size, oldest, consumers=0, durable=True, unacked_messages=0)


def test_the_backlog_over_topics_is_their_sum_and_the_oldest_of_all():
    parts = [stats(3, 30, NOW), stats(4, None, OLD), stats(0, 0, None)]
    assert Backlog.of(parts) == Backlog(7, 30, OLD)


def test_an_empty_backlog_has_no_age():
    assert Backlog(0, 0, OLD).age(NOW) == timedelta(0)
    assert Backlog.of([]).age(NOW) == timedelta(0)


def test_a_producers_clock_ahead_of_ours_gives_no_negative_age():
    assert Backlog(1, 1, NOW + timedelta(hours=1)).age(NOW) == timedelta(0)
