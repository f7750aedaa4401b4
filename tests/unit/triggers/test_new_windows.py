from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.basis import Cuts
from airflow_provider_streams.model.source import PulsarSource
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.triggers.new_windows import MOST_WINDOWS, Grid, NewWindowsTrigger

HOUR = timedelta(hours=1)
TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)


def test_windows_lie_on_a_grid():
    assert Grid(HOUR).before(TEN + timedelta(minutes=59)) == TEN
    assert Grid(HOUR).before(TEN) == TEN
    quarter = Grid(HOUR, timedelta(minutes=15))
    assert quarter.before(TEN) == TEN - timedelta(minutes=45)


def test_only_whole_windows_between_two_times_count():
    grid = Grid(HOUR)
    assert grid.windows(TEN, TEN + 2 * HOUR) == [Window(TEN, TEN + HOUR), Window(TEN + HOUR, TEN + 2 * HOUR)]
    assert grid.windows(TEN - timedelta(minutes=5), TEN + 1.5 * HOUR) == [Window(TEN, TEN + HOUR)]
    assert grid.windows(TEN, TEN) == []
    assert len(grid.windows(TEN, TEN + 500 * HOUR)) == MOST_WINDOWS


def test_it_survives_serialization():
    trigger = NewWindowsTrigger(PulsarSource("orders"), HOUR, reader="d.read", slack=timedelta(seconds=5))
    path, arguments = trigger.serialize()
    assert path == f"{NewWindowsTrigger.__module__}.{NewWindowsTrigger.__qualname__}"
    assert NewWindowsTrigger(**arguments).serialize() == (path, arguments)


def test_a_users_cuts_and_empty_windows_are_refused():
    with pytest.raises(InvalidRequest):
        NewWindowsTrigger(PulsarSource("orders"), HOUR, basis=Cuts("earliest", "latest"))
    with pytest.raises(InvalidRequest):
        NewWindowsTrigger(PulsarSource("orders"), timedelta(0))


class Ready:
    """A hook for which everything up to a time is complete; counts its questions."""

    def __init__(self, until: datetime) -> None:
        self.until, self.asked = until, 0

    async def areadiness(self, question):
        from airflow_provider_streams.windows.readiness import Readiness

        self.asked += 1
        return Readiness(question.window.end <= self.until)


def watching(until: datetime, covered: datetime | None, monkeypatch) -> tuple[NewWindowsTrigger, Ready]:
    trigger = NewWindowsTrigger(PulsarSource("orders"), HOUR, reader="d.read")
    trigger._hook = hook = Ready(until)

    async def covered_until(_):
        return covered

    monkeypatch.setattr(NewWindowsTrigger, "_covered_until", covered_until)
    return trigger, hook


async def news_at(trigger: NewWindowsTrigger, now: datetime, since: datetime | None):
    until = await trigger._ready_until(now)
    return None if until is None else trigger._news(until - HOUR if since is None else since, until)


async def test_all_complete_windows_that_are_not_covered_are_named(monkeypatch):
    trigger, _ = watching(TEN + 3 * HOUR, TEN, monkeypatch)
    news = await news_at(trigger, TEN + 3.2 * HOUR, TEN)
    assert news.payload["partition_keys"] == ["2026-11-20T10:00:00", "2026-11-20T11:00:00", "2026-11-20T12:00:00"]
    assert (news.payload["partition_key"], news.payload["more"]) == ("2026-11-20T12:00:00", False)
    assert news.again


async def test_a_window_that_is_not_complete_waits_and_the_one_before_it_does_not(monkeypatch):
    trigger, hook = watching(TEN + 2 * HOUR, None, monkeypatch)
    news = await news_at(trigger, TEN + 3.2 * HOUR, None)
    assert news.payload["window"] == Window(TEN + HOUR, TEN + 2 * HOUR).to_json()
    assert hook.asked == 2


async def test_a_complete_window_is_asked_about_once(monkeypatch):
    trigger, hook = watching(TEN + 3 * HOUR, None, monkeypatch)
    for _ in range(5):
        await news_at(trigger, TEN + 3.2 * HOUR, None)
    assert hook.asked == 1


async def test_covered_windows_are_no_news(monkeypatch):
    trigger, _ = watching(TEN + 3 * HOUR, None, monkeypatch)
    assert await news_at(trigger, TEN + 3.2 * HOUR, TEN + 3 * HOUR) is None


async def test_the_journal_tells_what_is_covered(monkeypatch, tmp_path):
    monkeypatch.setenv("AIRFLOW_CONN_STREAMS_JOURNAL", f"sqlite:///{tmp_path / 'journal.db'}")
    trigger = NewWindowsTrigger(PulsarSource("orders"), HOUR, reader="d.read")
    assert await trigger._covered_until() is None
