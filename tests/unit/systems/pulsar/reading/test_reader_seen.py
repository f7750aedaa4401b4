from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.model.plan.plan import Span
from airflow_provider_streams.systems.pulsar.reading.entry_tracking import Seen, missing

PLACES = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 12)))


def places(spans):
    return [(span.run, entry) for span in spans for entry in range(span.first, span.end)]


def runs_of(wanted):
    seen = Seen()
    for place in sorted(wanted):
        seen.add(*place)
    return seen


@given(PLACES)
def test_runs_hold_what_was_seen_and_are_as_few_as_possible(wanted):
    seen = runs_of(wanted)
    runs = seen.runs()
    assert places(runs) == sorted(wanted)
    assert seen.entries == len(wanted)
    assert len({(run.run, run.end) for run in runs} & {(run.run, run.first) for run in runs}) == 0
    assert seen.runs() == runs


@given(PLACES, PLACES)
def test_what_is_missing_is_what_was_planned_and_not_seen(planned, seen):
    spans = runs_of(planned).runs()
    assert places(missing(spans, runs_of(seen).runs())) == sorted(planned - seen)


def test_a_long_ledger_costs_one_run():
    seen = Seen()
    for entry in range(10_000):
        seen.add(7, entry)
    assert seen.runs() == (Span(7, 0, 10_000),)
