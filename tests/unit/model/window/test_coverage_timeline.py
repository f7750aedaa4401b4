from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.model.window.coverage import STATES, Coverage, WindowState
from airflow_provider_streams.model.window.coverage_timeline import MARKS, draw
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.model.window.window_schedule import Every

T10 = datetime(2026, 11, 20, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def hourly(text: str, **facts) -> Coverage:
    """One window per mark, from 10:00."""
    by_mark = {mark: state for state, mark in MARKS.items()}
    marks = text.split()
    items = [
        WindowState(Window(T10 + n * HOUR, T10 + (n + 1) * HOUR), by_mark[mark], **facts)
        for n, mark in enumerate(marks)
    ]
    return Coverage.of(items, T10, T10 + len(marks) * HOUR)


def test_the_picture_shows_a_mark_per_window_and_what_can_still_be_read():
    text = draw(
        hourly("!! ## ## ## .. ## ## ## ## ~~", rows=1000, cause="StartTrimmed: gone"),
        "orders/events",
        horizon=T10 + HOUR,
    )
    assert text.splitlines() == [
        "orders/events",
        " 2026-11-20     10  11  12  13  14  15  16  17  18  19",
        " read           !!  ##  ##  ##  ..  ##  ##  ##  ##  ~~",
        " retention          |<----------------------------------",
        (
            "covered 7 of 10   running 1   lost 1   missing 1, next 2026-11-20T14:00:00Z/2026-11-20T15:00:00Z"
            "   overlap none   10,000 rows"
        ),
        "oldest time the stream still serves: 2026-11-20T11:00:00Z",
        "!! 2026-11-20T10:00:00Z/2026-11-20T11:00:00Z: StartTrimmed: gone",
        "## covered  .. missing  !! lost  xx failed  ~~ running",
    ]


def test_hours_wrap_at_midnight_and_at_the_width():
    text = draw(hourly("## " * 16), width=16 + 5 * 4)
    assert [line for line in text.splitlines() if line.startswith(" 2026")] == [
        " 2026-11-20     10  11  12  13  14",
        " 2026-11-20     15  16  17  18  19",
        " 2026-11-20     20  21  22  23",
        " 2026-11-21     00  01",
    ]


def test_the_retention_line_goes_on_where_the_timeline_wraps():
    text = draw(hourly("## " * 6), width=16 + 3 * 4, horizon=T10 + 2 * HOUR)
    assert [line for line in text.splitlines() if line.startswith(" retention")] == [
        " retention              |<--",
        " retention      ------------",
    ]


def test_days_are_labelled_by_date_and_short_windows_by_time():
    def labels(start, length):
        windows = Every.through(length, start).cells(start, start + 2 * length)
        return draw(Coverage.of([WindowState(w, "covered") for w in windows], start, start + 2 * length)).split("\n")

    assert labels(datetime(2026, 11, 29, tzinfo=UTC), DAY)[0] == " 2026           11-29  11-30"
    assert labels(T10, timedelta(minutes=15))[0] == " 2026-11-20     10:00  10:15"
    assert labels(T10, timedelta(seconds=10))[0] == " 2026-11-20     10:00:00  10:00:10"


def test_overlapping_windows_get_a_timeline_of_their_own():
    day = Window(T10.replace(hour=0), T10.replace(hour=0) + DAY)
    hours = [WindowState(w, "covered") for w in Every(HOUR).cells(day.start, day.end)]
    lines = draw(Coverage.of([*hours, WindowState(day, "running")], day.start, day.end), width=200).splitlines()
    assert lines[1] == " read           " + "  ".join(["##"] * 24)
    assert lines[2] == " 2026           11-20"
    assert lines[3] == " read           ~~"
    assert "overlap 24, first 2026-11-20T00:00:00Z/2026-11-20T01:00:00Z" in lines[4]


def test_causes_are_one_line_each_and_not_endless():
    lines = draw(hourly("xx " * 30, cause="E: " + "a\nb " * 500)).splitlines()
    causes = [line for line in lines if line.startswith("xx 20")]
    assert len(causes) == 10
    assert all(len(line) < 300 and "a b a b" in line for line in causes)
    assert "and 20 more failed or lost windows" in lines


def test_a_failure_without_a_cause_says_so():
    assert "xx 2026-11-20T10:00:00Z/2026-11-20T11:00:00Z: no cause recorded" in draw(hourly("xx"))


def test_a_narrow_width_still_shows_one_window_per_line():
    assert draw(hourly("## ##"), width=1).count(" read") == 2


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(1, 30), st.sampled_from(STATES)), max_size=20))
def test_every_window_has_exactly_one_mark(items):
    minute = timedelta(minutes=1)
    states = [WindowState(Window(T10 + a * minute, T10 + (a + n) * minute), state) for a, n, state in items]
    coverage = Coverage.of(states, T10, T10 + 2 * HOUR)
    drawn = [line.split()[1:] for line in draw(coverage).splitlines() if line.startswith(" read ")]
    marks = [mark for line in drawn for mark in line]
    assert sorted(marks) == sorted(MARKS[item.state] for item in coverage.windows)


def test_windows_with_late_rows_are_named():
    text = draw(hourly("## ## ##", late_rows=12))
    assert "++ 2026-11-20T10:00:00Z/2026-11-20T11:00:00Z: 12 rows appeared after it was read" in text
    assert "++" not in draw(hourly("## ##", late_rows=0))


def test_covered_windows_that_may_or_do_lack_something_are_marked_and_named():
    for verdict, mark in (("unproven", "#?"), ("loss recorded", "#!")):
        lines = draw(hourly("## ..", verdict=verdict)).splitlines()
        assert lines[1].split()[1] == mark
        assert any(line.startswith(f"{mark} 2026-11-20T10:00:00Z/2026-11-20T11:00:00Z: {verdict}") for line in lines)
        assert lines[-1].endswith(f"{mark} {verdict}")
    assert "#?" not in draw(hourly("## ##", verdict="complete"))


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({"quarantined": 1200}, "1,200 quarantined: they could not be decoded"),
        ({"dropped": 3}, "3 dropped: they could not be decoded"),
        ({"quarantined": 1, "dropped": 2}, "1 quarantined and 2 dropped: they could not be decoded"),
    ],
)
def test_windows_with_events_that_could_not_be_decoded_are_named(counts, said):
    assert f"?? 2026-11-20T10:00:00Z/2026-11-20T11:00:00Z: {said}" in draw(hourly("## ##", **counts))
    assert "??" not in draw(hourly("## ##"))


def test_of_many_windows_with_such_events_the_rest_is_summed_up():
    assert "and 2 more windows with events that could not be decoded, in all 24 dropped" in draw(
        hourly("## " * 12, dropped=2)
    ).replace("\n", " ")
