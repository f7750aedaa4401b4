from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.systems.pulsar import cuts
from airflow_provider_streams.systems.pulsar.admin.answers import (
    EntryId,
    InternalInfo,
    InternalStats,
    Ledger,
    LedgerInfo,
)
from airflow_provider_streams.systems.pulsar.layout import EARLIEST, at
from tests.unit.systems.pulsar.cluster import EPOCH_MS, at_ms

STATS = InternalStats((Ledger(10, 5, 500), Ledger(13, 5, 500), Ledger(16, 2, 200)), EntryId(16, 1), "LedgerOpened")
SINCE = at_ms(EPOCH_MS)


def shard(**given):
    return cuts.Shard("persistent://a/b/c", **{"stats": STATS, "last": Position.of(16, 1, -1), **given})


def test_the_tail_is_after_the_last_readable_message():
    assert cuts.tail(shard()) == at(16, 2)
    # inside a batch: after its whole entry; markers behind it belong to the next window
    assert cuts.tail(shard(last=Position.of(16, 0, 4))) == at(16, 1)


def test_the_tail_of_a_shard_without_messages_is_its_head():
    assert cuts.tail(shard(last=None)) == at(10, 0)


def test_a_last_message_that_is_gone_does_not_put_the_tail_before_the_head():
    trimmed = InternalStats((Ledger(29, 0, 0),), EntryId(28, 19), "LedgerOpened")
    assert cuts.tail(shard(stats=trimmed, last=Position.of(28, 19, -1))) == at(29, 0)


def test_a_partition_never_written_to_is_an_empty_range():
    nothing = shard(stats=None, last=None)
    assert cuts.publish(nothing, SINCE) == cuts.given(nothing, None, None) == cuts.Bounds(EARLIEST, EARLIEST)


def test_publish_ends_at_the_tail_at_the_latest():
    bounds = cuts.publish(shard(start_at=at(10, 2), end_at=at(16, 2), last=Position.of(13, 3, -1)), SINCE)
    assert bounds == cuts.Bounds(at(10, 2), at(13, 4))


def test_publish_never_starts_before_the_head_or_ends_before_its_start():
    bounds = cuts.publish(shard(start_at=at(4, 0), end_at=at(5, 0)), SINCE)
    assert bounds == cuts.Bounds(at(10, 0), at(10, 0))


def compacted(*closed_ms):
    stats = InternalStats(STATS.ledgers, STATS.last_confirmed, "LedgerOpened", compacted_ledger=99)
    rows = tuple(LedgerInfo(row.ledger, ms) for row, ms in zip(STATS.ledgers, closed_ms, strict=True))
    return shard(stats=stats, info=InternalInfo(3, SINCE, SINCE, rows), start_at=at(16, 1), end_at=at(16, 2))


def test_on_a_compacted_topic_the_start_comes_from_ledger_close_times():
    assert cuts.publish(compacted(EPOCH_MS - 1, EPOCH_MS, None), SINCE).start == at(13, 0)
    assert cuts.publish(compacted(EPOCH_MS, EPOCH_MS + 1, None), SINCE).start == at(10, 0)
    assert cuts.publish(compacted(EPOCH_MS - 2, EPOCH_MS - 1, None), SINCE).start == at(16, 0)


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
