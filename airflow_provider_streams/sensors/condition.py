"""What the sensors on a condition share: a source, what is waited for, and how both are asked."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import closing
from typing import TYPE_CHECKING

from airflow_provider_streams.retry import terminal_errors
from airflow_provider_streams.sensors.state import StateSensor
from airflow_provider_streams.systems.conditions import condition_to_json
from airflow_provider_streams.systems.sources import source_to_json
from airflow_provider_streams.triggers.condition import ConditionTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_streams.hooks.base import StreamHook
    from airflow_provider_streams.model.readiness import Readiness
    from airflow_provider_streams.model.source import Source
    from airflow_provider_streams.systems.conditions import Condition


class ConditionSensor(StateSensor):
    """Waits until a condition on a source is met; a subclass says which."""

    ui_color = "#e3f1d8"

    @abstractmethod
    def condition(self, hook: StreamHook) -> Condition:
        """What to wait for, with every template rendered.

        Raises:
            InvalidRequest: that cannot be waited for.
        """

    @abstractmethod
    def asked(self, hook: StreamHook) -> Source:
        """Which source to ask, with every template rendered."""

    @abstractmethod
    def hook(self) -> StreamHook:
        """The hook of its connection."""

    def ask(self, context: Context) -> Readiness:  # noqa: ARG002 - all sensors' shape
        """Poll once."""
        with closing(self.hook()) as hook:
            return hook.check(self.asked(hook), self.condition(hook))

    def trigger(self, context: Context) -> ConditionTrigger:  # noqa: ARG002 - all sensors' shape
        """The trigger that goes on asking."""
        with terminal_errors(), closing(self.hook()) as hook:
            condition, source = self.condition(hook), self.asked(hook)
        return ConditionTrigger(source_to_json(source), condition_to_json(condition), self.poke_interval)
