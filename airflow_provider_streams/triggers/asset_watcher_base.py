"""Triggers for asset watchers: they poll state for ever, and announce news rarely, and again until it is handled."""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.triggers.base import backoff_seconds

QUIET_SECONDS = 5.0
"""The least time between two events: of two that land close together, Airflow may start a run for the first alone."""
REPEAT_SECONDS = 300.0
"""How often the same news is announced while its consumer has not moved."""


@dataclass(frozen=True, slots=True)
class News:
    """Something a consumer should know."""

    state: Hashable
    """What it is about: news of the same state are the same news."""
    payload: dict[str, Any]
    """Plain JSON values; no secret."""
    again: bool = False
    """Still true until the consumer moves: to be announced again."""


@dataclass(slots=True)
class Announcer:
    """Decides when news become an event; times in seconds of one clock."""

    repeat_seconds: float = REPEAT_SECONDS
    quiet_seconds: float = QUIET_SECONDS
    _announced: Hashable = field(default=None, init=False)
    _at: float | None = field(default=None, init=False)

    def wait(self, news: News, now: float) -> float | None:
        """Seconds until these news are to be announced, 0: now; None: they have been, for good."""
        if self._at is None:
            return 0.0
        if news.state != self._announced:
            return max(0.0, self._at + self.quiet_seconds - now)
        return max(0.0, self._at + self.repeat_seconds - now) if news.again else None

    def announced(self, news: News, now: float) -> None:
        """They have become an event."""
        self._announced, self._at = news.state, now


class WatchTrigger(BaseEventTrigger):
    """Looks at state and fires an event for what is new; never ends by itself.

    It is level-triggered: an event says how things are, not what changed, so a lost or doubled event does no harm. A
    burst of news becomes one event, which is announced again while its consumer has not moved. After a failure it polls
    again with growing, jittered pauses.

    Args:
        poll_interval: seconds between two looks.
        repeat_seconds: how often the same news is announced while its consumer has not moved.
    """

    def __init__(self, poll_interval: float = 60.0, repeat_seconds: float = REPEAT_SECONDS) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow's is not annotated
        self.poll_interval, self.repeat_seconds = poll_interval, repeat_seconds
        self._quiet_seconds = QUIET_SECONDS
        self._clock: Callable[[], float] = time.monotonic

    @abstractmethod
    async def poll(self) -> News | None:
        """What there is to know now; None: nothing.

        Raises:
            StreamsError: looked at again later.
        """

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look and announce, for ever."""
        announcer = Announcer(self.repeat_seconds, self._quiet_seconds)
        failures, last_failure = 0, ""
        while True:
            try:
                news = await self.poll()
            except Exception as error:  # noqa: BLE001 - if it ended, Airflow would start it again at once, for ever
                failures += 1
                last_failure = self._tell(error, last_failure)
                await asyncio.sleep(backoff_seconds(failures, self.poll_interval))
                continue
            failures, last_failure = 0, ""
            wait = None if news is None else announcer.wait(news, self._clock())
            if news is not None and wait == 0.0:
                announcer.announced(news, self._clock())
                yield TriggerEvent(news.payload)  # type: ignore[no-untyped-call]  # Airflow's is not annotated
                wait = None
            await asyncio.sleep(self.poll_interval if wait is None else min(wait, self.poll_interval))

    def _tell(self, error: Exception, last: str) -> str:
        """Logs a failure when it begins, not at every look; a foreign one may quote anything, so only its class."""
        text = str(error) if isinstance(error, StreamsError) else type(error).__name__
        if text != last:
            self.log.warning("Looking again in a while: %s", text)
        return text
