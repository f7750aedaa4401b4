"""Fires when a source's events may go before their window is read."""

from __future__ import annotations

from typing import Any

from airflow_provider_streams.airflow_runtime.retention import acheck_retention, check_retention
from airflow_provider_streams.model.window.readiness import Readiness
from airflow_provider_streams.triggers.base import SourceTrigger
from airflow_provider_streams.windows.after_landing.retention import RetentionQuestion, risk_found


class RetentionRiskTrigger(SourceTrigger):
    """Fires when there is too little room between a schedule and the source's retention.

    Args:
        source: as `systems.source_json.source_to_json` gives it.
        question: as `RetentionQuestion.to_json` gives it.
        poll_interval: seconds between two polls.
    """

    stored = ("source", "question", "poll_interval")

    def __init__(self, source: dict[str, Any], question: dict[str, Any], poll_interval: float = 60.0) -> None:
        super().__init__(source, poll_interval)
        self.question = question

    async def ask(self) -> Readiness:
        """One poll."""
        return risk_found(*await acheck_retention(self._question(), self.hook()))

    def ask_blocking(self) -> Readiness:
        """As `ask`, in a worker."""
        return risk_found(*check_retention(self._question()))

    def _question(self) -> RetentionQuestion:
        return RetentionQuestion.from_json(self.read_source(), self.question)
