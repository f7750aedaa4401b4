"""Fires when a source has come so far: a few small requests per poll; nothing is consumed or changed."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.model.window.readiness import Readiness
from airflow_provider_streams.systems.conditions import condition_from_json
from airflow_provider_streams.triggers.base import SourceTrigger


class ConditionTrigger(SourceTrigger):
    """Fires when a condition on a source is met.

    Args:
        source: as `systems.source_json.source_to_json` gives it.
        condition: as `systems.conditions.condition_to_json` gives it.
        poll_interval: seconds between two polls.
    """

    stored = ("source", "condition", "poll_interval")

    def __init__(self, source: dict[str, Any], condition: dict[str, Any], poll_interval: float = 60.0) -> None:
        super().__init__(source, poll_interval)
        self.condition = condition
        self._condition = condition_from_json(source["system"], condition)

    async def ask(self) -> Readiness:
        """One poll."""
        return await self.hook().acheck(self.read_source(), self._condition)

    def ask_blocking(self) -> Readiness:
        """As `ask`, in a worker."""
        with closing(hook_for(self.read_source())) as hook:
            return hook.check(self.read_source(), self._condition)
