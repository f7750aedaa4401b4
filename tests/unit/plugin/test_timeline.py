from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.model.coverage import STATES, RunRef, WindowState
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.plugin.timeline import columns, coverage_of, next_due, on_grid

HOUR = timedelta(hours=1)
T0 = datetime(2026, 11, 20, tzinfo=UTC)


def at(hours: float) -> datetime:
    return T0 + hours * HOUR


def window(start: float, end: float | None = None) -> Window:
    return Window(at(start), at(start + 1 if end is None else end))


def covered(start: float, end: float | None = None) -> WindowState:
    run = RunRef(1, "dag", "run", "task", 1)
    return WindowState(window(start, end), "covered", rows=10, bytes=1000, fingerprint="f" * 32, attempts=1, run=run)


def states(*known: WindowState, span: Window, beat: Window | None = None, since: float | None = None, now: float):
    seen = coverage_of(known, span, beat, None if since is None else at(since), at(now))
    return [((one.window.start - T0) / HOUR, one.state) for one in seen.windows]


def test_blank_time_between_and_after_windows_is_missing_up_to_now():
    assert states(covered(1), covered(3), span=window(0, 24), beat=window(3), since=1, now=5.5) == [
        (1, "covered"),
        (2, "missing"),
        (3, "covered"),
        (4, "missing"),
    ]


def test_nothing_is_missing_before_the_readers_first_window():
    assert states(covered(5), span=window(0, 24), beat=window(5), since=5, now=6) == [(5, "covered")]


def test_of_an_older_reader_the_blank_start_of_the_span_is_missing():
    found = states(covered(5), span=window(3, 6), beat=window(5), since=-40, now=24)
    assert found == [(3, "missing"), (4, "missing"), (5, "covered")]


def test_a_span_without_any_known_window_is_all_missing():
    assert states(span=window(10, 12), beat=window(5), since=0, now=24) == [(10, "missing"), (11, "missing")]


def test_a_window_that_has_not_ended_is_not_missing():
    assert states(covered(0), span=window(0, 4), beat=window(0), since=0, now=1.99) == [(0, "covered")]


def test_a_planned_window_keeps_its_plan_and_stands_once():
    planned = WindowState(window(2), "missing", cause="planned, not read yet", fingerprint="a" * 32)
    seen = coverage_of([covered(1), planned], window(0, 4), window(1), at(1), at(3))
    assert [one.fingerprint[:1] for one in seen.windows] == ["f", "a"]


def test_a_reader_that_never_ran_has_no_rhythm_and_misses_nothing():
    planned = WindowState(window(2), "missing", fingerprint="a" * 32)
    assert states(planned, span=window(0, 24), now=24) == [(2, "missing")]


def test_windows_that_do_not_touch_the_span_are_left_out():
    assert states(covered(0), covered(9), span=window(1, 9), beat=window(9), since=9, now=10) == []


def test_blank_time_is_not_cut_into_millions_of_windows():
    beat = Window(T0, T0 + timedelta(seconds=1))
    seen = coverage_of([], window(0, 1000), beat, T0, at(1000))
    assert [one.window for one in seen.windows] == [window(0, 1000)]


def test_the_grid_goes_on_before_and_after_its_window():
    assert on_grid(at(7.5), window(2, 4)) == at(6)
    assert on_grid(at(-1.5), window(2, 4)) == at(-2)
    assert on_grid(at(6), window(2, 4)) == at(6)


def test_the_next_window_is_due_at_its_end():
    assert next_due(window(2), at(5.2)) == at(6).timestamp()
    assert next_due(None, T0) is None


def test_columns_are_parallel_and_say_what_the_windows_say():
    failed = WindowState(window(1), "failed", cause="ReadStalled: silence", fingerprint="ab" * 16, attempts=2)
    seen = coverage_of([covered(0), failed, covered(2, 2.0001)], window(0, 4), None, None, at(4))
    body = columns(seen)
    parallel = ("start", "length", "state", "rows", "bytes", "attempts", "cause", "fingerprint")
    assert {len(body[name]) for name in parallel} == {3}
    assert body["zero"] == T0.timestamp()
    assert body["start"] == [0, 3600, 7200]
    assert body["length"] == [3600, 3600, pytest.approx(0.36)]
    assert [body["states"][index] for index in body["state"]] == ["covered", "failed", "covered"]
    assert body["states"] == STATES
    assert [body["causes"][index] for index in body["cause"]] == ["", "ReadStalled: silence", ""]
    assert body["fingerprint"][1] == "abababababab"
