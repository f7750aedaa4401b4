from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from airflow_provider_streams import Window
from airflow_provider_streams.errors import InvalidWindow
from airflow_provider_streams.model.window.window_schedule import parse_schedule
from airflow_provider_streams.windows.plan.airflow_run_window import RunFacts, resolve_window

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)
WINDOW = Window(TEN, TEN + HOUR)
EVERYTHING = RunFacts(TEN + HOUR, TEN + 2 * HOUR, TEN + 3 * HOUR)


def test_an_explicit_window_wins():
    resolved = resolve_window(WINDOW, HOUR, EVERYTHING)
    assert (resolved.window, resolved.rule) == (WINDOW, "window")


def test_its_text_is_as_good():
    assert resolve_window("2026-11-20T11:00+01:00/2026-11-20T11:00Z", None, RunFacts()).window == WINDOW


def test_the_partition_comes_before_the_data_interval():
    resolved = resolve_window(None, HOUR, EVERYTHING)
    assert (resolved.window, resolved.rule) == (Window(TEN + HOUR, TEN + 2 * HOUR), "partition")


def test_a_data_interval_comes_last():
    resolved = resolve_window(None, None, RunFacts(None, TEN, TEN + HOUR))
    assert (resolved.window, resolved.rule) == (WINDOW, "data_interval")


@pytest.mark.parametrize(("minutes", "end"), [(0, 0), (1, 0), (59, 0), (60, 1)])
def test_a_run_by_hand_of_a_partitioned_dag_reads_the_last_full_window(minutes, end):
    moment = TEN + timedelta(minutes=minutes)
    resolved = resolve_window(
        None, None, RunFacts(None, moment, moment, parse_schedule("1h"), is_manual=True, is_partitioned=True)
    )
    assert resolved.window == Window(TEN + (end - 1) * HOUR, TEN + end * HOUR)
    assert (resolved.rule, resolved.window_schedule) == ("schedule", parse_schedule("1h"))


NOW = TEN + timedelta(days=8, minutes=20)


@pytest.mark.parametrize("is_partitioned", [True, False])
@pytest.mark.parametrize("inferred_from", ["logical date", "present"])
def test_a_run_by_hand_for_a_date_reads_the_window_before_that_date(is_partitioned, inferred_from):
    """`airflow dags trigger -l` infers the data interval from the present moment, the API from the logical date."""
    hours, date = parse_schedule("1h"), TEN + HOUR + timedelta(minutes=5)
    moment = date if inferred_from == "logical date" else NOW
    interval = Window(hours.before(moment) - HOUR, hours.before(moment))
    start, end = (moment, moment) if is_partitioned else (interval.start, interval.end)
    facts = RunFacts(
        None, start, end, hours, is_manual=True, is_partitioned=is_partitioned, logical_date=date, run_after=NOW
    )
    assert resolve_window(None, None, facts).window == WINDOW


def test_a_run_by_hand_keeps_the_data_interval_that_it_was_given():
    given = RunFacts(
        None, TEN, TEN + HOUR, parse_schedule("1h"), is_manual=True, logical_date=NOW - 48 * HOUR, run_after=NOW
    )
    assert resolve_window(None, None, given).window == WINDOW


def test_an_interval_before_the_present_moment_is_not_read_for_another_date():
    """Of a timetable that does not tell where its intervals are, such as one of a `timedelta`."""
    facts = RunFacts(None, NOW - HOUR, NOW, None, is_manual=True, logical_date=TEN, run_after=NOW)
    with pytest.raises(InvalidWindow, match="ends at the present moment"):
        resolve_window(None, None, facts)


def test_windows_are_in_utc_whatever_the_runs_time_zone():
    tokyo = timezone(timedelta(hours=9))
    assert resolve_window(None, HOUR, RunFacts(TEN.astimezone(tokyo))).window == WINDOW


@pytest.mark.parametrize(
    ("facts", "length", "fix"),
    [
        (RunFacts(), None, "window='start/end'"),
        (RunFacts(TEN), None, "window_length"),
        (RunFacts(TEN), timedelta(0), "positive"),
        (RunFacts(None, TEN, TEN), HOUR, "window_timetable"),
    ],
)
def test_a_run_without_a_window_is_told_what_to_change(facts, length, fix):
    with pytest.raises(InvalidWindow, match=fix):
        resolve_window(None, length, facts)


@pytest.mark.parametrize(
    ("facts", "fixes"),
    [
        ({"is_manual": True}, ("started by hand", "key of a window, like '20261120.10'", "logical date")),
        ({"is_manual": True, "partition_key": "eu"}, ("key 'eu' names no time", "like '20261120.10'")),
        ({"is_manual": False, "key_example": None}, ("chooses partitions while it runs", "window='start/end'")),
    ],
)
def test_a_partitioned_dag_without_a_partition_is_not_told_to_be_partitioned(facts, fixes):
    with pytest.raises(InvalidWindow) as refused:
        resolve_window(None, None, RunFacts(**{"is_partitioned": True, "key_example": "20261120.10", **facts}))
    assert all(fix in str(refused.value) for fix in fixes)
    assert "window_timetable" not in str(refused.value)


def test_a_text_that_is_no_window_is_refused():
    with pytest.raises(InvalidWindow, match="start/end"):
        resolve_window("yesterday", None, EVERYTHING)


BERLIN = parse_schedule("1d Europe/Berlin")
CHANGE = datetime(2026, 10, 24, 22, tzinfo=UTC)
"""Midnight in Berlin; that day has 25 hours."""


def test_a_partition_reaches_to_the_next_one_of_its_dag():
    resolved = resolve_window(None, None, RunFacts(CHANGE, window_schedule=BERLIN))
    assert resolved.window == Window(CHANGE, CHANGE + 25 * HOUR)
    assert (resolved.rule, resolved.window_schedule) == ("partition", BERLIN)
    assert resolve_window(None, "1d Europe/Berlin", RunFacts(CHANGE)) == resolved


def test_a_length_that_contradicts_the_dags_own_partitions_is_refused():
    with pytest.raises(InvalidWindow, match="Leave window_length out"):
        resolve_window(None, timedelta(days=1), RunFacts(CHANGE, window_schedule=BERLIN))
    before = CHANGE - 24 * HOUR
    assert resolve_window(None, timedelta(days=1), RunFacts(before, window_schedule=BERLIN)).window == Window(
        before, CHANGE
    )


def test_a_partition_that_is_none_of_its_dags_is_refused():
    with pytest.raises(InvalidWindow, match=r"none of its DAG's.*2026-10-24T22:00:00Z/2026-10-25T23:00:00Z"):
        resolve_window(None, None, RunFacts(CHANGE + HOUR, window_schedule=BERLIN))


def test_a_manual_runs_interval_must_be_one_of_its_dags():
    hours = parse_schedule("1h")
    off = RunFacts(None, TEN + HOUR / 2, TEN + 1.5 * HOUR, hours, is_manual=True)
    with pytest.raises(InvalidWindow, match="started by hand"):
        resolve_window(None, None, off)
    on = RunFacts(None, TEN, TEN + HOUR, hours, is_manual=True)
    assert resolve_window(None, None, on).window_schedule == hours


def test_the_interval_of_a_scheduled_run_is_its_window_whatever_the_schedule_is():
    """The first one of a DAG may be shorter; that one says nothing of the others."""
    first = RunFacts(None, TEN + HOUR / 2, TEN + HOUR, parse_schedule("1h"))
    resolved = resolve_window(None, None, first)
    assert (resolved.window, resolved.window_schedule) == (Window(TEN + HOUR / 2, TEN + HOUR), None)
