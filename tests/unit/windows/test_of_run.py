from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from airflow_provider_streams import Window
from airflow_provider_streams.errors import InvalidWindow
from airflow_provider_streams.windows.of_run import RunFacts, resolve_window

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


def test_windows_are_in_utc_whatever_the_runs_time_zone():
    tokyo = timezone(timedelta(hours=9))
    assert resolve_window(None, HOUR, RunFacts(TEN.astimezone(tokyo))).window == WINDOW


@pytest.mark.parametrize(
    ("facts", "length", "fix"),
    [
        (RunFacts(), None, "window='start/end'"),
        (RunFacts(TEN), None, "window_length"),
        (RunFacts(TEN), timedelta(0), "positive"),
        (RunFacts(None, TEN, TEN), HOUR, "CronPartitionTimetable"),
    ],
)
def test_a_run_without_a_window_is_told_what_to_change(facts, length, fix):
    with pytest.raises(InvalidWindow, match=fix):
        resolve_window(None, length, facts)


def test_a_text_that_is_no_window_is_refused():
    with pytest.raises(InvalidWindow, match="start/end"):
        resolve_window("yesterday", None, EVERYTHING)


def test_facts_come_from_the_context_where_partitioned_runs_have_no_interval():
    assert RunFacts.of({"partition_date": TEN, "logical_date": None}) == RunFacts(TEN)
