"""A trigger that asks for state until an answer satisfies; it consumes nothing and survives server restarts."""

from __future__ import annotations

import asyncio
import json
from abc import abstractmethod
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, ClassVar

from airflow.triggers.base import BaseEventTrigger, BaseTrigger, TriggerEvent

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.hooks.base import StreamHook, hook_for
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.readiness import Readiness
from airflow_provider_streams.retry import error_event
from airflow_provider_streams.systems.connection.backoff import Backoff
from airflow_provider_streams.systems.source_json import source_from_json, source_to_json

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


class StoredTrigger:
    """A trigger that Airflow stores by its class path and arguments."""

    stored: ClassVar[tuple[str, ...]]
    """Names of its arguments, which are also its attributes."""

    def arguments(self) -> dict[str, Any]:
        """Its arguments by name, as plain JSON values; no secret."""
        values = {name: getattr(self, name) for name in self.stored}
        return {name: source_to_json(one) if isinstance(one, Source) else one for name, one in values.items()}

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class path and arguments; no secret.

        A watcher's dictionaries are texts: Airflow 3.2 does not give them back to the trigger as they were.
        """
        kind, arguments = type(self), self.arguments()
        if isinstance(self, BaseEventTrigger):
            arguments = {name: _text(value) if isinstance(value, dict) else value for name, value in arguments.items()}
        return f"{kind.__module__}.{kind.__qualname__}", arguments


def _text(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=True)


def stored_value(given: Any) -> Any:
    """An argument as it was before `StoredTrigger.serialize`."""
    return json.loads(given) if isinstance(given, str) and given.startswith("{") else given


class HookedTrigger(StoredTrigger):
    """A trigger that asks about one source, through one hook until it ends."""

    _hook: StreamHook | None = None

    @abstractmethod
    def read_source(self) -> Source:
        """The source itself."""

    def hook(self) -> StreamHook:
        """The hook of the source's connection."""
        self._hook = self._hook or hook_for(self.read_source())
        return self._hook

    async def cleanup(self) -> None:
        """Close local connections; there is nothing to undo at the server."""
        if self._hook is not None:
            await self._hook.aclose()


class QuestionTrigger(StateTrigger):
    """One question: asked on an event loop by the triggerer, and blocking by the sensor in a worker."""

    @abstractmethod
    def ask_blocking(self) -> Readiness:
        """As `ask`, in a worker."""


class SourceTrigger(HookedTrigger, QuestionTrigger):
    """One question about a source.

    Args:
        source: as `systems.source_json.source_to_json` gives it.
        poll_interval: seconds between two polls.
    """

    def __init__(self, source: dict[str, Any], poll_interval: float = 60.0) -> None:
        super().__init__(poll_interval)
        self.source = source

    def read_source(self) -> Source:
        """As `HookedTrigger`."""
        return source_from_json(self.source)


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
