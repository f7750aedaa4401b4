"""Runs whose windows stay on their schedule, through every pause."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pendulum
import pytest
from airflow.sdk import DAG
from airflow.timetables import interval as airflow_interval
from airflow.timetables import trigger as airflow_trigger
from airflow.timetables.base import DataInterval, TimeRestriction
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_streams.airflow_features import core_timetable
from airflow_provider_streams.errors import InvalidWindow
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.model.window.window_schedule import Every, parse_schedule
from airflow_provider_streams.timetables import window_schedule_timetable, window_timetable
from airflow_provider_streams.timetables.dag_timetable import schedule_of_timetable
from airflow_provider_streams.timetables.window_schedule_timetable import WindowScheduleTimetable
from tests.airflow_versions import deserialized, serialized
from tests.seeds import examples

HOUR = timedelta(hours=1)
BEGIN = datetime(2026, 11, 20, 10, 7, tzinfo=UTC)
SCHEDULES = ["1h +7m", "15m", "90s", "1d", "1d Europe/Berlin", "1w", "1mo", "2h Asia/Kolkata"]


@pytest.fixture
def clock(monkeypatch):
    """Sets what is now, to Airflow's timetables and to ours."""

    def at(moment: datetime) -> None:
        class Clock(datetime):
            @classmethod
            def now(cls, tz=None):
                return moment.astimezone(tz)

        monkeypatch.setattr(window_schedule_timetable, "datetime", Clock)
        for module in (airflow_interval, airflow_trigger):
            monkeypatch.setattr(module, "utcnow", lambda: pendulum.instance(moment))

    return at


def following(timetable, last, *, catchup=False, earliest=BEGIN):
    restriction = TimeRestriction(earliest and pendulum.instance(earliest), None, catchup)
    info = timetable.next_dagrun_info(last_automated_data_interval=last, restriction=restriction)
    return None if info is None else info.data_interval


def runs(timetable, clock, moments, **how):
    """The intervals of the runs that a scheduler starts which looks at these moments."""
    found, last = [], None
    for moment in moments:
        clock(moment)
        while (one := following(timetable, last, **how)) is not None and one.end <= moment:
            last = one
            found.append(Window(one.start, one.end))
    return found


AWAKE = [BEGIN + n * timedelta(minutes=10) for n in range(30)]
LATER = [BEGIN + timedelta(hours=20) + n * timedelta(minutes=10) for n in range(30)]
"""With a pause between."""


def test_airflows_own_intervals_move_in_a_pause(clock):
    """What this timetable is for. If this fails, Airflow keeps them by itself."""
    delta = airflow_interval.DeltaDataIntervalTimetable(HOUR)
    assert {one.start.minute for one in runs(delta, clock, AWAKE)} == {7}
    assert {one.start.minute for one in runs(delta, clock, AWAKE + LATER)} == {7, 0}
    trigger = airflow_trigger.DeltaTriggerTimetable(HOUR, interval=HOUR)
    begun = [moment + timedelta(minutes=3) for moment in LATER]
    assert len({one.start.minute for one in runs(trigger, clock, AWAKE + begun)}) > 1


@pytest.mark.parametrize("catchup", [False, True])
def test_windows_stay_on_their_schedule_in_a_pause(clock, catchup):
    timetable = window_timetable("1h +7m")
    found = runs(timetable, clock, AWAKE + LATER, catchup=catchup)
    assert all(Every(HOUR, timedelta(minutes=7)).is_cell(one) for one in found)
    gaps = [left for left, right in pairwise(found) if left.end != right.start]
    assert len(gaps) == (0 if catchup else 1), "without catchup, what was missed is left to a backfill"
    assert found[-1].end > LATER[-1] - HOUR


def test_after_intervals_that_moved_the_next_window_is_on_schedule_again(clock):
    clock(BEGIN + timedelta(hours=30, minutes=20))
    last = DataInterval(pendulum.datetime(2026, 11, 21, 14), pendulum.datetime(2026, 11, 21, 15))
    timetable = window_timetable("1h +7m")
    assert following(timetable, last).start == datetime(2026, 11, 21, 15, 7, tzinfo=UTC)
    assert following(timetable, last, catchup=True).start == datetime(2026, 11, 21, 14, 7, tzinfo=UTC)


@settings(max_examples=examples(60))
@given(
    st.sampled_from(SCHEDULES),
    st.datetimes(datetime(2024, 1, 1), datetime(2027, 12, 31), timezones=st.just(UTC)),  # noqa: DTZ001
    st.booleans(),
)
def test_each_run_reads_the_next_cell(text, begin, catchup):
    window_schedule, timetable = parse_schedule(text), WindowScheduleTimetable(text)
    last = following(timetable, None, catchup=catchup, earliest=begin)
    cells = [Window(last.start, last.end)]
    assert last.start >= begin
    for _ in range(5):
        last = following(timetable, last, catchup=True, earliest=begin)
        cells.append(Window(last.start, last.end))
    assert all(window_schedule.is_cell(cell) for cell in cells)
    assert all(left.end == right.start for left, right in pairwise(cells))
    by_hand = timetable.infer_manual_data_interval(run_after=pendulum.instance(begin))
    assert Window(by_hand.start, by_hand.end) == window_schedule.last_full_cell(begin)


def test_a_dag_without_a_start_begins_with_the_last_window_or_with_catchup_never(clock):
    clock(BEGIN + timedelta(minutes=30))
    assert following(window_timetable("1h"), None, earliest=None).start == datetime(2026, 11, 20, 9, tzinfo=UTC)
    assert following(window_timetable("1h"), None, earliest=None, catchup=True) is None


def test_a_dag_that_has_ended_starts_no_run(clock):
    clock(BEGIN)
    ended = TimeRestriction(None, pendulum.instance(BEGIN - timedelta(days=1)), catchup=False)
    assert window_timetable("1h").next_dagrun_info(last_automated_data_interval=None, restriction=ended) is None


@pytest.mark.parametrize("given", [*SCHEDULES, timedelta(minutes=20)])
def test_a_dag_with_it_is_stored_and_tells_its_windows(given):
    dag = DAG("stored", schedule=window_timetable(given), start_date=BEGIN)
    stored = deserialized(serialized(dag)).timetable
    assert stored == window_timetable(given)
    assert hash(stored) == hash(window_timetable(given))
    for timetable in (dag.timetable, stored, core_timetable(dag.timetable)):
        assert schedule_of_timetable(timetable) == parse_schedule(given)
    assert stored.summary == str(parse_schedule(given))


def test_a_cron_expression_stays_one():
    assert str(schedule_of_timetable(window_timetable("@hourly"))).startswith("cron ")
    assert not isinstance(window_timetable("7 * * * *", "Europe/Berlin"), WindowScheduleTimetable)


@pytest.mark.parametrize(
    ("given", "zone", "says"),
    [
        ("hourly", "UTC", "not a length of windows"),
        ("", "UTC", "not a length of windows"),
        (None, "UTC", "not None"),
        (15, "UTC", "not 15"),
        ("1d", "Europe/Berlin", "a part of the text"),
        ("cron 0 6 * * * Europe/Berlin", "Europe/Berlin", "a part of the text"),
        (HOUR, "Europe/Berlin", "a part of the text"),
        (timedelta(0), "UTC", "must be positive"),
        ("@once", "UTC", "'@once' makes no windows"),
        ("@continuous", "UTC", "'@continuous' makes no windows"),
        ("cron @once", "UTC", "'@once' makes no windows"),
        ("@fortnightly", "UTC", "@fortnightly"),
        ("0 0 1 1 * 0 2027", "UTC", "has 7 fields"),
        ("0 0 * * * Europe/Berlin", "UTC", "Europe/Berlin"),
        ("0 0 31 2 *", "UTC", "has no tick"),
        ("61 * * * *", "UTC", "61 "),
        ("R R * * *", "UTC", "gives R another value"),
        ("cron 0 r(1-5) * * * UTC", "UTC", "gives R another value"),
        ("@hourly", "Nowhere/Land", "Nowhere/Land"),
    ],
)
def test_what_are_no_windows_is_refused(given, zone, says):
    with pytest.raises(InvalidWindow, match=re.escape(says)):
        window_timetable(given, zone)


@pytest.mark.parametrize(
    ("given", "zone", "told"),
    [
        ("@midnight", "UTC", "@midnight UTC"),
        ("@quarterly", "Europe/Berlin", "0 0 1 */3 * Europe/Berlin"),
        ("  0  6 * * * ", "UTC", "0 6 * * * UTC"),
        ("0 0 29 2 *", "UTC", "0 0 29 2 * UTC"),
        ("* * * * * */5", "UTC", "* * * * * */5 UTC"),
        ("0 6 * MAR,APR FRI", "UTC", "0 6 * MAR,APR FRI UTC"),
        ("cron 0 6 * * *", "UTC", "0 6 * * * UTC"),
        ("cron 0 6 * * * Europe/Berlin", "UTC", "0 6 * * * Europe/Berlin"),
        ("cron @daily Europe/Berlin", "UTC", "0 0 * * * Europe/Berlin"),
    ],
)
def test_a_cron_expression_may_be_written_as_a_window_schedule(given, zone, told):
    timetable = window_timetable(given, zone)
    assert not isinstance(timetable, WindowScheduleTimetable)
    assert str(schedule_of_timetable(timetable)) == f"cron {told}"
