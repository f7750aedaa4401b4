from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.pulsar.client.admin.responses import EntryId, InternalStats, Ledger
from airflow_provider_streams.systems.pulsar.metadata.ledgers import EARLIEST, at
from airflow_provider_streams.systems.pulsar.planning import cuts
from airflow_provider_streams.systems.pulsar.planning.boundary_search import Edge
from tests.unit.systems.pulsar.cluster import EPOCH_MS, at_ms

STATS = InternalStats((Ledger(10, 5, 500), Ledger(13, 5, 500), Ledger(16, 2, 200)), EntryId(16, 1), "LedgerOpened")
SINCE = at_ms(EPOCH_MS)


def shard(**given):
    return cuts.Shard("persistent://a/b/c", **{"stats": STATS, "last": Position.of(16, 1, -1), **given})


def test_the_tail_is_after_the_last_readable_message():
    assert cuts.tail(shard()) == at(16, 2)
    # inside a batch: after its whole entry; markers after it belong to the next window
    assert cuts.tail(shard(last=Position.of(16, 0, 4))) == at(16, 1)


def test_the_tail_of_a_shard_without_messages_is_its_head():
    assert cuts.tail(shard(last=None)) == at(10, 0)


def test_a_last_message_that_is_gone_does_not_put_the_tail_before_the_head():
    trimmed = InternalStats((Ledger(29, 0, 0),), EntryId(28, 19), "LedgerOpened")
    assert cuts.tail(shard(stats=trimmed, last=Position.of(28, 19, -1))) == at(29, 0)


def edges(start, end):
    return Edge(start, is_proven=True), Edge(end, is_proven=True)


def test_a_partition_never_written_to_is_an_empty_range():
    nothing = shard(stats=None, last=None)
    between = cuts.publish(nothing, *edges(EARLIEST, EARLIEST))
    assert between == cuts.given(nothing, None, None) == cuts.Bounds(EARLIEST, EARLIEST)


def test_publish_ends_at_the_tail_at_the_latest():
    bounds = cuts.publish(shard(last=Position.of(13, 3, -1)), *edges(at(10, 2), at(16, 2)))
    assert bounds == cuts.Bounds(at(10, 2), at(13, 4))


def test_publish_never_ends_before_its_start():
    assert cuts.publish(shard(), *edges(at(13, 0), at(10, 3))) == cuts.Bounds(at(13, 0), at(13, 0))


def test_given_cuts_are_taken_as_given():
    assert cuts.given(shard(), at(10, 3), at(16, 1)) == cuts.Bounds(at(10, 3), at(16, 1))
    assert cuts.given(shard(), None, None) == cuts.Bounds(at(10, 0), at(16, 2))


def test_an_inverted_range_is_refused():
    with pytest.raises(InvalidRequest, match="before the start"):
        cuts.given(shard(), at(13, 0), at(10, 0))


def test_a_start_beyond_what_was_ever_written_is_refused():
    with pytest.raises(InvalidRequest, match="one cluster"):
        cuts.given(shard(), at(17, 0), None)


def test_what_stands_between_tail_and_end_is_decided_by_its_last_entry():
    held = shard(last=Position.of(13, 3, -1))
    assert cuts.waiting_entry(held, at(16, 2)) == EntryId(16, 1)
    assert cuts.waiting_entry(held, at(16, 0)) == EntryId(13, 4)
    assert cuts.waiting_entry(held, at(13, 4)) is None
    assert cuts.waiting_entry(shard(), at(16, 2)) is None


def test_an_end_beyond_the_last_entry_is_beyond_the_tail():
    assert not cuts.is_beyond_tail(shard(), at(16, 2))
    assert not cuts.is_beyond_tail(shard(), at(13, 900))
    assert cuts.is_beyond_tail(shard(), at(16, 3))
    assert cuts.is_beyond_tail(shard(), at(17, 0))


@pytest.mark.parametrize("names", [["x"], ["x", "y", "z"], []])
def test_a_cut_names_every_shard_once(names):
    with pytest.raises(InvalidRequest, match=r"missing|not in"):
        cuts.check_shards({"x": 1, "y": 1}, dict.fromkeys(names))


@given(st.integers(-(10**6), 10**6), st.integers(0, 10**6))
def test_times_are_rounded_up_so_that_none_before_them_is_met(microseconds, slack):
    moment = SINCE + timedelta(microseconds=microseconds)
    found = cuts.lookup_ms(moment, timedelta(microseconds=slack))
    wanted = EPOCH_MS + (microseconds + slack) / 1000
    assert wanted <= found < wanted + 1


@pytest.mark.parametrize("year", [1, 9999])
def test_any_time_of_the_calendar_can_be_looked_up(year):
    moment = SINCE.replace(year=year)
    assert (
        cuts.lookup_ms(moment, timedelta(days=400)) - cuts.lookup_ms(moment, -timedelta(days=400)) == 800 * 86_400_000
    )
