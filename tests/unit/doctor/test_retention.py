"""What a stream keeps, compared with a schedule and an outage."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.doctor.finding import Notes
from airflow_provider_streams.doctor.retention import check_retention, judge_holding, judgements, longest
from airflow_provider_streams.doctor.setup import Setup
from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.model.stream.retention import Holding, Rules
from airflow_provider_streams.model.window.window_schedule import schedule_of
from airflow_provider_streams.testing.fake import FakeSource

NOW = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def judged(rules, schedule="1h", since=None, **more):
    notes = Notes("retention")
    setup = Setup("fake", "fake_default", window_schedule=schedule_of(schedule))
    judge_holding(notes, Holding(rules, **more), judgements(setup, NOW), NOW, since)
    return {one.check: one for one in notes.findings}


def levels(found):
    return {check: one.level for check, one in found.items()}


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (Rules(), {"schedule": "ok", "outage": "ok"}),
        (Rules(retention=timedelta(0)), {"schedule": "error", "outage": "warning"}),
        (Rules(retention=HOUR), {"schedule": "error", "outage": "warning"}),
        (Rules(retention=3 * DAY), {"schedule": "ok", "outage": "warning"}),
        (Rules(retention=8 * DAY), {"schedule": "ok", "outage": "ok"}),
        (Rules(retention=timedelta(0), is_held=True), {"schedule": "ok", "outage": "ok"}),
        (Rules(retention=timedelta(0), is_held=True, expiry=DAY), {"schedule": "ok", "outage": "warning"}),
        (None, {"schedule": "warning"}),
    ],
)
def test_what_goes_before_its_window_is_read_is_an_error_and_in_an_outage_a_warning(rules, expected):
    assert levels(judged(rules)) == expected


def test_an_error_says_for_how_long_events_must_be_kept():
    one = judged(Rules(retention=timedelta(0)))["schedule"]
    assert "before their window is read" in one.says
    assert "more than 2h" in one.next_step
    assert "HoldRetentionOperator" in one.next_step


def test_windows_of_a_day_need_more_than_windows_of_an_hour():
    assert levels(judged(Rules(retention=DAY), "1d"))["schedule"] == "error"
    assert levels(judged(Rules(retention=DAY), "1h"))["schedule"] == "ok"


def test_the_longest_of_the_next_windows_counts():
    assert longest(schedule_of("0 0 1 * *"), NOW) == 31 * DAY
    assert longest(schedule_of("0 8,20 * * *"), NOW) == 12 * HOUR


def test_a_window_that_waits_already_is_counted():
    rules = Rules(retention=3 * DAY)
    assert levels(judged(rules, since=NOW - 2 * DAY))["schedule"] == "ok"
    assert levels(judged(rules, since=NOW - 4 * DAY))["schedule"] == "error"


def test_a_journal_that_cannot_be_read_is_no_finding_about_the_stream(tmp_path, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_FAKE_DEFAULT", '{"conn_type": "fake"}')
    monkeypatch.setenv("AIRFLOW_CONN_STREAMS_JOURNAL", f"sqlite:///{tmp_path}/missing/journal.db")
    source = FakeSource("numbers")
    (found,) = check_retention(Setup("fake", "fake_default", source), hook_for(source))
    assert found.level == "skipped"
    assert "see the journal" in found.says
