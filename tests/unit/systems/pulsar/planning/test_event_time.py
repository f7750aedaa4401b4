"""Basis `event`: random events, early, in time and late, over random adjacent windows."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidRequest, WindowNotReady
from airflow_provider_streams.model.plan import range_pruning
from airflow_provider_streams.model.plan.plan import Plan, PlanRequest, Terms
from airflow_provider_streams.model.plan.range_pruning import Proof, narrowed
from airflow_provider_streams.model.plan.receipt import SplitReceipt, compare
from airflow_provider_streams.model.plan.row_filter import FieldFilter, RowFilter, Stored
from airflow_provider_streams.model.schema.payload import Json
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.key_selection import Selection
from airflow_provider_streams.model.window.basis import EventTime
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pulsar.metadata.ledgers import EARLIEST
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.systems.time_bounds import TimeBounds
from airflow_provider_streams.windows.after_landing.late_rows import LateRows
from airflow_provider_streams.windows.plan.pruning_by_receipts import narrowed_by_receipts
from tests.seeds import examples
from tests.unit.systems.pulsar.cluster import EPOCH_MS, Cluster, Topic, at_ms
from tests.unit.systems.pulsar.cluster import Stored as Entry

NAME = "persistent://public/default/t"
LONGEST = 10**7
NOW = at_ms(EPOCH_MS + 10 * LONGEST)
EXAMPLES = examples(30)


def window(start_ms, end_ms):
    return Window(at_ms(EPOCH_MS + start_ms), at_ms(EPOCH_MS + end_ms))


def ms(count):
    return timedelta(milliseconds=count)


def request(start_ms=0, end_ms=1000, *, source=None, slack_ms=0, lateness_ms=0, **event):
    asked = EventTime(ms(lateness_ms), **event)
    span = window(start_ms, end_ms)
    return PlanRequest(source or PulsarSource("t"), span, "reader", basis="event", slack=ms(slack_ms), event=asked)


class System:
    """Of a cluster without servers, what a recount asks."""

    def __init__(self, cluster):
        self.cluster = cluster

    def plan(self, asked):
        return self.cluster.plan(asked, now=NOW)

    def parse_cut(self, _source, _text):
        return Cut({NAME: EARLIEST})


class Receipts:
    """What a journal has of windows that were read before."""

    def __init__(self):
        self.known = []

    def proofs(self, _source_key, _reader, window):
        return [one for one in self.known if one.plan.window.start < window.end and one.plan.window.end > window.start]


NOTHING = Receipts()


class World:
    """A topic whose entries have event times; 0: none."""

    def __init__(self, stored, per_ledger):
        self.cluster = Cluster()
        topic = Topic.of([Entry(EPOCH_MS + published) for _, published in stored], per_ledger)
        self.cluster.add("t", topic)
        self.event_ms = {
            place[:2]: EPOCH_MS + event if event is not None else 0
            for place, (event, _) in zip(topic.entries, stored, strict=True)
        }
        self.published_ms = {place[:2]: place[2].publish_ms for place in topic.entries}

    def rows(self, plan):
        """What a reader keeps: see `systems.pulsar.reading.reader`."""
        rows = plan.filter
        return [place for place in read_by(plan) if rows.start_ms <= self.time_of(place) < rows.end_ms]

    def receipt(self, plan):
        """What a reader reports."""
        reports = []
        for split in plan.splits:
            bounds = TimeBounds(split)
            for place in entries_of(split):
                bounds.add(*place, self.time_of(place) * 1000)
            reports.append(SplitReceipt(split.index, entries=split.entries, times=bounds.seen()))
        return compare(plan, reports, seconds=0)

    def time_of(self, place):
        return self.event_ms[place] or self.published_ms[place]


def entries_of(split):
    return [(span.run, n) for span in split.spans for n in range(span.first, span.end)]


def read_by(plan):
    return [place for split in plan.splits for place in entries_of(split)]


@st.composite
def worlds(draw, slack, lateness):
    """Events in the order in which they were stored; some up to `slack` early, some up to twice `lateness` late."""
    gaps = draw(st.lists(st.integers(0, 60), min_size=1, max_size=40))
    published = [sum(gaps[: index + 1]) + draw(st.integers(0, slack)) for index in range(len(gaps))]
    events = [draw(st.none() | st.integers(moment - 2 * lateness, moment + slack)) for moment in published]
    return World(list(zip(events, published, strict=True)), draw(st.integers(1, 7)))


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_each_event_is_in_its_window_or_counted_late_and_then_lands_in_its_own(data):
    slack, lateness = data.draw(st.integers(0, 50)), data.draw(st.integers(0, 200))
    world = data.draw(worlds(slack, lateness))
    system = System(world.cluster)
    first, last = min(map(world.time_of, world.event_ms)) - EPOCH_MS, max(map(world.time_of, world.event_ms)) - EPOCH_MS
    inner = data.draw(st.sets(st.integers(first, last + 1), max_size=4))
    landed, counted, whole = Counter(), Counter(), Counter()
    for start, end in pairwise(sorted({first, last + 1, *inner})):
        plan = system.plan(request(start, end, slack_ms=slack, lateness_ms=lateness))
        # of the terms, what is asked again
        pinned = with_terms(plan, slack, lateness)
        rows = world.rows(plan)
        landed.update(rows)
        assert all(start <= world.time_of(place) - EPOCH_MS < end for place in rows)
        late = world.rows(LateRows(NOTHING, system, PulsarSource("t"), ms(2 * lateness)).after(pinned))
        counted.update(late)
        again = world.rows(LateRows(NOTHING, system, PulsarSource("t"), ms(2 * lateness)).included(pinned))
        assert sorted(again) == sorted(rows + late)
        whole.update(again)
    every = Counter(dict.fromkeys(world.event_ms, 1))
    assert landed + counted == whole == every
    in_time = {place for place in every if world.published_ms[place] - world.time_of(place) <= lateness}
    assert in_time <= landed.keys(), "what is stored within allowed_lateness is not late"


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_what_receipts_prove_is_skipped_and_changes_no_row_and_no_count(data):
    """Windows in any order, each by the receipts of those before it, compared with plans that know of none."""
    slack, lateness = data.draw(st.integers(0, 50)), data.draw(st.integers(0, 200))
    world, receipts = data.draw(worlds(slack, lateness)), Receipts()
    system, source = System(world.cluster), PulsarSource("t")
    times = [world.time_of(place) - EPOCH_MS for place in world.event_ms]
    inner = data.draw(st.sets(st.integers(min(times), max(times) + 1), max_size=4))
    edges = sorted({min(times), max(times) + 1, *inner})
    with patch.object(range_pruning, "WORTH_A_SPLIT", data.draw(st.sampled_from([0, 500]))):
        for start, end in data.draw(st.permutations(list(pairwise(edges)))):
            whole = with_terms(system.plan(request(start, end, slack_ms=slack, lateness_ms=lateness)), slack, lateness)
            how = {"lateness": ms(lateness), "slack": ms(slack)}
            less = narrowed_by_receipts(receipts, source.key, whole, **how)
            less.check()
            assert Plan.from_json(less.to_json()) == less
            assert world.rows(less) == world.rows(whole)
            assert (less == whole) == (less.fingerprint == whole.fingerprint) == (not less.skipped)
            receipts.known.append(Proof(less, world.receipt(less)))
            for look in (LateRows.after, LateRows.included):
                asked = (system, source, ms(2 * lateness))
                narrow, plain = (look(LateRows(journal, *asked), less) for journal in (receipts, NOTHING))
                assert world.rows(narrow) == world.rows(plain)
                assert set(read_by(narrow)) <= set(read_by(plain))


def test_a_window_does_not_read_what_the_next_one_has_proven_to_be_its_own():
    """Newest first, as a backfill of the past may go: of what follows a window only late events are its own."""
    world = World([(moment, moment) for moment in range(0, 10_000, 10)], 50)
    stored = list(world.event_ms)
    world.event_ms[stored[710]] = EPOCH_MS + 5_990  # more than a second late
    system, receipts = System(world.cluster), Receipts()
    read = {}
    with patch.object(range_pruning, "WORTH_A_SPLIT", 0):
        for start in (7000, 6000, 5000):
            plan = system.plan(request(start, start + 1000, slack_ms=0, lateness_ms=2000))
            less = narrowed_by_receipts(receipts, "t", plan, lateness=ms(2000), slack=ms(0))
            assert world.rows(less) == world.rows(plan)
            receipts.known.append(Proof(less, world.receipt(less)))
            read[start] = (len(read_by(plan)), len(read_by(less)))
    assert read[7000][0] == read[7000][1]
    whole, less = read[5000]
    assert 290 <= whole <= 330
    assert 100 <= less <= 200, "its own, and the piece that holds the late one"


def test_nothing_is_skipped_by_receipts_of_another_life_or_another_time():
    world = World([(moment, moment) for moment in range(0, 10_000, 10)], 50)
    system, later = System(world.cluster), request(6000, 7000, lateness_ms=2000)
    plan = system.plan(later)
    proof = Proof(plan, world.receipt(plan))
    earlier = system.plan(request(5000, 6000, lateness_ms=2000))
    position_of = declaration_of("pulsar").position_of
    assert narrowed(earlier, [proof], position_of).skipped
    (split,) = plan.splits
    (report,) = proof.receipt.splits
    without = {
        "another life": replace(proof, plan=replace(plan, source=replace(plan.source, incarnation=((NAME, "x"),)))),
        "an unknown incarnation": replace(proof, plan=replace(plan, source=replace(plan.source, incarnation=()))),
        "another cluster": replace(proof, plan=replace(plan, source=replace(plan.source, cluster="there"))),
        "another time": replace(proof, plan=replace(plan, filter=replace(plan.filter, column="publish_time"))),
        "other keys": replace(proof, plan=replace(plan, selection=Selection(keys=(b"a",)))),
    }
    lost = replace(report, explained={"lost": 1})
    gaps = replace(report, gaps=split.spans[:1])
    unknown = replace(report, times=tuple(replace(one, unknown=1) for one in report.times))
    for name, one in {"lost": lost, "a gap": gaps, "an unknown time": unknown}.items():
        without[name] = replace(proof, receipt=replace(proof.receipt, splits=(one,)))
    for name, one in without.items():
        # the receipt is of that plan, whatever the plan says
        told = replace(one, receipt=replace(one.receipt, fingerprint=one.plan.fingerprint))
        assert narrowed(earlier, [told], position_of) == earlier, name
    assert (
        narrowed(earlier, [replace(proof, receipt=replace(proof.receipt, fingerprint="other"))], position_of) == earlier
    )
    unknown_now = replace(earlier, source=replace(earlier.source, incarnation=()))
    assert narrowed(unknown_now, [proof], position_of) == unknown_now


def test_decoded_times_prove_nothing_for_another_decoding():
    world = World([(moment, moment) for moment in range(0, 10_000, 10)], 50)
    position_of = declaration_of("pulsar").position_of

    def made(start, ddl="at timestamp", **event):
        source = PulsarSource("t", value=Json(ddl))
        return world.cluster.plan(
            request(start, start + 1000, source=source, lateness_ms=2000, event_time="at", **event), now=NOW
        )

    plan = made(6000)
    proof = Proof(plan, world.receipt(plan))
    assert narrowed(made(5000), [proof], position_of).skipped
    assert not narrowed(made(5000, "at timestamp, id string"), [proof], position_of).skipped
    assert not narrowed(made(5000, "at long", unit="ms"), [proof], position_of).skipped


def with_terms(plan, slack, lateness):
    return replace(plan, terms=Terms(ms(slack), None, "fail", ms(lateness)))


def test_a_window_waits_for_its_late_events_and_asks_nothing_before():
    cluster = Cluster()
    cluster.add("t", Topic.of([Entry(EPOCH_MS)]))
    asked = request(0, 1000, slack_ms=500, lateness_ms=3000)
    ready = at_ms(EPOCH_MS + 4500)
    with pytest.raises(WindowNotReady, match=r"it is certain at .* at the earliest"):
        cluster.plan(asked, now=ready - ms(1))
    assert cluster.requests == []
    assert cluster.plan(asked, now=ready).window == asked.window


def test_a_window_by_event_time_reads_more_than_by_publish_time_and_filters():
    world = World([(moment, moment) for moment in range(0, 1000, 100)], 5)
    plan = world.cluster.plan(request(300, 600, slack_ms=100, lateness_ms=200), now=NOW)
    assert plan.filter == RowFilter("event_time", EPOCH_MS + 300, EPOCH_MS + 600)
    assert plan.basis == "event"
    read = sum(span.entries for split in plan.splits for span in split.spans)
    assert (read, len(world.rows(plan))) == (8, 3), "published from 100 to 900: what was early, and what is late"


def test_a_decoded_field_filters_where_it_is_decoded():
    world = World([(0, 0)], 5)
    source = PulsarSource("t", value=Json("at timestamp"))
    plan = world.cluster.plan(request(0, 10, source=source, event_time="at"), now=NOW)
    assert plan.filter == FieldFilter("at", EPOCH_MS * 1000, EPOCH_MS * 1000 + 10_000, None, Stored("publish_time"))


def test_a_field_of_what_is_not_decoded_is_refused():
    with pytest.raises(InvalidRequest, match=r"nothing is decoded: say what the values are, like value='auto'"):
        Cluster().plan(request(event_time="at"), now=NOW)


def test_a_window_that_leaves_the_calendar_is_refused():
    early = Window(at_ms(-62_135_596_800_000), at_ms(0))
    with pytest.raises(InvalidRequest, match="leaves the years 1 to 9999"):
        Cluster().plan(PlanRequest(PulsarSource("t"), early, "reader", basis="event"), now=NOW)


def test_an_event_that_is_stored_far_too_late_is_counted_and_lands_on_request():
    stored = [(moment, moment) for moment in range(0, 10_000, 10)]
    stored[900] = (105, 9000)
    world = World(stored, 50)
    system, source = System(world.cluster), PulsarSource("t")
    plan = with_terms(system.plan(request(100, 200, lateness_ms=500)), 0, 500)
    assert len(world.rows(plan)) == 10
    (late,) = world.rows(LateRows(NOTHING, system, source, ms(9000)).after(plan))
    assert world.time_of(late) == EPOCH_MS + 105
    again = LateRows(NOTHING, system, source, ms(9000)).included(plan)
    assert sorted(world.rows(again)) == sorted([*world.rows(plan), late])
    assert (again.basis, again.filter, again.terms) == (plan.basis, plan.filter, plan.terms)
    assert world.rows(LateRows(NOTHING, system, source, ms(8000)).after(plan)) == [], "later than the lookback"
