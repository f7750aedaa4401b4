"""Fires when a window's end is certain."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow_provider_streams.hooks.base import StreamHook, hook_for, source_from_json
from airflow_provider_streams.hooks.readiness import Readiness, WindowQuestion
from airflow_provider_streams.triggers.state import Answer, StateTrigger


class WindowReadyTrigger(StateTrigger):
    """Fires when a window can be read; until its end has passed by the slack, nothing is asked at all.

    Args:
        source: as `hooks.base.source_to_json` gives it.
        question: as `WindowQuestion.to_json` gives it.
        poll_interval: seconds between two polls.
    """

    def __init__(self, source: dict[str, Any], question: dict[str, Any], poll_interval: float = 60.0) -> None:
        super().__init__(poll_interval)
        self.source, self.question = source, question
        self._hook: StreamHook | None = None

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class path and arguments; no secret."""
        return (
            "airflow_provider_streams.triggers.window.WindowReadyTrigger",
            {"source": self.source, "question": self.question, "poll_interval": self.poll_interval},
        )

    async def ask(self) -> Answer:
        """One poll."""
        source = source_from_json(self.source)
        question = WindowQuestion.from_json(source, self.question)
        if waiting := question.wait(datetime.now(UTC)):
            return window_answer(question, waiting)
        self._hook = self._hook or hook_for(source)
        return window_answer(question, await self._hook.areadiness(question))

    async def cleanup(self) -> None:
        """Close local connections; there is nothing to undo at the server."""
        if self._hook is not None:
            await self._hook.aclose()


def window_answer(question: WindowQuestion, readiness: Readiness) -> Answer:
    """What a sensor makes of a system's answer about a window."""
    return Answer(
        satisfied=readiness.ready,
        facts={"window": question.window.to_json()},
        reason=f"window {question.window} of {question.source}: {readiness.reason}",
        not_before=question.not_before,
    )
