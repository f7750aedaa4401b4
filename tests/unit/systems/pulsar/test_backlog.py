from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.systems.pulsar.admin.answers import SubscriptionStats
from airflow_provider_streams.systems.pulsar.backlog import Backlog, BacklogLimit

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
OLD = NOW - timedelta(minutes=5)
FULL = Backlog(entries=10, bytes=1000, oldest=OLD)


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


@pytest.mark.parametrize(
    ("limit", "met"),
    [
        (BacklogLimit(entries=10), True),
        (BacklogLimit(entries=11), False),
        (BacklogLimit(entries=11, bytes=1000), True),
        (BacklogLimit(entries=11, age=timedelta(minutes=5)), True),
        (BacklogLimit(entries=11, bytes=1001, age=timedelta(minutes=6)), False),
        (BacklogLimit(entries=10, direction="at_most"), True),
        (BacklogLimit(entries=10, bytes=999, direction="at_most"), False),
        (BacklogLimit(age=timedelta(minutes=4), direction="at_most"), False),
    ],
)
def test_one_limit_forms_a_batch_and_all_must_hold_when_drained(limit, met):
    assert limit.met(FULL, NOW) is met


def test_a_drained_backlog_meets_every_at_most_limit():
    assert BacklogLimit(entries=0, bytes=0, age=timedelta(0), direction="at_most").met(Backlog(0, 0), NOW)


@given(
    entries=st.none() | st.integers(0, 10**12),
    size=st.none() | st.integers(0, 10**15),
    age=st.timedeltas(timedelta(0), timedelta(days=365)),
    direction=st.sampled_from(["at_least", "at_most"]),
)
def test_a_limit_survives_a_triggers_serialization(entries, size, age, direction):
    limit = BacklogLimit(entries, size, age, direction)
    assert BacklogLimit.from_json(limit.to_json()) == limit


@pytest.mark.parametrize(
    "wrong", [{}, {"entries": -1}, {"age": timedelta(seconds=-1)}, {"entries": 1, "direction": "exactly"}]
)
def test_a_limit_that_says_nothing_or_nonsense_is_refused(wrong):
    with pytest.raises(InvalidRequest):
        BacklogLimit(**wrong)
