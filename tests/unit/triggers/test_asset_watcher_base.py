from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from airflow_provider_streams.errors import NotAuthorized, SystemUnavailable
from airflow_provider_streams.triggers import asset_watcher_base
from airflow_provider_streams.triggers.asset_watcher_base import Announcer, News, WatchTrigger


def news(state: object, *, again: bool = False) -> News:
    return News(state, {"state": state}, again)


def test_the_first_news_are_announced_at_once():
    assert Announcer().wait(news(1), 100.0) == 0.0


def test_news_of_a_burst_wait_and_become_one():
    announcer = Announcer(quiet_seconds=5.0)
    announcer.announced(news(1), 100.0)
    assert announcer.wait(news(2), 101.0) == 4.0
    assert announcer.wait(news(3), 105.0) == 0.0


def test_the_same_news_come_again_only_while_the_consumer_has_not_moved():
    announcer = Announcer(repeat_seconds=60.0)
    announcer.announced(news(1), 100.0)
    assert announcer.wait(news(1), 10_000.0) is None
    assert announcer.wait(news(1, again=True), 110.0) == 50.0
    assert announcer.wait(news(1, again=True), 160.0) == 0.0


class Watch(WatchTrigger):
    """Looks at a list of what there is, one after the other; sleeping passes time."""

    def __init__(self, looks: list[Any], monkeypatch: pytest.MonkeyPatch, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.looks, self.now, self.slept = looks, 0.0, []
        self._clock = lambda: self.now
        real = asyncio.sleep

        async def sleep(seconds: float) -> None:
            self.slept.append(seconds)
            self.now += seconds
            await real(0)

        monkeypatch.setattr(asset_watcher_base.asyncio, "sleep", sleep)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return ("", {})

    async def poll(self) -> News | None:
        if not self.looks:
            raise asyncio.CancelledError
        found = self.looks.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


async def fired(trigger: Watch) -> list[tuple[float, Any]]:
    """When what was announced, until there is nothing more to look at."""
    events = []
    try:
        async for event in trigger.run():
            events.append((trigger.now, event.payload["state"]))  # noqa: PERF401 - keeps those before the end
    except asyncio.CancelledError:
        return events
    raise AssertionError("a watcher's trigger must not end")


async def test_it_never_ends_and_says_each_thing_once(monkeypatch):
    watch = Watch([None, news(1), news(1), None, news(2)], monkeypatch, poll_interval=10.0)
    assert await fired(watch) == [(10.0, 1), (40.0, 2)]


async def test_a_fast_watcher_still_leaves_five_seconds_between_two_events(monkeypatch):
    watch = Watch([news(n) for n in range(100)], monkeypatch, poll_interval=0.5)
    times = [when for when, _ in await fired(watch)]
    assert len(times) == 10
    assert all(later - earlier >= 5.0 for earlier, later in itertools.pairwise(times))


async def test_what_is_not_consumed_is_announced_again(monkeypatch):
    watch = Watch([news(1, again=True)] * 31, monkeypatch, poll_interval=10.0, repeat_seconds=100.0)
    assert await fired(watch) == [(0.0, 1), (100.0, 1), (200.0, 1), (300.0, 1)]


@pytest.mark.parametrize(
    "failure", [SystemUnavailable("broker", "restarting"), NotAuthorized("broker", "look"), RuntimeError("token-5d2c")]
)
async def test_no_failure_ends_it_and_pauses_grow(monkeypatch, failure, caplog):
    watch = Watch([*[failure] * 6, news(1)], monkeypatch, poll_interval=1.0)
    assert [state for _, state in await fired(watch)] == [1]
    pauses = watch.slept[:6]
    assert pauses[-1] > 4 * pauses[0]
    assert max(pauses) <= 120.0
    assert "token-5d2c" not in caplog.text
