from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import EventsLost, ReceiptMismatch
from airflow_provider_streams.model.plan import PlanRequest, Span
from airflow_provider_streams.model.receipt import SplitReceipt, compare
from airflow_provider_streams.model.source import PulsarSource
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.systems.pulsar import explain as explaining
from airflow_provider_streams.systems.pulsar.admin.answers import EntryId
from airflow_provider_streams.systems.pulsar.admin.peek import PeekedEntry
from airflow_provider_streams.systems.pulsar.explain import Unknown, cause_of, explained
from tests.unit.systems.pulsar.cluster import EPOCH_MS, Cluster, Stored, Topic, at_ms

KINDS = ["event", "aborted", "event", "marker", "aborted", "event", "marker", "event"]
MARKER, ABORTED, EVENT = PeekedEntry(None, marker_type=21), PeekedEntry(None, aborted=True), PeekedEntry(None)


def planned():
    cluster = Cluster()
    stored = [Stored(EPOCH_MS + i, kind) for i, kind in enumerate(KINDS)]
    cluster.add("t", Topic.of(stored, per_ledger=4))
    window = Window(at_ms(EPOCH_MS), at_ms(EPOCH_MS + 1000))
    request = PlanRequest(PulsarSource("t"), window, "r", slack=timedelta(0))
    return cluster, cluster.plan(request, now=at_ms(EPOCH_MS + 10**6))


def report(plan, gaps):
    (split,) = plan.splits
    return SplitReceipt(0, entries=split.entries - sum(gap.entries for gap in gaps), gaps=tuple(gaps))


def explain(cluster, plan, reports, on_loss="fail"):
    async def ask(planner):
        return await explaining.explain(planner._admin, plan, reports, on_loss=on_loss)

    return cluster.ask(ask)


GAPS = [Span(10, 1, 2), Span(10, 3, 4), Span(13, 0, 1), Span(13, 2, 3)]


def test_markers_and_aborted_entries_are_explained():
    cluster, plan = planned()
    (found,) = explain(cluster, plan, [report(plan, GAPS)])
    assert found.gaps == ()
    assert found.explained == {"aborted": 2, "marker": 2}
    assert compare(plan, [found], seconds=1).verdict == "complete"


def test_a_dropped_event_stays_a_gap_and_fails_the_comparison():
    cluster, plan = planned()
    (found,) = explain(cluster, plan, [report(plan, [Span(10, 1, 4), *GAPS[2:]])])
    assert found.gaps == (Span(10, 2, 3),)
    with pytest.raises(ReceiptMismatch, match="10:2"):
        compare(plan, [found], seconds=1)


def test_entries_of_a_removed_ledger_are_lost():
    cluster, plan = planned()
    next(iter(cluster.topics.values())).trim(1, EPOCH_MS)
    reports = [report(plan, [Span(10, 0, 4), *GAPS[2:]])]
    with pytest.raises(EventsLost) as caught:
        explain(cluster, plan, reports)
    assert caught.value.shard == plan.splits[0].shard
    assert "4 entries" in str(caught.value)
    (found,) = explain(cluster, plan, reports, on_loss="record")
    assert found.explained == {"lost": 4, "aborted": 1, "marker": 1}
    assert compare(plan, [found], seconds=1).verdict == "loss recorded"


def test_more_gaps_than_are_asked_about_in_one_go_are_all_explained(monkeypatch):
    monkeypatch.setattr(explaining, "TOGETHER", 3)
    cluster, plan = planned()
    (found,) = explain(cluster, plan, [report(plan, GAPS)])
    assert found.explained == {"aborted": 2, "marker": 2}


def test_an_entry_that_cannot_be_looked_at_stays_a_gap():
    cluster, plan = planned()
    (found,) = explain(cluster, plan, [report(plan, [Span(13, 90, 92)])])
    assert found.gaps == (Span(13, 90, 92),)
    assert found.explained == {}


def test_receipts_without_gaps_ask_nothing():
    cluster, plan = planned()
    cluster.requests.clear()
    assert explain(cluster, plan, [report(plan, [])]) == (report(plan, []),)
    assert cluster.requests == []


def test_a_report_of_no_planned_split_is_left_to_the_comparison():
    cluster, plan = planned()
    stray = replace(report(plan, GAPS), index=9)
    assert explain(cluster, plan, [stray]) == (stray,)


@pytest.mark.parametrize(
    ("seen", "cause"), [(None, "lost"), (MARKER, "marker"), (ABORTED, "aborted"), (EVENT, None), (Unknown("500"), None)]
)
def test_each_kind_has_its_cause(seen, cause):
    assert cause_of(seen) == cause


spans = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 30), st.integers(1, 5)), max_size=6)


@given(spans, st.data())
def test_every_gap_entry_is_either_counted_or_still_a_gap(drawn, data):
    entries = sorted({(run, e) for run, first, count in drawn for e in range(first, first + count)})
    gaps = tuple(Span(run, entry, entry + 1) for run, entry in entries)
    kinds = st.sampled_from([None, MARKER, ABORTED, EVENT, Unknown("x")])
    seen = {EntryId(*entry): data.draw(kinds) for entry in entries}
    found = explained(SplitReceipt(0, gaps=gaps), seen)
    assert sum(found.explained.values()) + sum(gap.entries for gap in found.gaps) == len(entries)
    left = {EntryId(gap.run, e) for gap in found.gaps for e in range(gap.first, gap.end)}
    assert left == {entry for entry, kind in seen.items() if kind is EVENT or isinstance(kind, Unknown)}
