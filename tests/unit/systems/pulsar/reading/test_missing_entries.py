from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_streams.errors import EventsLost, ReceiptMismatch
from airflow_provider_streams.model.plan.plan import PlanRequest, Span
from airflow_provider_streams.model.plan.receipt import SplitReceipt, compare
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pulsar.reading import missing_entries as explaining
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from tests.seeds import examples
from tests.unit.systems.pulsar.cluster import EPOCH_MS, Cluster, Stored, Topic, at_ms

KINDS = ["event", "aborted", "event", "marker", "aborted", "event", "marker", "event"]
NAME = "persistent://public/default/t"


def planned(kinds=KINDS, per_ledger=4):
    cluster = Cluster()
    stored = [Stored(EPOCH_MS + i, kind) for i, kind in enumerate(kinds)]
    cluster.add("t", Topic.of(stored, per_ledger=per_ledger))
    window = Window(at_ms(EPOCH_MS), at_ms(EPOCH_MS + 1000))
    request = PlanRequest(PulsarSource("t"), window, "r", slack=timedelta(0))
    plan = cluster.plan(request, now=at_ms(EPOCH_MS + 10**6))
    cluster.looked.clear()
    return cluster, plan


def report(plan, gaps):
    (split,) = plan.splits
    return SplitReceipt(0, entries=split.entries - sum(gap.entries for gap in gaps), gaps=tuple(gaps))


def explain(cluster, plan, reports, on_loss="fail"):
    async def ask(planner):
        return await explaining.explain(planner._cluster, plan, reports, on_loss=on_loss)

    return cluster.ask(ask)


GAPS = [Span(10, 1, 2), Span(10, 3, 4), Span(13, 0, 1), Span(13, 2, 3)]


def test_entries_that_readers_are_not_sent_are_explained():
    cluster, plan = planned()
    (found,) = explain(cluster, plan, [report(plan, GAPS)])
    assert found.gaps == ()
    assert found.explained == {"withheld": 4}
    assert compare(plan, [found], seconds=1).verdict == "complete"
    assert len(cluster.looked) == 2, "gaps near each other are looked at together"


def test_a_dropped_event_stays_a_gap_and_fails_the_comparison():
    cluster, plan = planned()
    (found,) = explain(cluster, plan, [report(plan, [Span(10, 1, 4), *GAPS[2:]])])
    assert found.gaps == (Span(10, 2, 4),)
    assert found.explained == {"withheld": 3}
    with pytest.raises(ReceiptMismatch, match="10:2"):
        compare(plan, [found], seconds=1)


def test_entries_of_a_removed_ledger_are_lost():
    cluster, plan = planned(KINDS * 2)
    cluster.topics[NAME].trim(3, EPOCH_MS)
    gaps = [Span(10, 0, 4), Span(13, 0, 1), Span(13, 2, 3), Span(16, 0, 4), Span(19, 0, 1), Span(19, 2, 3)]
    reports = [report(plan, gaps)]
    with pytest.raises(EventsLost) as caught:
        explain(cluster, plan, reports)
    assert caught.value.shard == NAME
    assert (str(caught.value.start), str(caught.value.end)) == ("10:0:-1", "16:4:-1")
    assert "10 entries (10:0 to 10:4, 13:0 to 13:1, 13:2 to 13:3, 16:0 to 16:4)" in str(caught.value)
    assert "removed by retention" in caught.value.cause
    (found,) = explain(cluster, plan, reports, on_loss="record")
    assert found.explained == {"lost": 10, "withheld": 2}
    assert compare(plan, [found], seconds=1).verdict == "loss recorded"


def test_a_recreated_topic_is_called_so_and_a_deleted_one_too():
    cluster, plan = planned()
    topic = cluster.topics[NAME]
    topic.created_ms, topic.ledgers = EPOCH_MS + 77, {99: []}
    with pytest.raises(EventsLost, match="deleted, and made again at"):
        explain(cluster, plan, [report(plan, [Span(10, 0, 4), Span(13, 0, 4)])])
    del cluster.topics[NAME]
    with pytest.raises(EventsLost, match="the topic was deleted after"):
        explain(cluster, plan, [report(plan, [Span(10, 0, 4), Span(13, 0, 4)])])


def test_many_lost_ranges_are_counted_and_some_shown():
    cluster, plan = planned(["event"] * 40, per_ledger=40)
    cluster.topics[NAME].ledgers = {99: []}
    with pytest.raises(EventsLost, match=r"20 entries \(10:0 to 10:1, .* and 15 more ranges\)"):
        explain(cluster, plan, [report(plan, [Span(10, first, first + 1) for first in range(0, 40, 2)])])


def test_a_long_gap_costs_one_look():
    cluster, plan = planned(["event", *["aborted"] * 5000, "event"], per_ledger=9000)
    (found,) = explain(cluster, plan, [report(plan, [Span(10, 1, 5001)])])
    assert found.explained == {"withheld": 5000}
    assert [place.wanted for place in cluster.looked] == [1]


def test_what_is_withheld_up_to_the_tail_is_explained():
    cluster, plan = planned(["event", "event", "aborted", "marker", "event"])
    topic = cluster.topics[NAME]
    topic.ledgers[13] = []
    (found,) = explain(cluster, plan, [report(plan, [Span(10, 2, 4)])])
    assert found.explained == {"withheld": 2}


def test_receipts_without_gaps_ask_nothing():
    cluster, plan = planned()
    cluster.requests.clear()
    assert explain(cluster, plan, [report(plan, [])]) == (report(plan, []),)
    assert cluster.requests == []


def test_a_report_of_no_planned_split_is_left_to_the_comparison():
    cluster, plan = planned()
    stray = replace(report(plan, GAPS), index=9)
    assert explain(cluster, plan, [stray]) == (stray,)


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_exactly_what_readers_are_sent_stays_a_gap(data):
    kinds = data.draw(
        st.lists(st.sampled_from(["event", "event", "event", "aborted", "marker"]), min_size=1, max_size=60)
    )
    cluster, plan = planned(kinds, per_ledger=data.draw(st.integers(1, 60)))
    places = [
        (span.run, number) for split in plan.splits for span in split.spans for number in range(span.first, span.end)
    ]
    if not places:
        return
    kind_of = {(ledger, number): entry.kind for ledger, number, entry in cluster.topics[NAME].entries}
    dropped = data.draw(st.sets(st.sampled_from(places)))
    missed = sorted({place for place in places if kind_of[place] != "event"} | dropped)
    gaps = [Span(run, number, number + 1) for run, number in missed]
    (found,) = explain(cluster, plan, [report(plan, gaps)])
    left = {(gap.run, number) for gap in found.gaps for number in range(gap.first, gap.end)}
    assert left == {place for place in dropped if kind_of[place] == "event"}
    assert sum(found.explained.values()) + len(left) == len(missed)
