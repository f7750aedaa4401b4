"""Fires when a source's events may go before their window is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_streams.hooks.base import StreamHook, hook_for
from airflow_provider_streams.hooks.retention import RetentionQuestion, acheck_retention, verdict_facts
from airflow_provider_streams.systems.sources import source_from_json
from airflow_provider_streams.triggers.state import Answer, StateTrigger

if TYPE_CHECKING:
    from airflow_provider_streams.model.retention import Holding, Verdict


class RetentionRiskTrigger(StateTrigger):
    """Fires when there is too little room between a schedule and the source's retention.

    Args:
        source: as `hooks.base.source_to_json` gives it.
        question: as `RetentionQuestion.to_json` gives it.
        poll_interval: seconds between two polls.
    """

    def __init__(self, source: dict[str, Any], question: dict[str, Any], poll_interval: float = 60.0) -> None:
        super().__init__(poll_interval)
        self.source, self.question = source, question
        self._hook: StreamHook | None = None

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class path and arguments; no secret."""
        return (
            "airflow_provider_streams.triggers.retention.RetentionRiskTrigger",
            {"source": self.source, "question": self.question, "poll_interval": self.poll_interval},
        )

    async def ask(self) -> Answer:
        """One poll."""
        source = source_from_json(self.source)
        self._hook = self._hook or hook_for(source)
        return verdict_answer(*await acheck_retention(RetentionQuestion.from_json(source, self.question), self._hook))

    async def cleanup(self) -> None:
        """Close local connections; there is nothing to undo at the server."""
        if self._hook is not None:
            await self._hook.aclose()


def verdict_answer(verdict: Verdict, holding: Holding) -> Answer:
    """What a sensor makes of a verdict: it waits for trouble."""
    return Answer(verdict.is_risk, verdict_facts(verdict, holding), str(verdict))
