"""Grids tile time, whatever clocks do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pendulum
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidWindow
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.model.window.window_schedule import Calendar, Every, parse_schedule, schedule_through

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ZONES = sorted(available_timezones() - {"Factory", "localtime"})

moments = st.datetimes(datetime(1971, 1, 1), datetime(2060, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - bounds are naive
units = st.sampled_from(["h", "d", "w", "mo", "y"])
calendars = st.builds(Calendar, st.integers(1, 5), units, st.sampled_from([*ZONES, "19800", "-12600"]))
lengths = st.timedeltas(timedelta(seconds=1), timedelta(days=400))
every = st.builds(Every, lengths, st.timedeltas(timedelta(0), timedelta(days=2)))
window_schedules = calendars | every


@given(window_schedules, moments)
def test_every_moment_lies_in_one_cell_and_cells_meet(window_schedule, moment):
    cell = window_schedule.cell(moment)
    assert cell.start <= moment < cell.end
    assert window_schedule.cell(cell.start) == window_schedule.cell(cell.end - timedelta(microseconds=1)) == cell
    assert window_schedule.cell(cell.end).start == cell.end
    assert window_schedule.is_cell(cell)
    assert not window_schedule.is_cell(Window(cell.start, cell.end + timedelta(seconds=1)))


@given(window_schedules, moments)
def test_airflows_own_times_are_times_like_others(window_schedule, moment):
    told = pendulum.instance(moment)
    assert window_schedule.cell(told) == window_schedule.cell(moment)
    assert type(window_schedule.after(told)) is type(window_schedule.before(told)) is datetime
    assert Every.through(HOUR, told) == Every.through(HOUR, moment)


@given(window_schedules, moments, st.timedeltas(timedelta(seconds=1), timedelta(days=900)))
def test_the_cells_of_a_span_are_whole_adjacent_and_all_of_them(window_schedule, start, length):
    span = Window(start, start + length)
    cells = (
        list(window_schedule.cells(span.start, span.end)) if length < 500 * window_schedule.cell(start).length else []
    )
    assert all(left.end == right.start for left, right in pairwise(cells))
    assert all(window_schedule.is_cell(cell) and span.start <= cell.start and cell.end <= span.end for cell in cells)
    around = window_schedule.around(span)
    assert around.start <= span.start < window_schedule.after(around.start)
    assert window_schedule.before(around.end) == around.end >= span.end
    if cells:
        assert cells[0].start - around.start < window_schedule.cell(span.start).length + timedelta(microseconds=1)


@given(window_schedules)
def test_a_schedule_is_its_text(window_schedule):
    assert parse_schedule(str(window_schedule)) == window_schedule
    assert parse_schedule(window_schedule) is window_schedule


@pytest.mark.slow_except(
    "Africa/Abidjan",
    "Africa/Djibouti",
    "Africa/Maputo",
    "America/Antigua",
    "America/Bahia",
    "America/Ciudad_Juarez",
    "America/Fort_Wayne",
    "America/Indiana/Vevay",
    "America/Managua",
    "America/Nipigon",
    "America/Rankin_Inlet",
    "America/St_Vincent",
    "Antarctica/McMurdo",
    "Asia/Baku",
    "Asia/Gaza",
    "Asia/Krasnoyarsk",
    "Asia/Qostanay",
    "Asia/Tomsk",
    "Atlantic/Madeira",
    "Australia/North",
    "Canada/Newfoundland",
    "Etc/GMT+3",
    "Etc/GMT-7",
    "Europe/Budapest",
    "Europe/Madrid",
    "Europe/Sofia",
    "GMT+0",
    "Israel",
    "Pacific/Chatham",
    "Pacific/Marquesas",
)
@pytest.mark.parametrize("zone", ZONES)
def test_days_begin_at_midnight_in_every_zone_through_both_changes_of_the_clock(zone):
    days = list(Calendar(1, "d", zone).cells(datetime(2024, 12, 30, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)))
    assert all(left.end == right.start for left, right in pairwise(days))
    starts = [day.start.astimezone(ZoneInfo(zone)) for day in days]
    assert [(b.date() - a.date()).days for a, b in pairwise(starts)] == [1] * (len(days) - 1)
    for start in starts:
        if (start.hour, start.minute) != (0, 0):  # clocks skip midnight: the first moment after it
            before = (start.astimezone(UTC) - timedelta(minutes=1)).astimezone(ZoneInfo(zone))
            assert before.date() < start.date()


def test_a_day_in_berlin_has_25_hours_in_autumn_and_23_in_spring():
    berlin = parse_schedule("1d Europe/Berlin")
    autumn = berlin.cell(datetime(2026, 10, 25, 12, tzinfo=UTC))
    spring = berlin.cell(datetime(2026, 3, 29, 12, tzinfo=UTC))
    assert (autumn.length, spring.length) == (25 * HOUR, 23 * HOUR)
    assert str(autumn) == "2026-10-24T22:00:00Z/2026-10-25T23:00:00Z"


def test_hours_in_kolkata_begin_at_half_past():
    cell = parse_schedule("1h Asia/Kolkata").cell(TEN)
    assert str(cell) == "2026-11-20T09:30:00Z/2026-11-20T10:30:00Z"
    assert parse_schedule("1h 19800").cell(TEN) == cell


def test_an_hour_that_comes_twice_is_one_and_one_that_is_skipped_is_none():
    berlin = parse_schedule("1h Europe/Berlin")
    autumn, spring = datetime(2026, 10, 25, tzinfo=UTC), datetime(2026, 3, 29, tzinfo=UTC)
    assert [cell.length // HOUR for cell in berlin.cells(autumn - HOUR, autumn + 3 * HOUR)] == [1, 2, 1]
    assert [cell.length // HOUR for cell in berlin.cells(spring, spring + 3 * HOUR)] == [1, 1, 1]


def test_months_and_years_are_as_long_as_they_are():
    months = parse_schedule("1mo").cells(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC))
    assert [cell.length.days for cell in months] == [31, 28, 31]
    assert parse_schedule("1y").cell(TEN).length == 365 * DAY
    assert parse_schedule("1w").cell(TEN).start == datetime(2026, 11, 16, tzinfo=UTC), "a Monday"


def test_a_day_that_a_zone_skipped_is_no_cell():
    samoa = Calendar(1, "d", "Pacific/Apia")
    days = list(samoa.cells(datetime(2011, 12, 28, tzinfo=UTC), datetime(2012, 1, 2, tzinfo=UTC)))
    assert all(left.end == right.start for left, right in pairwise(days))
    assert [day.start.astimezone(ZoneInfo("Pacific/Apia")).day for day in days] == [28, 29, 31, 1]


@pytest.mark.parametrize(
    ("text", "window_schedule"),
    [
        ("15m", Every(timedelta(minutes=15))),
        ("90s", Every(timedelta(seconds=90))),
        ("1.5h", Every(timedelta(minutes=90))),
        ("1h +15m", Every(HOUR, timedelta(minutes=15))),
        ("1d", Calendar(1, "d", "UTC")),
        (" 1d   Europe/Berlin ", Calendar(1, "d", "Europe/Berlin")),
        ("3mo America/New_York", Calendar(3, "mo", "America/New_York")),
    ],
)
def test_lengths_as_people_write_them(text, window_schedule):
    assert parse_schedule(text) == window_schedule


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "h",
        "-1h",
        "0h",
        "0d",
        "1d Nowhere/Land",
        "1.5d",
        "1.5h Europe/Berlin",
        "1d 86400",
        "1d 99999999999999999999",
        "1 h",
        "99999999999h",
        "1d ../etc",
    ],
)
def test_what_is_no_length_is_refused(text):
    with pytest.raises(InvalidWindow):
        parse_schedule(text)


@given(lengths, moments)
def test_a_length_alone_takes_the_edge_it_is_given(length, edge):
    assert schedule_through(length, edge).before(edge) == edge
    assert Every.through(length, edge).is_cell(Window(edge, edge + length))


@pytest.mark.parametrize(
    "window_schedule", [Every(HOUR), Calendar(1, "d"), Calendar(1, "y", "Europe/Berlin"), Calendar(2, "mo")]
)
def test_a_schedule_ends_where_time_does(window_schedule):
    with pytest.raises(InvalidWindow, match="cannot reach so far"):
        window_schedule.after(datetime(9999, 12, 31, 23, 59, tzinfo=UTC))
