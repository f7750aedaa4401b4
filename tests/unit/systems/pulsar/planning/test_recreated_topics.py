"""Windows whose cuts are of topics that were deleted and made again since: lost, or from the new one's beginning on."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from airflow_provider_streams.errors import StartTrimmed
from airflow_provider_streams.model.plan.plan import Plan, PlanRequest
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from tests.unit.systems.pulsar.cluster import EPOCH_MS, Cluster, Stored, Topic, at_ms

NAME = "persistent://public/default/t"
OTHER = "persistent://public/default/other"
NOW = at_ms(EPOCH_MS + 10**7)
SOURCE = PulsarSource(["t", "other"])
REQUEST = PlanRequest(SOURCE, Window(at_ms(EPOCH_MS), at_ms(EPOCH_MS + 1)), "reader", basis="append", on_loss="record")


@pytest.fixture
def cluster():
    cluster = Cluster()
    cluster.add("t", Topic())
    cluster.add("other", Topic())
    return cluster


def recorded(cluster):
    """A cut and the incarnations of its shards, as a recorder takes them."""
    seen = cluster.ask(lambda planner: planner.observe_tail(SOURCE))
    return seen.tail, cluster.ask(lambda planner: planner.incarnation(SOURCE))


def plan(cluster, start, end, **more):
    cuts = {"start_cut": start[0], "end_cut": end[0], "start_incarnation": start[1], "end_incarnation": end[1]}
    made = cluster.plan(replace(REQUEST, **cuts, **more), now=NOW)
    assert Plan.from_json(made.to_json()) == made, "it holds together"
    return made


def entries(plan, shard):
    return [
        (span.run, number)
        for split in plan.splits
        if split.shard == shard
        for span in split.spans
        for number in range(span.first, span.end)
    ]


def write(cluster, count, name=NAME):
    topic = cluster.topics[name]
    topic.ledgers[list(topic.ledgers)[-1]] += [Stored(EPOCH_MS)] * count


def made_anew(cluster, ledger):
    """Of a broker that was wiped with ledgers of the same numbers, else with later ones."""
    cluster.add("t", Topic({ledger: []}, created_ms=cluster.topics[NAME].created_ms + 5000))


@pytest.mark.parametrize("ledger", [1, 9], ids=["wiped", "made again"])
@pytest.mark.parametrize("size", [3, 300])
def test_every_entry_of_the_new_life_is_in_one_window_and_dead_windows_are_lost(cluster, ledger, size):
    cuts = [recorded(cluster)]
    for count in (10, 20):
        write(cluster, count)
        write(cluster, 5, OTHER)
        cuts.append(recorded(cluster))
    made_anew(cluster, ledger)
    for count in (size, 7):
        write(cluster, count)
        write(cluster, 5, OTHER)
        cuts.append(recorded(cluster))
    plans = [plan(cluster, *pair) for pair in pairwise(cuts)]
    read = [entries(one, NAME) for one in plans]
    new = [(ledger, number) for number in range(size + 7)]
    assert read == [[], [], new[:size], new[size:]]
    assert [len(entries(one, OTHER)) for one in plans] == [5, 5, 5, 5], "the other topic has lost nothing"
    assert [[loss.shard for loss in one.losses] for one in plans] == [[NAME], [NAME], [NAME], []]
    assert (plans[1].losses[0].start.parts, plans[1].losses[0].end.parts) == ((1, 10, -1), (1, 30, -1))
    for pair in list(pairwise(cuts))[:3]:
        with pytest.raises(
            StartTrimmed, match=r"the topic was deleted, and made again at .* the cut is of one made at"
        ):
            plan(cluster, *pair, on_loss="fail")


@pytest.mark.parametrize("ledger", [1, 9], ids=["wiped", "made again"])
@pytest.mark.parametrize("size", [3, 300])
def test_a_chain_goes_on_at_the_head_of_a_topic_that_was_made_anew(cluster, ledger, size):
    write(cluster, 30)
    (tail, incarnations), chained = recorded(cluster), replace(REQUEST, basis="chained")
    made_anew(cluster, ledger)
    write(cluster, size)
    chained = replace(chained, start_cut=tail, start_incarnation=incarnations)
    made = cluster.plan(chained, now=NOW)
    assert entries(made, NAME) == [(ledger, number) for number in range(size)]
    assert [loss.shard for loss in made.losses] == [NAME]
    with pytest.raises(StartTrimmed, match="made again"):
        cluster.plan(replace(chained, on_loss="fail"), now=NOW)


@pytest.mark.parametrize("ledger", [1, 9], ids=["wiped", "made again"])
def test_a_window_between_two_cuts_of_one_place_holds_nothing_whatever_became_of_the_topic(cluster, ledger):
    write(cluster, 10)
    first, second = recorded(cluster), recorded(cluster)
    write(cluster, 5, OTHER)
    made_anew(cluster, ledger)
    write(cluster, 30)
    for start, end, has_lost in ((first, second, False), (first, recorded(cluster), True)):
        made = plan(cluster, start, end)
        assert [loss.shard for loss in made.losses] == [NAME] * has_lost
    quiet = plan(cluster, first, second, on_loss="fail", on_unproven="fail")
    assert {one.shard: one.verdict for one in quiet.ranges}[NAME] == "empty"
    with pytest.raises(StartTrimmed):
        plan(cluster, first, (second[0], recorded(cluster)[1]), on_loss="fail")


def test_a_window_between_two_cuts_of_one_place_holds_nothing_although_the_place_is_gone(cluster):
    write(cluster, 10)
    first, second = recorded(cluster), recorded(cluster)
    topic = cluster.topics[NAME]
    topic.ledgers[9] = [Stored(EPOCH_MS)]
    topic.trim(1, EPOCH_MS)
    made = plan(cluster, first, second, on_loss="fail", on_unproven="fail")
    assert [one.verdict for one in made.ranges] == ["empty", "empty"]
    with pytest.raises(StartTrimmed):
        plan(cluster, first, recorded(cluster), on_loss="fail")
