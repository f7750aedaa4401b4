from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.plan.plan import Range
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.window.backfill import (
    JOB_SECONDS,
    Limits,
    PlannedWindow,
    Preview,
    Selection,
    parse_select,
    reading_speed,
)
from airflow_provider_streams.model.window.coverage import STATES, Coverage, RunRef, WindowState
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.testing.plans import plan_of

START = datetime(2026, 11, 20, tzinfo=UTC)
HOUR = timedelta(hours=1)


def hour(number: int) -> Window:
    return Window(START + number * HOUR, START + (number + 1) * HOUR)


def known(number: int, state: str, **facts) -> WindowState:
    return WindowState(hour(number), state, run=RunRef(number + 1, "dag", "run", "read", 1), **facts)


def planned(number: int, size: int = 100, verdict: str = "ok", **facts) -> PlannedWindow:
    return PlannedWindow(hour(number), "missing", verdict, size, 1, **facts)


def chosen(coverage: Coverage, *select: str, **how) -> list[int]:
    found = Selection(parse_select(select), **how).of(coverage, coverage.span)
    return [(item.window.start - START) // HOUR for item in found]


ALL_STATES = Coverage.of([known(number, state) for number, state in enumerate(STATES)], START, START + 6 * HOUR, HOUR)
COVERED, RUNNING, LOST, FAILED, MISSING, BLANK = range(6)


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        (["missing"], [RUNNING, FAILED, MISSING, BLANK]),
        (["failed"], [RUNNING, FAILED]),
        (["lost"], [LOST]),
        (["failed", "lost"], [RUNNING, LOST, FAILED]),
        (["all"], [COVERED, RUNNING, LOST, FAILED, MISSING, BLANK]),
        (["late"], []),
    ],
)
def test_each_name_chooses_its_windows(select, expected):
    assert chosen(ALL_STATES, *select) == expected


def test_a_window_in_work_is_left_to_whom_it_belongs():
    assert chosen(ALL_STATES, "all", is_alive=lambda _: True) == [COVERED, LOST, FAILED, MISSING, BLANK]
    assert chosen(ALL_STATES, "all", is_alive=lambda _: True, is_own=lambda run: run.id == RUNNING + 1)[1] == RUNNING


def test_lost_windows_are_missing_ones_only_if_loss_is_accepted():
    assert LOST not in chosen(ALL_STATES, "missing")
    assert LOST in chosen(ALL_STATES, "missing", accepts_loss=True)


def test_a_backfill_goes_on_with_its_own_windows_and_not_with_those_it_has_covered():
    assert chosen(ALL_STATES, "late", is_own=lambda _: True) == [RUNNING, LOST, FAILED, MISSING]
    assert COVERED not in chosen(ALL_STATES, "all", is_own=lambda _: True)


def test_late_windows_are_covered_ones_with_late_rows():
    seen = Coverage.of([known(0, "covered", late_rows=3), known(1, "covered", late_rows=0)], START, START + 2 * HOUR)
    assert chosen(seen, "late") == [0]
    replanned = Coverage.of([WindowState(hour(0), "missing", attempts=1)], START, START + HOUR)
    assert chosen(replanned, "late") == [0], "planned again for its late rows, and not read since"


def test_windows_that_reach_out_of_the_span_are_left_out():
    inner = Window(START + HOUR / 2, START + 3 * HOUR)
    assert Selection(frozenset(["all"])).of(ALL_STATES, inner) == ALL_STATES.windows[1:3]


@pytest.mark.parametrize("select", ["everything", [], ["missing", "some"]])
def test_an_unknown_selection_is_refused(select):
    with pytest.raises(InvalidRequest, match="select must be"):
        parse_select(select)


@given(
    sizes=st.lists(st.integers(0, 500), max_size=40),
    limits=st.builds(Limits, st.integers(1, 800), st.integers(1, 12)),
)
def test_jobs_hold_every_window_once_in_order_and_keep_to_their_limits(sizes, limits):
    windows = [planned(number, size) for number, size in enumerate(sizes)]
    jobs = list(limits.pack(windows))
    assert [item for job in jobs for item in job] == windows
    assert all(job and len(job) <= limits.max_windows for job in jobs)
    assert all(len(job) == 1 or sum(item.bytes for item in job) <= limits.max_bytes for job in jobs)


@pytest.mark.parametrize("wrong", [(0, 1), (1, 0), (-1, 1)])
def test_limits_are_positive(wrong):
    with pytest.raises(InvalidRequest):
        Limits(*wrong)


def test_a_preview_counts_what_will_be_read_and_names_what_will_not():
    preview = Preview(
        Window(START, START + 6 * HOUR),
        ("missing",),
        (
            planned(0, verdict="lost", cause="trimmed"),
            planned(1, verdict="part lost"),
            planned(2),
            planned(3),
            planned(4, verdict="not ready"),
            planned(5, verdict="failed"),
        ),
        Limits(max_bytes=200),
        horizon=START + HOUR,
        bytes_per_second=10.0,
    )
    data = preview.to_json()
    assert data["windows"] == [str(hour(number)) for number in (1, 2, 3)]
    assert data["beyond_horizon"] == [str(hour(0)), str(hour(1))]
    assert (data["not_ready"], data["failed"]) == ([str(hour(4))], [str(hour(5))])
    assert (data["bytes"], data["tasks"], data["jobs"], data["minutes"]) == (300, 3, 2, round((30 + 20) / 60, 1))
    text = preview.as_text()
    assert "total 3 windows, 300 B, 3 tasks, 2 Spark jobs, about 0.8 minutes" in text
    assert f"1 beyond the horizon, cannot be read: {hour(0)}" in text
    assert "oldest time the stream still serves" in text


def test_a_long_preview_shows_what_is_telling():
    windows = tuple(planned(number, verdict="lost" if number == 300 else "ok") for number in range(400))
    text = Preview(Window(START, START + 400 * HOUR), ("all",), windows).as_text()
    assert len(text.splitlines()) < 60
    assert str(hour(300)) in text
    assert ".. and 350 more windows" in text


def ran(number: int, size: int, minutes: tuple[float, float]) -> WindowState:
    started, finished = (START + timedelta(minutes=minute) for minute in minutes)
    run = RunRef(number, "dag", "run", "read", 1, started=started, finished=finished)
    return WindowState(hour(number), "covered", bytes=size, run=run)


def test_the_speed_of_windows_that_were_read_at_once_counts_their_time_once():
    assert reading_speed([]) is None
    both = ran(1, 600, (0, 1)), ran(2, 600, (0, 1))
    assert reading_speed([*both, ran(3, 1200, (5, 7))]) == 2400 / (60 + 120 - 2 * JOB_SECONDS)
    assert reading_speed([*both, ran(3, 1200, (1, 3))]) == 2400 / (180 - JOB_SECONDS), "one after the other, one start"


def test_windows_that_took_hardly_longer_than_sparks_start_tell_no_speed():
    assert reading_speed([ran(1, 600, (0, 2 * JOB_SECONDS / 60))]) is None


def test_coverage_counts_what_is_beyond_the_horizon_unread():
    seen = Coverage.of([known(0, "failed"), known(1, "covered")], START, START + 3 * HOUR, HOUR)
    assert [item.window for item in seen.beyond(START + 2 * HOUR)] == [hour(0)]
    assert seen.to_json(horizon=START + 2 * HOUR)["beyond_horizon"] == 1
    assert seen.to_json()["horizon"] is None


def test_a_window_of_which_nobody_can_say_that_it_is_whole_is_read_and_named():
    doubt = Range("shard", Position.of(3), Position.of(3), 0, 0, verdict="unproven: nothing proves it")
    item = PlannedWindow.of(known(0, "missing"), plan_of([], window=hour(0), ranges=(doubt,)))
    assert (item.verdict, item.cause, item.is_readable) == ("unproven", "shard: unproven: nothing proves it", True)
    preview = Preview(Window(START, START + HOUR), ("missing",), (item,))
    assert preview.to_json()["unproven"] == [str(hour(0))]
    assert "1 of them unproven: more may have been stored" in preview.as_text()


BLIND = "events without at that were stored before the first watermark are in no window"


def test_a_preview_shows_what_plans_leave_out_though_they_are_ok():
    def planned_with(number, *remarks):
        return PlannedWindow.of(known(number, "missing"), plan_of([], window=hour(number), remarks=remarks))

    windows = (planned_with(0, "read 0", "late", BLIND), *(planned_with(n, f"read {n}", "late") for n in range(1, 20)))
    preview = Preview(Window(START, START + 20 * HOUR), ("missing",), windows)
    assert {item.verdict for item in windows} == {"ok"}
    notes = [line for line in preview.as_text().splitlines() if line.startswith(" note ")]
    assert notes[:3] == [
        f" note  {hour(0)}: {BLIND}",
        f" note  {hour(0)}: read 0",
        f" note  {Window(START, START + 20 * HOUR)}: late",
    ]
    assert notes[-1] == " note  .. and 12 more: the plan of each window has its own"
    assert preview.to_json()["remarks"][BLIND] == str(hour(0))
    assert preview.to_json()["details"][0]["remarks"] == ["read 0", "late", BLIND]
