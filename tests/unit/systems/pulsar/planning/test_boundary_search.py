from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_streams.systems.io_free_rules import run
from airflow_provider_streams.systems.pulsar.metadata.ledgers import EARLIEST, Layout, at
from airflow_provider_streams.systems.pulsar.planning.boundary_search import FAR_MS, MOST_ENTRIES, edges_of, start_of
from airflow_provider_streams.systems.pulsar.planning.entry_probe import side_by_side
from tests.seeds import examples
from tests.unit.systems.pulsar.cluster import Stored, Topic, at_ms

HOUR = 3_600_000


@dataclass
class Shard:
    topic: Topic
    looked: list = field(default_factory=list)

    @property
    def layout(self):
        from airflow_provider_streams.systems.pulsar.client.admin.responses import InternalStats

        return Layout.of(InternalStats.of(self.topic.internal_stats()))

    def probe(self, places):
        self.looked += places
        return [self.topic.probe(place.ledger, place.entry, place.wanted) for place in places]

    def edges(self, start, end, slack=0):
        """Where the window is, from the broker's own guesses."""
        guesses = at(*self.topic.message_id(start - slack)), at(*self.topic.message_id(end + slack))
        return run(side_by_side({0: edges_of("t", self.layout, guesses, (start, end), slack)}), self.probe)[0]

    def between(self, start, end, slack=0):
        """The publish times of the messages that a reader of the window keeps."""
        first, last = (edge.position for edge in self.edges(start, end, slack))
        return [
            entry.publish_ms
            for ledger, number, entry in self.topic.readable
            if first <= at(ledger, number) < last and start <= entry.publish_ms < end
        ]


def shard_of(*stored, per_ledger=50):
    return Shard(Topic.of(list(stored), per_ledger))


def events(*times, kind="event", origin=None):
    return [Stored(ms, kind, origin) for ms in times]


def test_in_an_ordinary_topic_the_lookup_is_confirmed_by_one_look_at_each_edge():
    shard = shard_of(*events(*range(0, 10_000, 10)))
    start, end = shard.edges(2000, 5000)
    assert (start.position, end.position) == (at(22, 0), at(40, 0))
    assert start.is_proven
    assert end.is_proven
    assert len(shard.looked) == 2
    assert (start.walked, end.walked, start.disorder_ms) == (0, 0, 0)


def test_the_tail_needs_no_proof_and_the_head_may_have_it():
    shard = shard_of(*events(*range(1000, 2000, 10)))
    start, end = shard.edges(0, 9000)
    assert (start.position, start.is_proven, start.first_published) == (shard.layout.head, False, at_ms(1000))
    assert (end.position, end.is_proven) == (shard.layout.end, False)
    # the head's own message is older than the window, so nothing of that was removed
    assert run(side_by_side({0: start_of("t", shard.layout, EARLIEST, 1500, 0)}), shard.probe)[0].is_proven


@pytest.mark.parametrize("offset", [2 * HOUR, -2 * HOUR])
@pytest.mark.parametrize("window", [(0, 10_000), (2000, 5000), (9000, 9100), (-5000, 50)])
def test_markers_of_another_clock_move_no_event_out_of_its_window(offset, window):
    # every third entry is a marker, stamped by the broker, whose clock is ahead or late
    stored = [Stored(ms + offset, "marker") if ms % 30 == 0 else Stored(ms) for ms in range(0, 10_000, 10)]
    expected = [one.publish_ms for one in stored if one.kind == "event" and window[0] <= one.publish_ms < window[1]]
    assert shard_of(*stored).between(*window, slack=100) == expected


def test_long_stretches_of_markers_are_walked_over():
    stored = [*events(*range(0, 1000, 10)), *events(*range(-HOUR, -HOUR + 500), kind="marker"), *events(1000, 1010)]
    shard = shard_of(*stored)
    assert shard.between(1000, 2000) == [1000, 1010]
    assert shard.edges(1000, 2000)[0].walked > 400
    assert len(shard.looked) < 20, "the steps grow"


def test_aborted_messages_prove_nothing():
    stored = [
        *events(*range(0, 500, 10)),
        *events(*range(500, 2000, 10), kind="aborted"),
        *events(*range(400, 900, 10)),
    ]
    shard = shard_of(*stored)
    # what was aborted would have looked like order
    assert set(range(400, 900, 10)) <= set(shard.between(400, 900))


@pytest.mark.parametrize("other", [-2 * HOUR, 2 * HOUR])
def test_producers_whose_clocks_differ_hide_no_event_of_each_other(other):
    stored = [Stored(ms + (other if index % 2 else 0)) for index, ms in enumerate(range(0, 4 * HOUR, 20_000))]
    shard = shard_of(*stored)
    for start in range(-2 * HOUR, 6 * HOUR, HOUR // 2):
        window = start, start + HOUR // 2
        expected = [one.publish_ms for one in stored if window[0] <= one.publish_ms < window[1]]
        assert shard.between(*window, slack=60_000) == expected
    start, end = shard.edges(HOUR, 2 * HOUR, 60_000)
    assert start.disorder_ms >= 2 * HOUR
    assert (end.walked > 0) or (start.walked > 0)


def test_one_broken_clock_does_not_widen_a_window():
    times = list(range(0, 10_000, 10))
    times[480] = times[520] = 99 * FAR_MS
    shard = shard_of(*events(*times))
    start, end = shard.edges(4810, 5190)
    assert start.disorder_ms == 0
    entries = shard.layout.index_of(end.position) - shard.layout.index_of(start.position)
    assert entries < 38 + 6 * MOST_ENTRIES


def test_messages_of_another_cluster_decide_only_where_there_are_no_others():
    lagging = [Stored(ms - HOUR, "event", b"west") for ms in range(0, 400, 10)]
    stored = [*events(*range(0, 1000, 10)), *lagging, *events(*range(1000, 2000, 10))]
    # after the lagging ones, the lookup believes that an hour earlier has not come yet
    assert shard_of(*stored).between(900, 1100) == [*range(900, 1000, 10), *range(1000, 1100, 10)]
    replica = shard_of(*(Stored(ms, "event", b"west") for ms in range(0, 10_000, 10)))
    start, end = replica.edges(2000, 5000)
    assert (start.position, end.position) == (at(22, 0), at(40, 0))
    assert start.is_proven


def test_behind_an_open_transaction_nothing_proves_an_end():
    shard = shard_of(*events(0, 10, 20), Stored(30, "open"), *events(9000, 9010))
    start, end = shard.edges(0, 100)
    assert start.position == shard.layout.head
    assert not end.is_proven


def test_large_entries_are_looked_at_one_by_one():
    shard = shard_of(*events(*range(0, 1000, 10)))
    stats = shard.topic.internal_stats
    shard.topic.internal_stats = lambda: {
        **stats(),
        "ledgers": [{**row, "size": row["entries"] * 10**6} for row in stats()["ledgers"]],
    }
    shard.edges(200, 400)
    assert {place.wanted for place in shard.looked} == {1}


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_every_event_that_is_not_late_is_in_its_window(data):
    slack = data.draw(st.integers(0, 50), label="slack")
    steps = data.draw(st.lists(st.integers(0, 40), min_size=1, max_size=120), label="steps")
    offset = data.draw(st.sampled_from([0, 10_000, -10_000]), label="the broker's clock")
    kinds = st.sampled_from(["event", "event", "marker", "aborted"])
    stored, now = [], 0
    for step in steps:
        now += step
        kind = data.draw(kinds)
        jitter = 0 if kind == "marker" else data.draw(st.integers(0, slack))
        stored.append(Stored(now + jitter + (offset if kind == "marker" else 0), kind))
    shard = shard_of(*stored, per_ledger=data.draw(st.integers(1, 40)))
    start = data.draw(st.integers(-20, now + 20), label="start")
    end = start + data.draw(st.integers(1, now + 20), label="length")
    expected = [one.publish_ms for one in stored if one.kind == "event" and start <= one.publish_ms < end]
    assert shard.between(start, end, slack) == expected
