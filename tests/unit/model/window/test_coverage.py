from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidWindow
from airflow_provider_streams.model.window.coverage import STATES, Coverage, Overlap, RunRef, WindowState
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.model.window.window_schedule import Every

START = datetime(2026, 11, 20, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
SPAN = (START, START + 60 * MINUTE)


def window(first: int, end: int) -> Window:
    return Window(START + first * MINUTE, START + end * MINUTE)


def known(first: int, end: int, state="covered", **facts) -> WindowState:
    return WindowState(window(first, end), state, **facts)


windows = st.tuples(st.integers(-20, 79), st.integers(1, 25)).map(lambda x: window(x[0], x[0] + x[1]))
states = st.builds(WindowState, windows, st.sampled_from(STATES), rows=st.integers(0, 5))
some_states = st.lists(states, max_size=25)
lengths = st.none() | st.integers(1, 30).map(lambda n: n * MINUTE)


def minutes(spans) -> set[int]:
    return {n for n in range(60) for span in spans if span.start <= START + n * MINUTE < span.end}


@given(some_states, lengths)
def test_covered_time_and_gaps_partition_the_span(items, length):
    coverage = Coverage.of(items, *SPAN, length)
    pieces = sorted([*coverage.covered, *coverage.gaps])
    assert [pieces[0].start, *(piece.end for piece in pieces)] == [*(piece.start for piece in pieces), SPAN[1]]
    # neighbours alternate, so nothing is left to merge
    kinds = [piece in coverage.gaps for piece in pieces]
    assert all(a != b for a, b in pairwise(kinds))
    # the same by brute force, minute by minute
    strongest = {item.window: item.state for item in coverage.windows}
    assert minutes(coverage.covered) == minutes([w for w, state in strongest.items() if state == "covered"])


@given(some_states, lengths, st.randoms())
def test_the_order_of_windows_does_not_matter(items, length, random):
    shuffled = random.sample(items, len(items))
    assert Coverage.of(items, *SPAN, length).to_json() == Coverage.of(shuffled, *SPAN, length).to_json()


@given(some_states, lengths)
def test_overlaps_are_exactly_the_pairs_that_share_time(items, length):
    coverage = Coverage.of(items, *SPAN, length)
    held = [item.window for item in coverage.select("covered", "running")]
    pairs = {frozenset((a, b)) for a in held for b in held if a != b and a.start < b.end and b.start < a.end}
    assert {frozenset((o.first, o.second)) for o in coverage.overlaps} == pairs
    assert len(coverage.overlaps) == len(pairs)
    for overlap in coverage.overlaps:
        assert overlap.span == Overlap(overlap.second, overlap.first).span
        assert minutes([overlap.span]) == minutes([overlap.first]) & minutes([overlap.second])


@given(some_states, lengths)
def test_missing_windows_fill_blank_time_and_nothing_else(items, length):
    coverage = Coverage.of(items, *SPAN, length)
    given_windows = {item.window for item in items}
    filled = [item.window for item in coverage.windows if item.window not in given_windows]
    blank = set(range(60)) - minutes(given_windows)
    assert all(item.state == "missing" for item in coverage.windows if item.window not in given_windows)
    assert sum(w.length // MINUTE for w in filled) == len(minutes(filled))  # they do not overlap
    if length is None:
        assert minutes(filled) == blank
    else:
        whole = 60 - 60 % (length // MINUTE)
        assert minutes(filled) == {n for n in blank if n < whole}
        assert all((w.start - START) // length == (w.end - MINUTE - START) // length for w in filled)


@given(some_states, lengths)
def test_counts_name_every_state_and_add_up(items, length):
    coverage = Coverage.of(items, *SPAN, length)
    assert tuple(coverage.counts) == STATES
    assert sum(coverage.counts.values()) == len(coverage.windows)
    assert [item for state in STATES for item in coverage.select(state)] == sorted(
        coverage.windows, key=lambda item: (STATES.index(item.state), item.window)
    )
    assert coverage.is_complete == (minutes(coverage.covered) == set(range(60)))


@given(some_states, lengths)
def test_json_is_plain(items, length):
    data = Coverage.of(items, *SPAN, length).to_json()
    assert json.loads(json.dumps(data)) == data


def test_nothing_known_is_one_missing_window_or_whole_tiles():
    assert [item.window for item in Coverage.of([], *SPAN).windows] == [Window(*SPAN)]
    tiled = Coverage.of([], *SPAN, 25 * MINUTE)
    assert [item.window for item in tiled.windows] == list(Every.through(25 * MINUTE, SPAN[0]).cells(*SPAN))
    assert tiled.gaps == (Window(*SPAN),)
    assert tiled.next_missing == window(0, 25)


def test_a_covered_span_has_no_gap_and_no_next_missing_window():
    coverage = Coverage.of([known(-5, 30, rows=2, bytes=10), known(30, 65, rows=3, bytes=20)], *SPAN)
    assert coverage.is_complete
    assert coverage.next_missing is None
    assert coverage.covered == (Window(*SPAN),)
    assert (coverage.totals["rows"], coverage.totals["bytes"]) == (5, 30)


def test_windows_that_only_touch_the_span_are_left_out():
    assert Coverage.of([known(-5, 0), known(60, 70)], *SPAN).select("covered") == ()


def test_a_failed_window_is_a_gap_but_not_missing():
    coverage = Coverage.of([known(0, 20), known(20, 40, "failed"), known(40, 60)], *SPAN, 20 * MINUTE)
    assert coverage.gaps == (window(20, 40),)
    assert coverage.next_missing is None
    assert coverage.counts == {"covered": 2, "running": 0, "lost": 0, "failed": 1, "missing": 0}


def test_a_partly_known_tile_is_missing_where_nothing_is_known():
    coverage = Coverage.of([known(0, 10)], *SPAN, 20 * MINUTE)
    assert [item.window for item in coverage.select("missing")] == [window(10, 20), window(20, 40), window(40, 60)]


def test_the_same_window_twice_counts_once_in_its_strongest_state():
    older, newer = (known(0, 60, "failed", run=RunRef(n, "d", "r", "t", n), cause=f"try {n}") for n in (1, 2))
    assert Coverage.of([newer, older], *SPAN).windows == (newer,)
    assert Coverage.of([known(0, 60), newer], *SPAN).windows[0].state == "covered"


def test_windows_that_follow_each_other_do_not_overlap():
    assert Coverage.of([known(0, 30), known(30, 60)], *SPAN).overlaps == ()


def test_a_failed_window_over_covered_ones_is_no_overlap():
    assert Coverage.of([known(0, 30), known(0, 60, "failed")], *SPAN).overlaps == ()


@pytest.mark.parametrize(
    ("start", "end", "length"),
    [
        (START, START, None),
        (START.replace(tzinfo=None), START + HOUR, None),
        (START, START + HOUR, timedelta(0)),
        (START, START + HOUR, -MINUTE),
    ],
)
def test_a_span_or_length_that_is_none_is_refused(start, end, length):
    with pytest.raises(InvalidWindow):
        Coverage.of([], start, end, length)


def test_json_carries_what_a_page_needs():
    run = RunRef(4, "dag", "manual__1", "read", 2, started=START, finished=START + MINUTE)
    item = known(0, 30, rows=7, bytes=70, fingerprint="9f2c", attempts=2, run=run, verdict="unproven")
    data = Coverage.of([item, known(20, 40, "running")], *SPAN).to_json()
    assert data["windows"][0] == {
        "start": "2026-11-20T00:00:00Z",
        "end": "2026-11-20T00:30:00Z",
        "state": "covered",
        "rows": 7,
        "bytes": 70,
        "cause": "",
        "fingerprint": "9f2c",
        "attempts": 2,
        "run": {
            "id": 4,
            "dag_id": "dag",
            "run_id": "manual__1",
            "task_id": "read",
            "try_number": 2,
            "map_index": -1,
            "started": "2026-11-20T00:00:00Z",
            "finished": "2026-11-20T00:01:00Z",
        },
        "skew_seconds": None,
        "late_rows": None,
        "verdict": "unproven",
        "quarantined": 0,
        "dropped": 0,
    }
    assert data["unproven"] == 1
    assert data["counts"] == {"covered": 1, "running": 1, "lost": 0, "failed": 0, "missing": 1}
    assert (data["rows"], data["bytes"]) == (7, 70)
    assert data["gaps"] == [window(30, 60).to_json()]
    assert data["overlaps"][0]["span"] == window(20, 30).to_json()
    assert data["next_missing"] == window(40, 60).to_json()


def test_a_table_that_cannot_tell_empty_windows_misses_none_of_them():
    run = RunRef(1, "d", "r", "t", 1)
    full, empty = known(0, 10, rows=5, written=5, run=run), known(10, 20, rows=0, written=0, run=run)
    emptied, uncounted = known(20, 30, rows=7, written=0, run=run), known(30, 40, rows=3, run=run)
    coverage = Coverage.of([full, empty, emptied, uncounted], *SPAN)
    everything = tuple(item.window for item in (full, empty, emptied, uncounted))
    assert coverage.missed_by([]) == everything
    assert coverage.missed_by([], tells_empty=False) == (full.window, uncounted.window)
    assert coverage.missed_by([full.window], tells_empty=False) == (uncounted.window,)
