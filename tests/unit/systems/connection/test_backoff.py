"""Waits grow up to a limit, and no two callers need wait the same."""

from __future__ import annotations

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.systems.connection.backoff import Backoff


@given(st.integers(0, 2000))
def test_pauses_grow_up_to_a_limit(tries):
    seconds = Backoff(5, 0.2, 5.0).seconds(tries)
    assert min(5.0, 0.2 * 2.0 ** min(tries, 5)) / 2 <= seconds <= min(5.0, 0.2 * 2.0 ** min(tries, 5))


def test_without_chance_each_wait_is_twice_the_one_before():
    assert list(islice(Backoff(first_seconds=0.1, longest_seconds=0.5, chance=0.0).waits(), 4)) == [0.1, 0.2, 0.4, 0.5]
