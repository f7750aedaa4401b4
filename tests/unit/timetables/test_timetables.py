"""Windows of scheduled runs: edges are the ticks of the DAG's own timetable, as Airflow computes them."""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from zoneinfo import available_timezones

import pytest
from airflow.sdk import DAG
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidWindow
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.model.window.window_schedule import Every, parse_schedule
from airflow_provider_streams.timetables import cron_schedule, window_timetable
from airflow_provider_streams.timetables.cron_schedule import CronSchedule
from airflow_provider_streams.timetables.dag_timetable import schedule_of_timetable
from airflow_provider_streams.timetables.run_facts import run_facts
from airflow_provider_streams.windows.plan.airflow_run_window import resolve_window
from tests.airflow_versions import sdk_timetable
from tests.seeds import examples

CASES = examples(24)
"""Each takes Airflow's cron iterator a second or more, wherever it is asked; `make fuzz` can try more."""

ZONES = sorted(
    zone for zone in available_timezones() if "/" in zone and not zone.startswith(("Etc/", "posix", "right"))
)
CRONS = [
    "0 * * * *",
    "30 * * * *",
    "*/15 * * * *",
    "0 0 * * *",
    "30 2 * * *",
    "0 */6 * * *",
    "0 0 1 * *",
    "0 3 * * 1-5",
]
# days around both changes of the clock, in either hemisphere, and any other
moments = st.datetimes(datetime(2024, 1, 1), datetime(2027, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001


@settings(max_examples=examples(150))
@given(st.sampled_from(CRONS), st.sampled_from(ZONES), moments)
def test_cells_of_a_cron_expression_meet(cron, zone, moment):
    window_schedule = CronSchedule(cron, zone)
    cell = window_schedule.cell(moment)
    assert cell.start <= moment < cell.end
    assert window_schedule.cell(cell.start) == cell
    assert window_schedule.before(cell.end) == cell.end
    assert window_schedule.cell(cell.end - timedelta(microseconds=1)) == cell


@pytest.mark.parametrize(
    ("cron", "zone", "moment"),
    [
        ("30 2 * * *", "Europe/Berlin", datetime(2026, 3, 29, 1, tzinfo=UTC)),
        ("30 */2 * * *", "Europe/Berlin", datetime(2026, 3, 29, 1, 10, tzinfo=UTC)),
        ("0 2 * * *", "Europe/Berlin", datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
        ("30 * * * *", "Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)),
    ],
)
def test_no_cell_is_stepped_over_right_where_clocks_change(cron, zone, moment):
    window_schedule = CronSchedule(cron, zone)
    cell = window_schedule.cell(moment)
    assert window_schedule.cell(cell.start) == cell
    assert next(window_schedule.cells(moment, moment + timedelta(days=5))) == window_schedule.cell(cell.end)


CHANGES = {
    "Europe/Berlin": datetime(2026, 10, 25, 1, tzinfo=UTC),
    "Africa/Casablanca": datetime(2026, 3, 22, 2, tzinfo=UTC),  # five weeks after another one
    "Antarctica/Troll": datetime(2026, 3, 29, 1, tzinfo=UTC),  # by two hours
    "Australia/Lord_Howe": datetime(2026, 4, 4, 15, tzinfo=UTC),  # by half an hour
    "America/St_Johns": datetime(2006, 4, 2, 3, 31, tzinfo=UTC),
    "Pacific/Apia": datetime(2011, 12, 30, 10, tzinfo=UTC),  # a whole day
    "Africa/Monrovia": datetime(1972, 1, 7, 0, 44, 30, tzinfo=UTC),
}


@settings(max_examples=CASES, deadline=None)
@given(
    st.sampled_from(
        [
            *CRONS,
            "45 * * * *",
            "59 * * * *",
            "*/10 1-4 * * *",
            "0 */5 * * *",
            "0 0,12 * * 1",
            "59 2,23 * * *",
            "*/7 * * * *",
        ]
    ),
    st.sampled_from(sorted(CHANGES)),
    st.lists(st.integers(-3000, 9000), min_size=50, max_size=50),
)
def test_cells_are_those_from_tick_to_tick_wherever_it_is_asked(cron, zone, minutes):
    """A scheduler goes from one tick to the next; a backfill asks from anywhere."""
    window_schedule, change = CronSchedule(cron, zone), CHANGES[zone]
    ticks = [window_schedule._next(change - timedelta(days=15))]
    while ticks[-1] < change + timedelta(days=7):
        ticks.append(window_schedule._next(ticks[-1]))
    asked = [change + timedelta(minutes=number) for number in minutes]
    for moment in [*asked, *(one for tick in ticks[::40] for one in (tick, tick - timedelta(microseconds=1)))]:
        place = bisect_right(ticks, moment)
        if 0 < place < len(ticks):
            assert window_schedule.cell(moment) == Window(ticks[place - 1], ticks[place])


@settings(max_examples=CASES, deadline=None)
@given(
    st.sampled_from([*CRONS, "*/7 * * * *", "*/10 1-4 * * *", "59 2,23 * * *"]),
    st.sampled_from(sorted(CHANGES)),
    st.integers(-3000, 500),
    st.integers(2, 9),
    st.lists(st.integers(-100, 100), min_size=5, max_size=5),
)
def test_cells_do_not_hang_on_what_was_asked_before(cron, zone, minutes, most, asides):
    """One caller iterates, and others ask meanwhile."""
    window_schedule, change = CronSchedule(cron, zone), CHANGES[zone]
    first = change - timedelta(days=7 if "*" in cron.split()[1] else 40)
    ticks = [window_schedule._next(first), window_schedule._next(window_schedule._next(first))]
    while ticks[-1] < change + timedelta(days=4):
        ticks.append(window_schedule._next(ticks[-1]))
    start = bisect_right(ticks, change + timedelta(minutes=minutes))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cron_schedule, "_MOST_TICKS", most)
        for place in range(start, min(start + 60, len(ticks) - 1)):
            cell = Window(ticks[place], ticks[place + 1])
            assert (window_schedule.after(cell.start), window_schedule.is_cell(cell)) == (cell.end, True)
            for aside in asides if place % 20 == 0 else ():
                other = max(min(place + aside, len(ticks) - 2), 0)
                assert window_schedule.cell(ticks[other]) == Window(ticks[other], ticks[other + 1])


@pytest.fixture
def asked(monkeypatch):
    """What Airflow was asked for."""
    told, rule = [], CronSchedule._next

    def ask(window_schedule, moment):
        told.append(moment)
        return rule(window_schedule, moment)

    monkeypatch.setattr(CronSchedule, "_next", ask)
    cron_schedule._walk_of.cache_clear()
    return told


@pytest.mark.parametrize("day", [20, 28])
def test_a_cell_of_many_in_a_row_costs_one_question(asked, day):
    """On the 29th clocks change: over that, a few more."""
    window_schedule, start = CronSchedule("* * * * *", "Europe/Berlin"), datetime(2026, 3, day, tzinfo=UTC)
    cells = list(window_schedule.cells(start, start + timedelta(days=2)))
    assert len(cells) == 2 * 24 * 60
    few = 200 if day == 28 else 20
    assert len(asked) < len(cells) + few
    again = parse_schedule(str(window_schedule))
    assert all(again.is_cell(cell) for cell in cells)
    assert len(asked) < len(cells) + few, "they are known by now"


def test_so_many_ticks_are_remembered_and_no_more(asked, monkeypatch):
    monkeypatch.setattr(cron_schedule, "_MOST_TICKS", 100)
    window_schedule, start = CronSchedule("* * * * *", "Europe/Berlin"), datetime(2026, 3, 20, tzinfo=UTC)
    for _ in range(2):
        cells = list(window_schedule.cells(start, start + timedelta(hours=10)))
        assert all(window_schedule.is_cell(cell) for cell in cells[-90:])
        assert len(cron_schedule._walk_of(window_schedule)._ticks) == 100
    assert len(asked) < 2 * len(cells) + 40


@given(st.sampled_from(CRONS), st.sampled_from(ZONES))
def test_a_cron_schedule_is_its_text(cron, zone):
    assert parse_schedule(str(CronSchedule(cron, zone))) == CronSchedule(cron, zone)


def test_timetables_that_tell_how_they_tile_time():
    start = datetime(2026, 11, 20, 10, 7, tzinfo=UTC)
    daily = sdk_timetable("CronDataIntervalTimetable")("0 6 * * *", timezone="UTC")
    assert str(schedule_of_timetable(daily)) == "cron 0 6 * * * UTC"
    delta = sdk_timetable("DeltaDataIntervalTimetable")(timedelta(hours=1))
    assert schedule_of_timetable(delta, start) == Every.through(timedelta(hours=1), start)
    assert schedule_of_timetable(delta) is None
    assert schedule_of_timetable(None) is None


@pytest.mark.parametrize("text", ["cron 61 * * * *", "cron 0 0 * * * Nowhere/Land", "cron", "cron * *"])
def test_what_is_no_expression_is_refused(text):
    with pytest.raises(InvalidWindow):
        parse_schedule(text)


def test_a_tick_that_never_comes_is_no_schedule():
    with pytest.raises(InvalidWindow):
        CronSchedule("0 0 30 2 *").cell(datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(("zone", "hour"), [("utc", 6), ("3600", 5), ("-3600", 7), ("20700", 0)])
def test_zones_are_those_that_airflow_takes_and_offsets_that_it_writes(zone, hour):
    minute = 15 if zone == "20700" else 0
    cell = CronSchedule("0 6 * * *", zone).cell(datetime(2026, 5, 1, 12, tzinfo=UTC))
    start = datetime(2026, 5, 1, hour, minute, tzinfo=UTC)
    assert (cell.start, cell.end) == (start, start + timedelta(days=1))


@pytest.mark.parametrize("run_type", ["manual", "operator_triggered", "asset_materialization"])
def test_a_run_that_no_schedule_started_says_nothing_of_the_other_intervals(run_type):
    """Airflow makes its interval from the moment at which it was started."""
    start = datetime(2026, 11, 20, 10, 7, tzinfo=UTC)
    context = {"data_interval_start": start, "data_interval_end": start + timedelta(hours=1)}

    def facts(schedule, run_type):
        dag = DAG("runs", schedule=schedule, start_date=start)
        return run_facts({**context, "dag": dag, "dag_run": SimpleNamespace(run_type=run_type)})

    hourly = sdk_timetable("CronDataIntervalTimetable")("@hourly", timezone="UTC")
    for scheduled in (hourly, window_timetable("1h")):
        with pytest.raises(InvalidWindow, match="by hand or by another DAG, and its data interval"):
            resolve_window(None, None, facts(scheduled, run_type))
    delta = sdk_timetable("DeltaDataIntervalTimetable")(timedelta(hours=1))
    assert facts(delta, run_type).window_schedule is None
    assert facts(delta, "scheduled").window_schedule == Every.through(timedelta(hours=1), start)
