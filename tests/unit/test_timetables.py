"""Windows of partitions: edges are the ticks of the DAG's own timetable, as Airflow computes them."""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import available_timezones

import pytest
from airflow.partition_mappers.temporal import (
    StartOfDayMapper,
    StartOfHourMapper,
    StartOfMonthMapper,
    StartOfWeekMapper,
    StartOfYearMapper,
)
from airflow.sdk import CronDataIntervalTimetable, CronPartitionTimetable, DeltaDataIntervalTimetable
from hypothesis import given, settings
from hypothesis import strategies as st
from pendulum import FixedTimezone

from airflow_provider_streams import timetables
from airflow_provider_streams.errors import InvalidWindow
from airflow_provider_streams.model.grid import Every, parse_grid
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.timetables import CronGrid, _grid_of_mapper, grid_of_timetable

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


@settings(max_examples=150)
@given(st.sampled_from(CRONS), st.sampled_from(ZONES), moments)
def test_cells_of_a_cron_expression_meet(cron, zone, moment):
    grid = CronGrid(cron, zone)
    cell = grid.cell(moment)
    assert cell.start <= moment < cell.end
    assert grid.cell(cell.start) == cell
    assert grid.before(cell.end) == cell.end
    assert grid.cell(cell.end - timedelta(microseconds=1)) == cell


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
    grid = CronGrid(cron, zone)
    cell = grid.cell(moment)
    assert grid.cell(cell.start) == cell
    assert next(grid.cells(moment, moment + timedelta(days=5))) == grid.cell(cell.end)


CHANGES = {
    "Europe/Berlin": datetime(2026, 10, 25, 1, tzinfo=UTC),
    "Africa/Casablanca": datetime(2026, 3, 22, 2, tzinfo=UTC),  # five weeks behind another one
    "Antarctica/Troll": datetime(2026, 3, 29, 1, tzinfo=UTC),  # by two hours
    "Australia/Lord_Howe": datetime(2026, 4, 4, 15, tzinfo=UTC),  # by half an hour
    "America/St_Johns": datetime(2006, 4, 2, 3, 31, tzinfo=UTC),
    "Pacific/Apia": datetime(2011, 12, 30, 10, tzinfo=UTC),  # a whole day
    "Africa/Monrovia": datetime(1972, 1, 7, 0, 44, 30, tzinfo=UTC),
}


@settings(max_examples=60, deadline=None)
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
    st.lists(st.integers(-3000, 9000), min_size=20, max_size=20),
)
def test_cells_are_those_from_tick_to_tick_wherever_it_is_asked(cron, zone, minutes):
    """A scheduler goes from one tick to the next; a backfill asks from anywhere."""
    grid, change = CronGrid(cron, zone), CHANGES[zone]
    ticks = [grid._next(change - timedelta(days=15))]
    while ticks[-1] < change + timedelta(days=7):
        ticks.append(grid._next(ticks[-1]))
    asked = [change + timedelta(minutes=number) for number in minutes]
    for moment in [*asked, *(one for tick in ticks[::40] for one in (tick, tick - timedelta(microseconds=1)))]:
        place = bisect_right(ticks, moment)
        if 0 < place < len(ticks):
            assert grid.cell(moment) == Window(ticks[place - 1], ticks[place])


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from([*CRONS, "*/7 * * * *", "*/10 1-4 * * *", "59 2,23 * * *"]),
    st.sampled_from(sorted(CHANGES)),
    st.integers(-3000, 500),
    st.integers(2, 9),
    st.lists(st.integers(-100, 100), min_size=5, max_size=5),
)
def test_cells_do_not_hang_on_what_was_asked_before(cron, zone, minutes, most, asides):
    """Somebody goes along, and others ask meanwhile."""
    grid, change = CronGrid(cron, zone), CHANGES[zone]
    ticks = [grid._next(change - timedelta(days=40)), grid._next(grid._next(change - timedelta(days=40)))]
    while ticks[-1] < change + timedelta(days=4):
        ticks.append(grid._next(ticks[-1]))
    start = bisect_right(ticks, change + timedelta(minutes=minutes))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(timetables, "_MOST_TICKS", most)
        for place in range(start, min(start + 60, len(ticks) - 1)):
            cell = Window(ticks[place], ticks[place + 1])
            assert (grid.after(cell.start), grid.is_cell(cell)) == (cell.end, True)
            for aside in asides if place % 20 == 0 else ():
                other = max(min(place + aside, len(ticks) - 2), 0)
                assert grid.cell(ticks[other]) == Window(ticks[other], ticks[other + 1])


@pytest.fixture
def asked(monkeypatch):
    """What Airflow was asked for."""
    told, rule = [], CronGrid._next

    def ask(grid, moment):
        told.append(moment)
        return rule(grid, moment)

    monkeypatch.setattr(CronGrid, "_next", ask)
    timetables._walk_of.cache_clear()
    return told


@pytest.mark.parametrize("day", [20, 28])
def test_a_cell_of_many_in_a_row_costs_one_question(asked, day):
    """On the 29th clocks change: over that, a few more."""
    grid, start = CronGrid("* * * * *", "Europe/Berlin"), datetime(2026, 3, day, tzinfo=UTC)
    cells = list(grid.cells(start, start + timedelta(days=2)))
    assert len(cells) == 2 * 24 * 60
    few = 200 if day == 28 else 20
    assert len(asked) < len(cells) + few
    again = parse_grid(str(grid))
    assert all(again.is_cell(cell) for cell in cells)
    assert len(asked) < len(cells) + few, "they are known by now"


def test_so_many_ticks_are_remembered_and_no_more(asked, monkeypatch):
    monkeypatch.setattr(timetables, "_MOST_TICKS", 100)
    grid, start = CronGrid("* * * * *", "Europe/Berlin"), datetime(2026, 3, 20, tzinfo=UTC)
    for _ in range(2):
        cells = list(grid.cells(start, start + timedelta(hours=10)))
        assert all(grid.is_cell(cell) for cell in cells[-90:])
        assert len(timetables._walk_of(grid)._ticks) == 100
    assert len(asked) < 2 * len(cells) + 40


@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Kolkata"]
)
@pytest.mark.parametrize("cron", CRONS)
def test_partitions_of_airflow_are_the_cells(cron, zone):
    """What a year of scheduled runs and of a backfill would carry: adjacent windows, none twice, none left out."""
    from airflow.serialization.encoders import coerce_to_core_timetable

    core = coerce_to_core_timetable(CronPartitionTimetable(cron, timezone=zone, run_offset=-1))
    span = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 12, tzinfo=UTC)
    found = []
    for first, last in (span, (span[0].replace(month=10), span[1].replace(month=11))):
        infos = list(core.iter_partition_dagrun_infos(earliest=first, latest=last))
        found.append([datetime.fromtimestamp(info.partition_date.timestamp(), UTC) for info in infos])
    grid = CronGrid(cron, zone)
    for starts in found:
        assert [grid.after(start) for start in starts[:-1]] == starts[1:]
        windows = [Window(start, grid.after(start)) for start in starts]
        assert all(left.end == right.start for left, right in pairwise(windows))


@given(st.sampled_from(CRONS), st.sampled_from(ZONES))
def test_a_cron_grid_is_its_text(cron, zone):
    assert parse_grid(str(CronGrid(cron, zone))) == CronGrid(cron, zone)


def test_daily_partitions_in_berlin_are_days():
    grid = grid_of_timetable(CronPartitionTimetable("@daily", timezone="Europe/Berlin", run_offset=-1))
    autumn = grid.cell(datetime(2026, 10, 25, 12, tzinfo=UTC))
    assert autumn.length == timedelta(hours=25)
    assert grid.cell(datetime(2026, 3, 29, 12, tzinfo=UTC)).length == timedelta(hours=23)


MAPPERS = (StartOfHourMapper, StartOfDayMapper, StartOfWeekMapper, StartOfMonthMapper, StartOfYearMapper)


@settings(max_examples=150)
@given(st.sampled_from(MAPPERS), st.sampled_from([*ZONES, "Asia/Kolkata", "Australia/Lord_Howe"]), moments)
def test_partitions_that_a_mapper_makes_are_the_cells(mapper_type, zone, moment):
    """Hours of zones of half hours begin at half past; an hour that comes twice is one partition by its name."""
    mapper = mapper_type(timezone=zone, input_format="%Y-%m-%dT%H:%M:%S%z")
    start = mapper.to_partition_date(mapper.to_downstream(moment.strftime(mapper.input_format)))
    assert _grid_of_mapper(mapper).before(moment) == start.astimezone(UTC)


@pytest.mark.parametrize("mapper_type", MAPPERS)
def test_partitions_of_a_zone_without_a_name_are_cells(mapper_type):
    named, fixed = (_grid_of_mapper(mapper_type(timezone=zone)) for zone in ("Asia/Kolkata", FixedTimezone(19800)))
    moment = datetime(2026, 11, 20, 10, 7, tzinfo=UTC)
    assert fixed.cell(moment) == named.cell(moment)
    assert parse_grid(str(fixed)) == fixed


@pytest.mark.parametrize(
    "moment", [datetime(2026, 10, 25, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 1, 30, tzinfo=UTC)]
)
def test_hours_whose_names_have_an_offset_are_two_where_clocks_go_back(moment):
    mapper = StartOfHourMapper(timezone="Europe/Berlin", output_format="%Y-%m-%dT%H%z")
    cell = _grid_of_mapper(mapper).cell(moment)
    assert (cell.start, cell.length) == (moment - timedelta(minutes=30), timedelta(hours=1))


def test_timetables_that_tell_how_they_tile_time():
    start = datetime(2026, 11, 20, 10, 7, tzinfo=UTC)
    assert str(grid_of_timetable(CronDataIntervalTimetable("0 6 * * *", timezone="UTC"))) == "cron 0 6 * * * UTC"
    delta = DeltaDataIntervalTimetable(timedelta(hours=1))
    assert grid_of_timetable(delta, start) == Every.through(timedelta(hours=1), start)
    assert grid_of_timetable(delta) is None
    assert grid_of_timetable(None) is None


@pytest.mark.parametrize("text", ["cron 61 * * * *", "cron 0 0 * * * Nowhere/Land", "cron", "cron * *"])
def test_what_is_no_expression_is_refused(text):
    with pytest.raises(InvalidWindow):
        parse_grid(text)


def test_a_tick_that_never_comes_is_no_grid():
    with pytest.raises(InvalidWindow):
        CronGrid("0 0 30 2 *").cell(datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(("zone", "hour"), [("utc", 6), ("3600", 5), ("-3600", 7), ("20700", 0)])
def test_zones_are_those_that_airflow_takes_and_offsets_that_it_writes(zone, hour):
    minute = 15 if zone == "20700" else 0
    cell = CronGrid("0 6 * * *", zone).cell(datetime(2026, 5, 1, 12, tzinfo=UTC))
    start = datetime(2026, 5, 1, hour, minute, tzinfo=UTC)
    assert (cell.start, cell.end) == (start, start + timedelta(days=1))
