"""Fires when a source has come so far: a few small requests per poll; nothing is consumed or changed."""

from __future__ import annotations

from typing import Any

from airflow_provider_streams.model.readiness import Readiness
from airflow_provider_streams.systems.conditions import condition_from_json
from airflow_provider_streams.triggers.state import SourceTrigger


class ConditionTrigger(SourceTrigger):
    """Fires when a condition on a source is met.

    Args:
        source: as `systems.sources.source_to_json` gives it.
        condition: as `systems.conditions.condition_to_json` gives it.
        poll_interval: seconds between two polls.
    """

    def __init__(self, source: dict[str, Any], condition: dict[str, Any], poll_interval: float = 60.0) -> None:
        super().__init__(source, poll_interval)
        self.condition = condition
        self._condition = condition_from_json(source["system"], condition)

    def arguments(self) -> dict[str, Any]:
        """See `SourceTrigger`."""
        return {"condition": self.condition}

    async def ask(self) -> Readiness:
        """One poll."""
        return await self.hook().acheck(self.read_source(), self._condition)
