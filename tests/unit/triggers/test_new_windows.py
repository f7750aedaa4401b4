from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.errors import InvalidRequest, InvalidWindow
from airflow_provider_streams.journal.landings import NewLanding
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.plan.receipt import compare
from airflow_provider_streams.model.sinks.landing import Landed, Landing
from airflow_provider_streams.model.window.basis import Cuts, PublishTime
from airflow_provider_streams.model.window.partition_key import KeyRule
from airflow_provider_streams.model.window.readiness import Readiness
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.testing.plans import plan_of
from airflow_provider_streams.triggers.new_windows import MOST_WINDOWS, NewWindowsTrigger

HOUR = timedelta(hours=1)
TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)
SOURCE = PulsarSource("orders")
READER = "d.read"
TASK = TaskInstanceKey("d", "r", "read", 1)


def test_windows_of_one_length_begin_at_the_offset():
    window_schedule = NewWindowsTrigger(SOURCE, HOUR, offset=timedelta(minutes=15)).window_schedule
    assert window_schedule.before(TEN) == TEN - timedelta(minutes=45)
    assert window_schedule.before(TEN + timedelta(minutes=15)) == TEN + timedelta(minutes=15)


def test_windows_of_the_calendar_have_no_offset():
    assert NewWindowsTrigger(SOURCE, "1d Europe/Berlin").window_schedule.before(TEN) == datetime(
        2026, 11, 19, 23, tzinfo=UTC
    )
    with pytest.raises(InvalidWindow, match="offset"):
        NewWindowsTrigger(SOURCE, "1d", offset=HOUR)


def test_it_survives_serialization():
    trigger = NewWindowsTrigger(PulsarSource("orders"), HOUR, reader="d.read", basis=PublishTime(timedelta(seconds=5)))
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
        self.asked += 1
        return Readiness(question.window.end <= self.until)

    async def aobserve_tail(self, source):
        assert source == SOURCE


@pytest.fixture
def journal(tmp_path, monkeypatch) -> Iterator[Journal]:
    """The one that Airflow's connection leads to."""
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    monkeypatch.setenv("AIRFLOW_CONN_STREAMS_JOURNAL", url)
    with Journal.open(url) as opened:
        yield opened


def hour(number: int) -> Window:
    """The n-th hour after ten."""
    return Window(TEN + number * HOUR, TEN + (number + 1) * HOUR)


def cover(journal: Journal, number: int) -> None:
    plan = journal.pin(SOURCE.key, plan_of([], reader=READER, window=hour(number)))
    run = journal.start_run(SOURCE.key, plan, TASK).run
    journal.finish_run(run, Landed(compare(plan, [], seconds=0)))


def fail(journal: Journal, number: int, *, lost: bool = False) -> None:
    journal.fail_window(SOURCE.key, READER, hour(number), TASK, error_type="ReadStalled", message="silent", lost=lost)


def watching(until: datetime) -> tuple[NewWindowsTrigger, Ready]:
    trigger = NewWindowsTrigger(SOURCE, HOUR, reader=READER)
    trigger._hook = hook = Ready(until)
    return trigger, hook


class Clock(datetime):
    """What the trigger takes for the time; set `at`."""

    at: datetime

    @classmethod
    def now(cls, tz=None):
        return cls.at.astimezone(tz)


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr("airflow_provider_streams.triggers.new_windows.datetime", Clock)

    def at(hours: float) -> None:
        Clock.at = TEN + hours * HOUR

    return at


def named(news) -> list[int]:
    """Which hours after ten an event names."""
    if news is None:
        return []
    windows = [Window.from_json(one) for one in news.payload["windows"]]
    return [int((window.start - TEN) / HOUR) for window in windows]


async def test_all_complete_windows_that_are_not_covered_are_named(journal, clock):
    fail(journal, 0)
    clock(3.2)
    trigger, _ = watching(TEN + 3 * HOUR)
    news = await trigger.poll()
    assert news.payload["partition_keys"] == ["2026-11-20T10:00:00", "2026-11-20T11:00:00", "2026-11-20T12:00:00"]
    assert (news.payload["partition_key"], news.payload["more"]) == ("2026-11-20T12:00:00", False)
    assert news.again


async def test_windows_have_the_keys_of_the_dag_that_reads_them(journal, clock):
    new = NewLanding(Landing(None).to_json(), "1h", "publish")
    journal.land_as(SOURCE.key, READER, new, after=None)
    cover(journal, 0)
    journal.note_key_rule(SOURCE.key, READER, KeyRule("%d.%H", "Europe/Berlin"))
    clock(3.2)
    news = await watching(TEN + 3 * HOUR)[0].poll()
    assert news.payload["partition_keys"] == ["20.11", "20.12", "20.13"]
    assert news.payload["partition_key"] == "20.13"


async def test_a_window_that_is_not_complete_waits_and_the_one_before_it_does_not(journal, clock):
    clock(3.2)
    trigger, hook = watching(TEN + 2 * HOUR)
    news = await trigger.poll()
    assert named(news) == [1]
    assert news.payload["window"] == hour(1).to_json()
    assert hook.asked == 2


async def test_a_complete_window_is_asked_about_once(journal, clock):
    clock(3.2)
    trigger, hook = watching(TEN + 3 * HOUR)
    for _ in range(5):
        await trigger.poll()
    assert hook.asked == 1


async def test_covered_windows_are_no_news(journal, clock):
    for number in range(3):
        cover(journal, number)
    clock(3.2)
    assert await watching(TEN + 3 * HOUR)[0].poll() is None
    clock(4.2)
    assert named(await watching(TEN + 4 * HOUR)[0].poll()) == [3]


async def test_a_reader_that_never_ran_is_told_of_every_window_since_it_was_first_watched_for(journal, clock):
    clock(3.2)
    assert named(await watching(TEN + 3 * HOUR)[0].poll()) == [2]
    clock(9.2)
    assert named(await watching(TEN + 9 * HOUR)[0].poll()) == [2, 3, 4, 5, 6, 7, 8], "another triggerer goes on"


async def test_a_lost_window_keeps_no_other_from_being_named(journal, clock):
    fail(journal, 0, lost=True)
    clock(3.2)
    trigger, _ = watching(TEN + 3 * HOUR)
    assert named(await trigger.poll()) == [1, 2]
    cover(journal, 1)
    assert named(await trigger.poll()) == [2]


async def test_windows_that_fail_again_and_again_keep_no_other_from_being_named(journal, clock):
    for number in range(MOST_WINDOWS):
        fail(journal, number)
    clock(MOST_WINDOWS + 5.2)
    trigger, _ = watching(TEN + (MOST_WINDOWS + 5) * HOUR)
    news = await trigger.poll()
    assert len(named(news)) == MOST_WINDOWS
    assert named(news)[-5:] == [MOST_WINDOWS + number for number in range(5)]
    assert news.payload["more"]
    for number in named(news):
        fail(journal, number)
    assert set(range(MOST_WINDOWS - 5, MOST_WINDOWS)) < set(named(await trigger.poll())), "those that waited come next"


async def test_without_a_reader_the_newest_window_is_named_once(clock):
    clock(3.2)
    trigger = NewWindowsTrigger(SOURCE, HOUR)
    trigger._hook = Ready(TEN + 3 * HOUR)
    news = await trigger.poll()
    assert (named(news), news.again) == ([2], False)
