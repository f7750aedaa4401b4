from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.journal.evidence.tail_observations import SPACING, crowded, superfluous
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.stream.tail_observation import TailObservation

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
KEY = "fake:conn:orders"


@pytest.fixture
def journal(tmp_path):
    with Journal.open(f"sqlite:///{tmp_path / 'journal.db'}") as opened:
        yield opened


def seen(hours: float) -> TailObservation:
    """So many hours after noon the source ended there."""
    return TailObservation(NOON + hours * HOUR, Cut({"shard": Position.of(int(hours * 60))}), (("shard", "made"),))


def test_the_newest_that_is_not_later_counts_or_else_the_first(journal):
    assert journal.tail_observation(KEY, NOON) is None
    for hours in (0, 1, 2):
        assert journal.note_tail_observation(KEY, seen(hours))
    assert journal.tail_observation(KEY, NOON + 90 * timedelta(minutes=1)) == seen(1)
    assert journal.tail_observation(KEY, NOON + 2 * HOUR) == seen(2)
    assert journal.tail_observation(KEY, NOON - DAY) == seen(0)
    assert journal.tail_observation("fake:conn:others", NOON) is None


def test_what_was_seen_just_before_is_not_kept_again(journal):
    assert journal.note_tail_observation(KEY, seen(0))
    almost = SPACING - timedelta(seconds=1)
    assert journal.is_observed_about(KEY, NOON + almost)
    assert not journal.note_tail_observation(KEY, seen(almost / HOUR))
    assert journal.tail_observation(KEY, NOON + DAY) == seen(0)
    assert not journal.is_observed_about(KEY, NOON + SPACING)
    assert not journal.is_observed_about("fake:other:orders", NOON)


def test_what_was_seen_in_a_window_is_kept_however_soon_after_it_began(journal):
    before, within = seen(-1 / 60), seen(0)
    for one in (before, within):
        assert not journal.is_observed_about(KEY, one.at)
        assert journal.note_tail_observation(KEY, one)
    assert journal.tail_observations_around(KEY, NOON, NOON + HOUR) == [within]
    assert journal.tail_observations_around(KEY, NOON - HOUR, NOON) == [before, within]


def test_old_ones_are_kept_more_seldom_and_the_first_for_ever(journal):
    for hours in (0, 0.2, 0.4, 0.6, 1.1, 30 * 24):
        journal.note_tail_observation(KEY, seen(hours))
    assert journal.tail_observation(KEY, NOON + 0.9 * HOUR) == seen(0), "an hour keeps its first one"
    assert journal.tail_observation(KEY, NOON + 2 * HOUR) == seen(1.1)
    journal.note_tail_observation(KEY, seen(40 * 24))
    assert journal.tail_observation(KEY, NOON + 2 * HOUR) == seen(0), "and later a day does"


def at(moment: datetime) -> TailObservation:
    """One that says as much as all of its kind."""
    return seen((moment - NOON) / HOUR)


@given(st.sets(st.integers(0, 60 * 24 * 100), min_size=1), st.integers(0, 60 * 24 * 10))
def test_thinning_leaves_no_wider_hole_than_it_says_and_is_the_same_twice(minutes, later):
    moments = sorted(NOON + minute * timedelta(minutes=1) for minute in minutes)
    now = moments[-1] + later * timedelta(minutes=1)
    gone = {moment for crowd in crowded(moments, now) for moment in superfluous(at(one) for one in crowd)}
    kept = [moment for moment in moments if moment not in gone]
    assert kept[0] == moments[0]
    assert crowded(kept, now) == []
    for moment in gone:
        before = max(one for one in kept if one <= moment)
        assert moment - before < (DAY if now - moment > 30 * DAY else HOUR if now - moment > 2 * DAY else SPACING)
    assert all(later - earlier > timedelta(0) for earlier, later in pairwise(kept))


def test_a_stream_that_came_and_went_stays_known_for_ever(journal):
    """A backfill after months still learns that it was there."""
    guest = Cut({"shard": Position.of(30), "guest": Position.of(7)})
    for hours in (0, 0.2, 0.4, 0.6, 0.8):
        found = replace(seen(hours), tail=guest) if hours == 0.4 else seen(hours)
        assert journal.note_tail_observation(KEY, found)
    journal.note_tail_observation(KEY, seen(3 * 24))
    journal.note_tail_observation(KEY, seen(40 * 24))
    around = journal.tail_observations_around(KEY, NOON, NOON + HOUR)
    assert [one.at for one in around[:-1]] == [NOON, NOON + 0.4 * HOUR, NOON + 0.6 * HOUR]
    assert around[1].tail == guest


SHARDS = st.sets(st.sampled_from("abc"))


@given(st.lists(st.tuples(SHARDS, SHARDS, st.sampled_from("12")), min_size=1, max_size=8))
def test_what_an_observation_adds_is_not_thinned_away(states):
    """Each shard that was there, each that was empty, and each incarnation is in one that is kept."""
    crowd = [
        TailObservation(
            NOON + number * timedelta(minutes=1),
            Cut({shard: Position.of(number) for shard in shards}),
            tuple((shard, life) for shard in sorted(shards)),
            frozenset(shards & empty),
        )
        for number, (shards, empty, life) in enumerate(states)
    ]
    gone = set(superfluous(crowd))
    kept = [one for one in crowd if one.at not in gone]
    assert kept[0] == crowd[0]
    for one in crowd:
        before = [other for other in kept if other.at <= one.at][-1]
        assert one.tail.keys() == before.tail.keys()
        assert one.incarnation == before.incarnation
        assert not (before.empty - one.empty), "its first entry was seen"


def test_the_first_entry_of_a_shard_is_noted_however_soon_it_is_seen(journal):
    empty = replace(seen(0), empty=frozenset({"shard"}))
    assert journal.note_tail_observation(KEY, empty)
    assert not journal.note_tail_observation(KEY, replace(empty, at=empty.at + SPACING / 3))
    filled = replace(seen(0), at=empty.at + SPACING / 2, empty=frozenset())
    assert journal.note_tail_observation(KEY, filled)
    assert journal.tail_observation(KEY, filled.at) == filled
