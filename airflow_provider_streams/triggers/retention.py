"""Fires when a source's events may go before their window is read."""

from __future__ import annotations

from typing import Any

from airflow_provider_streams.hooks.retention import acheck_retention
from airflow_provider_streams.model.readiness import Readiness
from airflow_provider_streams.triggers.state import SourceTrigger
from airflow_provider_streams.windows.retention import RetentionQuestion, risk_found


class RetentionRiskTrigger(SourceTrigger):
    """Fires when there is too little room between a schedule and the source's retention.

    Args:
        source: as `systems.sources.source_to_json` gives it.
        question: as `RetentionQuestion.to_json` gives it.
        poll_interval: seconds between two polls.
    """

    def __init__(self, source: dict[str, Any], question: dict[str, Any], poll_interval: float = 60.0) -> None:
        super().__init__(source, poll_interval)
        self.question = question

    def arguments(self) -> dict[str, Any]:
        """See `SourceTrigger`."""
        return {"question": self.question}

    async def ask(self) -> Readiness:
        """One poll."""
        question = RetentionQuestion.from_json(self.read_source(), self.question)
        return risk_found(*await acheck_retention(question, self.hook()))
