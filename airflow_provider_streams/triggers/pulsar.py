"""Fires when a subscription's backlog, or a topic, meets a condition."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.systems.pulsar.backlog import Backlog, BacklogLimit
from airflow_provider_streams.systems.pulsar.conditions import Finding, condition_from_json
from airflow_provider_streams.systems.sources import source_from_json
from airflow_provider_streams.triggers.state import Answer, StateTrigger

if TYPE_CHECKING:
    from airflow_provider_streams.hooks.pulsar import PulsarHook
    from airflow_provider_streams.systems.pulsar.source import PulsarSource


class PulsarBacklogTrigger(StateTrigger):
    """Fires when a backlog meets a limit: one request per topic and poll; nothing is acknowledged.

    Args:
        source: as `hooks.base.source_to_json` gives it.
        subscription: its name.
        limit: as `BacklogLimit.to_json` gives it.
        poll_interval: seconds between two polls.
    """

    def __init__(
        self, source: dict[str, Any], subscription: str, limit: dict[str, Any], poll_interval: float = 60.0
    ) -> None:
        super().__init__(poll_interval)
        self.source, self.subscription, self.limit = source, subscription, limit
        self._hook: PulsarHook | None = None

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class path and arguments; no secret."""
        return (
            "airflow_provider_streams.triggers.pulsar.PulsarBacklogTrigger",
            {
                "source": self.source,
                "subscription": self.subscription,
                "limit": self.limit,
                "poll_interval": self.poll_interval,
            },
        )

    async def ask(self) -> Answer:
        """One poll."""
        source = cast("PulsarSource", source_from_json(self.source))
        self._hook = self._hook or cast("PulsarHook", hook_for(source))
        backlog = await self._hook.abacklog_of(source, self.subscription)
        return backlog_answer(backlog, BacklogLimit.from_json(self.limit), self.subscription)

    async def cleanup(self) -> None:
        """Close local connections; there is nothing to undo at the server."""
        if self._hook is not None:
            await self._hook.aclose()


def backlog_answer(backlog: Backlog, limit: BacklogLimit, subscription: str) -> Answer:
    """What a sensor makes of a backlog."""
    now = datetime.now(UTC)
    age = backlog.age(now)
    return Answer(
        satisfied=limit.met(backlog, now),
        facts={**backlog.to_json(), "age_seconds": round(age.total_seconds(), 3)},
        reason=f"{subscription} has {backlog.entries} entries, {backlog.bytes} bytes, age {age}; wanted {limit}",
    )


class PulsarConditionTrigger(StateTrigger):
    """Fires when a condition on topics is met; one request per partition and poll, nothing is changed.

    Args:
        source: as `hooks.base.source_to_json` gives it.
        condition: as `hooks.pulsar_conditions.condition_to_json` gives it.
        poll_interval: seconds between two polls.
    """

    def __init__(self, source: dict[str, Any], condition: dict[str, Any], poll_interval: float = 60.0) -> None:
        super().__init__(poll_interval)
        self.source, self.condition = source, condition
        self._hook: PulsarHook | None = None

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class path and arguments; no secret."""
        return (
            "airflow_provider_streams.triggers.pulsar.PulsarConditionTrigger",
            {"source": self.source, "condition": self.condition, "poll_interval": self.poll_interval},
        )

    async def ask(self) -> Answer:
        """One poll."""
        source = cast("PulsarSource", source_from_json(self.source))
        self._hook = self._hook or cast("PulsarHook", hook_for(source))
        return finding_answer(await self._hook.afind(source, condition_from_json(self.condition)))

    async def cleanup(self) -> None:
        """Close local connections; there is nothing to undo at the server."""
        if self._hook is not None:
            await self._hook.aclose()


def finding_answer(finding: Finding) -> Answer:
    """What a sensor makes of a finding."""
    return Answer(finding.met, finding.facts, finding.reason)
