"""A trigger that asks for state until an answer satisfies; it consumes nothing and survives server restarts."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.hooks.base import StreamHook, hook_for
from airflow_provider_streams.model.readiness import Readiness
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.retry import error_event
from airflow_provider_streams.systems.backoff import Backoff
from airflow_provider_streams.systems.sources import source_from_json

LONGEST_BACKOFF_SECONDS = 120.0


class StateTrigger(BaseTrigger):
    """Polls until satisfied, then fires one event: `{"status": "success", **facts}`, or an error's.

    A passing failure (a broker restarting) is waited out with growing, jittered pauses; the sensor's timeout bounds
    the wait. Any other error of this package becomes an event, so that the task can raise it with its type.

    Args:
        poll_interval: seconds between two polls.
    """

    def __init__(self, poll_interval: float = 60.0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow's is not annotated
        self.poll_interval = poll_interval

    @abstractmethod
    async def ask(self) -> Readiness:
        """Poll once.

        Raises:
            StreamsError: a retryable one is waited out.
        """

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Poll until satisfied or failed; fires once."""
        failures, last = 0, ""
        while True:
            try:
                answer = await self.ask()
            except StreamsError as error:
                if not error.retryable:
                    yield _event(error_event(error))
                    return
                failures += 1
                self.log.warning("Asking again in a while: %s", error)
                await asyncio.sleep(backoff_seconds(failures, self.poll_interval))
                continue
            failures = 0
            if answer.ready:
                yield _event({"status": "success", **answer.facts})
                return
            if answer.because != last:
                self.log.info("Waiting: %s", answer.because)
                last = answer.because
            await asyncio.sleep(pause_seconds(answer, self.poll_interval, datetime.now(UTC)))


class SourceTrigger(StateTrigger):
    """Asks about a source, through one hook for all polls.

    Args:
        source: as `systems.sources.source_to_json` gives it.
        poll_interval: seconds between two polls.
    """

    def __init__(self, source: dict[str, Any], poll_interval: float = 60.0) -> None:
        super().__init__(poll_interval)
        self.source = source
        self._hook: StreamHook | None = None

    @abstractmethod
    def arguments(self) -> dict[str, Any]:
        """What it asks, as plain JSON values: its other arguments by name."""

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class path and arguments; no secret."""
        kind = type(self)
        arguments = {"source": self.source, **self.arguments(), "poll_interval": self.poll_interval}
        return f"{kind.__module__}.{kind.__qualname__}", arguments

    def read_source(self) -> Source:
        """The source itself."""
        return source_from_json(self.source)

    def hook(self) -> StreamHook:
        """The hook of its connection, the same one until the trigger ends."""
        self._hook = self._hook or hook_for(self.read_source())
        return self._hook

    async def cleanup(self) -> None:
        """Close local connections; there is nothing to undo at the server."""
        if self._hook is not None:
            await self._hook.aclose()


def _event(payload: dict[str, Any]) -> TriggerEvent:
    return TriggerEvent(payload)  # type: ignore[no-untyped-call]  # Airflow's is not annotated


def pause_seconds(answer: Readiness, poll_interval: float, now: datetime) -> float:
    """The time to the next poll: at least the interval, and not before asking can help."""
    if answer.not_before is None:
        return poll_interval
    until = (answer.not_before - now).total_seconds()
    return max(until, min(poll_interval, 1.0)) if until > 0 else poll_interval


def backoff_seconds(failures: int, poll_interval: float) -> float:
    """Doubles with each failure in a row up to two minutes; jitter keeps many triggers from asking in step."""
    longest = max(LONGEST_BACKOFF_SECONDS, poll_interval)
    return Backoff(first_seconds=poll_interval, longest_seconds=longest).seconds(failures - 1)
