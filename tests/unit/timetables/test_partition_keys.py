"""Windows of partitions: edges are where the DAG's own timetable, or a mapper, starts the next partition."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest

pytest.importorskip("airflow.partition_mappers.window", reason="Airflow tells a run's partition since 3.3")

from airflow.partition_mappers.base import RollupMapper
from airflow.partition_mappers.chain import ChainMapper
from airflow.partition_mappers.identity import IdentityMapper
from airflow.partition_mappers.temporal import (
    FanOutMapper,
    StartOfDayMapper,
    StartOfHourMapper,
    StartOfMonthMapper,
    StartOfQuarterMapper,
    StartOfWeekMapper,
    StartOfYearMapper,
)
from airflow.partition_mappers.window import DayWindow, WeekWindow
from airflow.sdk import Asset, CronPartitionTimetable, PartitionedAssetTimetable
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pendulum import FixedTimezone

from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.model.window.window_schedule import parse_schedule
from airflow_provider_streams.timetables.cron_schedule import CronSchedule
from airflow_provider_streams.timetables.dag_timetable import _schedule_of_mapper, key_in, schedule_of_timetable
from airflow_provider_streams.timetables.run_facts import partition_keys
from airflow_provider_streams.windows.plan.airflow_run_window import RunFacts, resolve_window
from tests.seeds import examples
from tests.unit.timetables.test_timetables import CRONS, ZONES, moments

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)


def _spans(cron: str, zone: str) -> list[tuple[datetime, datetime]]:
    """Around each change of the zone's clocks in a year; schedules of many ticks for days, others for weeks."""
    noons = [datetime(2026, 1, 1, 12, tzinfo=ZoneInfo(zone)) + timedelta(days=day) for day in range(365)]
    changes = [after for before, after in pairwise(noons) if before.utcoffset() != after.utcoffset()] or noons[90:91]
    reach = timedelta(days=2 if "*" in cron.split()[1] else 40)
    return [(change.astimezone(UTC) - reach, change.astimezone(UTC) + reach) for change in changes]


SLOW_ZONES = [pytest.param(zone, marks=pytest.mark.slow) for zone in ("America/New_York", "America/Santiago")]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata", *SLOW_ZONES])
@pytest.mark.parametrize("cron", CRONS)
def test_partitions_of_airflow_are_the_cells(cron, zone):
    """What scheduled runs and a backfill would carry: adjacent windows, none twice, none left out."""
    from airflow.serialization.encoders import coerce_to_core_timetable

    core = coerce_to_core_timetable(CronPartitionTimetable(cron, timezone=zone, run_offset=-1))
    window_schedule = CronSchedule(cron, zone)
    for first, last in _spans(cron, zone):
        infos = list(core.iter_partition_dagrun_infos(earliest=first, latest=last))
        starts = [datetime.fromtimestamp(info.partition_date.timestamp(), UTC) for info in infos]
        assert len(starts) > 1
        assert [window_schedule.after(start) for start in starts[:-1]] == starts[1:]
        windows = [Window(start, window_schedule.after(start)) for start in starts]
        assert all(left.end == right.start for left, right in pairwise(windows))


def test_daily_partitions_in_berlin_are_days():
    window_schedule = schedule_of_timetable(CronPartitionTimetable("@daily", timezone="Europe/Berlin", run_offset=-1))
    autumn = window_schedule.cell(datetime(2026, 10, 25, 12, tzinfo=UTC))
    assert autumn.length == timedelta(hours=25)
    assert window_schedule.cell(datetime(2026, 3, 29, 12, tzinfo=UTC)).length == timedelta(hours=23)


MAPPERS = (StartOfHourMapper, StartOfDayMapper, StartOfWeekMapper, StartOfMonthMapper, StartOfYearMapper)


_TWICE = (
    (StartOfHourMapper, "Europe/Berlin", datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
    (StartOfHourMapper, "America/Vancouver", datetime(2027, 11, 7, 8, tzinfo=UTC)),
    (StartOfDayMapper, "America/Havana", datetime(2026, 11, 1, 4, 30, tzinfo=UTC)),
    (StartOfDayMapper, "Atlantic/Azores", datetime(2026, 10, 25, 12, tzinfo=UTC)),
    (StartOfMonthMapper, "America/Havana", datetime(2026, 11, 1, 4, 30, tzinfo=UTC)),
)
"""Partitions whose start the clock shows twice."""

_ODD = (
    (StartOfHourMapper, "Antarctica/Troll", datetime(2025, 10, 26, 1, tzinfo=UTC)),
    (StartOfHourMapper, "Pacific/Chatham", datetime(2025, 9, 27, 14, tzinfo=UTC)),
)
"""Where a partition is no stretch of time: two hours come twice by turns, or one has its last quarter alone."""


def _partition_of(mapper: object, moment: datetime) -> Window:
    """What a run reads that this moment's event of an asset causes."""
    date = mapper.to_partition_date(mapper.to_downstream(moment.strftime(mapper.input_format)))
    return resolve_window(None, None, RunFacts(date, window_schedule=_schedule_of_mapper(mapper))).window


@settings(max_examples=examples(150))
@given(
    st.sampled_from(MAPPERS),
    st.sampled_from([zone for zone in ZONES if zone not in {odd for _, odd, _ in _ODD}]),
    moments,
)
@example(*_TWICE[0])
@example(*_TWICE[1])
@example(*_TWICE[2])
@example(*_TWICE[3])
@example(*_TWICE[4])
def test_the_run_of_a_partition_reads_all_that_belongs_to_it(mapper_type, zone, moment):
    """Hours of zones of half hours begin at half past; an hour that comes twice is one partition by its name."""
    window = _partition_of(mapper_type(timezone=zone, input_format="%Y-%m-%dT%H:%M:%S%z"), moment)
    assert window.start <= moment < window.end


@pytest.mark.parametrize(("mapper_type", "zone", "moment"), [*_TWICE, *_ODD])
def test_runs_over_a_change_of_clocks_read_each_moment_once(mapper_type, zone, moment):
    mapper = mapper_type(timezone=zone, input_format="%Y-%m-%dT%H:%M:%S%z")
    quarters = range(-4 * 50 * 24, 4 * 50 * 24) if mapper_type is StartOfMonthMapper else range(-4 * 49, 4 * 49)
    windows = sorted({_partition_of(mapper, moment + timedelta(minutes=15 * quarter)) for quarter in quarters})
    assert len(windows) > 2
    assert all(left.end == right.start for left, right in pairwise(windows))


@pytest.mark.parametrize("mapper_type", MAPPERS)
def test_partitions_of_a_zone_without_a_name_are_cells(mapper_type):
    named, fixed = (_schedule_of_mapper(mapper_type(timezone=zone)) for zone in ("Asia/Kolkata", FixedTimezone(19800)))
    moment = datetime(2026, 11, 20, 10, 7, tzinfo=UTC)
    assert fixed.cell(moment) == named.cell(moment)
    assert parse_schedule(str(fixed)) == fixed


@pytest.mark.parametrize(
    "moment", [datetime(2026, 10, 25, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 1, 30, tzinfo=UTC)]
)
def test_hours_whose_names_have_an_offset_are_two_where_clocks_go_back(moment):
    mapper = StartOfHourMapper(timezone="Europe/Berlin", output_format="%Y-%m-%dT%H%z")
    cell = _schedule_of_mapper(mapper).cell(moment)
    assert (cell.start, cell.length) == (moment - timedelta(minutes=30), timedelta(hours=1))


def _named(
    timetable: object, *windows: Window, own_key: str | None = None, date: datetime | None = None, tiles: str = "1h"
) -> list[str | None]:
    """The keys of windows in a run of a DAG with this timetable, and with this partition."""
    context = {"dag": SimpleNamespace(timetable=timetable), "partition_key": own_key, "partition_date": date}
    keys = partition_keys(context)
    return [keys.key(window, parse_schedule(tiles)) for window in windows]


HOURS = [Window(TEN + timedelta(hours=n), TEN + timedelta(hours=n + 1)) for n in range(3)]


@settings(max_examples=examples(100))
@given(st.sampled_from((*MAPPERS, StartOfQuarterMapper)), st.sampled_from(["UTC", "Europe/Berlin"]), moments)
def test_a_window_has_the_key_that_the_dags_mapper_gives_it(mapper_type, zone, moment):
    mapper = mapper_type(timezone=zone, input_format="%Y-%m-%dT%H:%M:%S%z")
    if (window_schedule := _schedule_of_mapper(mapper)) is None:
        return
    window = window_schedule.cell(moment)
    for whole in (mapper, RollupMapper(upstream_mapper=mapper, window=DayWindow())):
        timetable = SimpleNamespace(default_partition_mapper=whole)
        assert key_in(timetable, window) == mapper.to_downstream(moment.strftime(mapper.input_format))


@pytest.mark.parametrize(
    ("mapper", "upstream", "lengths"),
    [
        (FanOutMapper(upstream_mapper=StartOfWeekMapper(), window=WeekWindow()), "2026-11-18T00:00:00", [1] * 7),
        (
            ChainMapper(StartOfDayMapper(), StartOfMonthMapper(input_format="%Y-%m-%d")),
            "2026-11-18T10:00:00",
            [30],
        ),
        (ChainMapper(IdentityMapper(), StartOfDayMapper()), "2026-11-18T10:00:00", [1]),
    ],
)
def test_the_run_of_a_key_reads_the_period_of_the_mapper_that_wrote_it(mapper, upstream, lengths):
    """Not the period of the partitions that it waits for."""
    timetable = PartitionedAssetTimetable(assets=Asset("table"), default_partition_mapper=mapper)
    named = mapper.to_downstream(upstream)
    keys = [named] if isinstance(named, str) else list(named)
    dates = [mapper.to_partition_date(key) for key in keys]
    facts = [RunFacts(date, window_schedule=schedule_of_timetable(timetable)) for date in dates]
    windows = [resolve_window(None, None, one).window for one in facts]
    assert [window.length / timedelta(days=1) for window in windows] == lengths
    assert [key_in(timetable, window) for window in windows] == keys


def test_each_asset_may_have_a_mapper_of_its_own():
    hours, days = Asset("hours"), Asset("days")

    def schedule(by_hours, by_days):
        config = {hours: by_hours, days: by_days}
        return schedule_of_timetable(PartitionedAssetTimetable(assets=hours & days, partition_mapper_config=config))

    assert str(schedule(RollupMapper(upstream_mapper=StartOfDayMapper(), window=DayWindow()), IdentityMapper())) == "1d"
    assert schedule(StartOfHourMapper(), StartOfDayMapper()) is None, "they do not agree: say window_length"


def test_the_windows_of_a_run_have_keys_of_the_dags_format():
    timetable = CronPartitionTimetable("@hourly", timezone="Asia/Kolkata", run_offset=-1, key_format="%d/%H%M")
    half = timedelta(minutes=30)
    windows = [Window(one.start - half, one.end - half) for one in HOURS]
    by_hand = _named(timetable, *windows, own_key="by hand", date=windows[1].start, tiles="1h +30m")
    assert by_hand == [None, "by hand", None]
    assert _named(timetable, *windows, own_key="20/1600", date=windows[1].start) == ["20/1500", "20/1600", "20/1700"]
    assert _named(timetable, *windows) == ["20/1500", "20/1600", "20/1700"], "a run without a partition"


def test_a_run_whose_key_no_rule_gives_names_its_own_window_alone():
    """Two mappers side by side: a part of the key is none of time."""
    context = {"partition_key": "2026-11-20T10|eu", "dag": None}
    keys = partition_keys(context, HOURS[0])
    assert [keys.key(one, parse_schedule("1h")) for one in HOURS] == ["2026-11-20T10|eu", None, None]
    plain = partition_keys({"partition_key": "2026-11-20T10:00:00", "dag": None}, HOURS[0])
    assert plain.key(HOURS[1], parse_schedule("1h")) == "2026-11-20T11:00:00"


def test_hours_of_a_daily_run_have_keys_of_hours():
    timetable = CronPartitionTimetable("@daily", timezone="UTC", run_offset=-1, key_format="%Y%m%d")
    midnight = TEN.replace(hour=0)
    assert _named(timetable, *HOURS[:2], own_key="20261120", date=midnight) == [
        "2026-11-20T10:00:00",
        "2026-11-20T11:00:00",
    ]
