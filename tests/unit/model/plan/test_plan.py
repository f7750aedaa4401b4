import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidRequest, PlanMismatch
from airflow_provider_streams.model.plan.plan import Loss, Plan, PlanRequest, SourceRef, Span, Split, Terms
from airflow_provider_streams.model.plan.row_filter import RowFilter
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.window.basis import EventTime
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from tests.seeds import examples
from tests.unit.model.values import cuts, moments, plans, windows

WINDOW = Window(datetime(2026, 11, 20, 10, tzinfo=UTC), datetime(2026, 11, 20, 11, tzinfo=UTC))


def through_json(plan):
    return Plan.from_json(json.loads(json.dumps(plan.to_json())))


@settings(max_examples=examples(40))
@given(plans())
def test_a_plan_survives_json_exactly(plan):
    again = through_json(plan)
    assert again == plan
    assert again.fingerprint == plan.fingerprint
    assert again.to_json() == plan.to_json()


@settings(max_examples=examples(40))
@given(plans(), st.data())
def test_the_fingerprint_does_not_see_how_a_plan_is_split_or_when_it_was_made(plan, data):
    other = data.draw(plans())
    same = replace(
        plan,
        reader=other.reader,
        splits=other.splits,
        estimate=other.estimate,
        observed_at=data.draw(moments),
        head=other.head,
        terms=other.terms,
    )
    assert same.fingerprint == plan.fingerprint


@settings(max_examples=examples(40))
@given(plans(), st.data())
def test_the_fingerprint_sees_everything_that_decides_the_rows(plan, data):
    other = data.draw(cuts)
    changed = [
        replace(plan, start_cut=other),
        replace(plan, end_cut=other),
        replace(plan, source=replace(plan.source, cluster=plan.source.cluster + "x")),
        replace(plan, source=replace(plan.source, names=(*plan.source.names, "x"))),
        replace(plan, source=replace(plan.source, system=plan.source.system + "x")),
        replace(plan, filter=RowFilter("publish_time", 1, 2) if plan.filter is None else None),
        replace(plan, window=data.draw(windows())),
        replace(plan, losses=(*plan.losses, Loss("x", Position.of(0), Position.of(1), "trimmed"))),
        replace(plan, losses=plan.losses[:-1]),
        replace(plan, ranges=plan.ranges[:-1]),
        replace(plan, ranges=tuple(replace(one, end=Position((*one.end.parts, 1))) for one in plan.ranges)),
    ]
    for candidate in changed:
        assert (candidate.fingerprint == plan.fingerprint) == (what_decides(candidate) == what_decides(plan))


def test_a_stored_plan_reads_as_it_was_written():
    data = json.loads((Path(__file__).parent / "plan_by_publish_time.json").read_text())
    plan = Plan.from_json(data)
    assert plan.filter == RowFilter("publish_time", 1795168800000, 1795172400000)
    assert plan.terms == Terms(timedelta(seconds=60))
    assert plan.to_json() == data


def test_terms_of_event_time_tell_what_is_asked_otherwise():
    then = Terms(timedelta(0), None, "fail", timedelta(hours=1), None, None, "exact")
    now = replace(then, allowed_lateness=timedelta(hours=2), event_time="created_at", unit="ms")
    assert then.changes(now) == [
        "allowed_lateness 1:00:00 instead of 2:00:00",
        "event_time of the broker instead of created_at in ms",
    ]
    assert then.changes(then) == []
    assert Terms.from_json(json.loads(json.dumps(now.to_json()))) == now


@pytest.mark.parametrize("year", [1, 9999])
def test_what_may_be_stored_for_a_window_stays_within_the_calendar(year):
    day = Window(datetime(year, 1, 1, tzinfo=UTC), datetime(year, 12, 31, 23, tzinfo=UTC))
    event = EventTime(timedelta(days=9))
    request = PlanRequest(PulsarSource("t"), day, "r", basis="event", slack=timedelta(days=9), event=event)
    assert request.stored.start <= day.start < day.end <= request.stored.end
    assert request.seen_before <= request.stored.start


def what_decides(plan):
    ranges = [(one.shard, one.start, one.end) for one in plan.ranges]
    return (plan.start_cut, plan.end_cut, plan.source, plan.filter, plan.window, plan.losses, ranges)


@settings(max_examples=examples(40))
@given(plans())
def test_a_plan_that_was_changed_is_refused(plan):
    data = plan.to_json()
    data["end_cut"] = {**data["end_cut"], "another shard": "1:2"}
    if Cut.from_json(data["end_cut"]) == plan.end_cut:
        return
    with pytest.raises(PlanMismatch, match="changed"):
        Plan.from_json(data)


@settings(max_examples=examples(60))
@given(plans(), plans(), st.data())
def test_no_part_of_a_plan_can_be_another_ones(plan, other, data):
    whole, name = plan.to_json(), data.draw(st.sampled_from(sorted(plan.to_json())))
    if name == "version" or other.to_json()[name] == whole[name]:
        return
    with pytest.raises(PlanMismatch):
        Plan.from_json({**whole, name: other.to_json()[name]})


@settings(max_examples=examples(40))
@given(plans().filter(lambda plan: plan.splits), st.data())
def test_a_split_of_a_plan_cannot_be_changed(plan, data):
    chosen = data.draw(st.integers(0, len(plan.splits) - 1))
    whole = plan.to_json()
    whole["splits"][chosen]["bytes"] += 1
    with pytest.raises(PlanMismatch, match="changed"):
        Plan.from_json(whole)
    del whole["splits"][chosen]
    with pytest.raises(PlanMismatch):
        Plan.from_json(whole)


@settings(max_examples=examples(40))
@given(plans(), st.data())
def test_a_plan_with_a_missing_part_is_refused(plan, data):
    whole = plan.to_json()
    name = data.draw(st.sampled_from(sorted(whole)))
    del whole[name]
    with pytest.raises(PlanMismatch):
        Plan.from_json(whole)


@settings(max_examples=examples(40))
@given(plans())
def test_a_plan_of_another_version_is_refused(plan):
    with pytest.raises(PlanMismatch, match="version"):
        Plan.from_json({**plan.to_json(), "version": 99})


@settings(max_examples=examples(40))
@given(plans())
def test_splits_are_numbered(plan):
    place = Position.of(0)
    with pytest.raises(PlanMismatch, match="numbered"):
        replace(plan, splits=(*plan.splits, Split(len(plan.splits) + 1, "x", place, place, 0)))


@pytest.mark.parametrize("text", [{}, {"version": 1}, {"version": 1, "source": 5}])
def test_other_json_is_no_plan(text):
    with pytest.raises(PlanMismatch):
        Plan.from_json(text)


def test_a_split_counts_its_spans_or_is_not_countable():
    place = Position.of(0)
    assert Split(0, "x", place, place, 1, (Span(1, 3, 7), Span(2, 0, 1))).entries == 5
    assert Split(0, "x", place, place, 1).entries is None


@given(windows())
def test_a_request_refuses_what_cannot_be(window):
    source = PulsarSource("t")
    with pytest.raises(InvalidRequest, match="slack"):
        PlanRequest(source, window, "r", slack=timedelta(microseconds=-1))
    with pytest.raises(InvalidRequest, match="target_split_bytes"):
        PlanRequest(source, window, "r", target_split_bytes=0)


def test_values_cannot_be_changed():
    with pytest.raises(AttributeError):
        SourceRef("pulsar", "c", ()).cluster = "d"
    with pytest.raises(AttributeError):
        PlanRequest(PulsarSource("t"), WINDOW, "r").reader = "other"
