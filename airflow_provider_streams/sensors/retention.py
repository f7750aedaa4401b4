"""Wait until a source's events may go before their window is read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.hooks.retention import check_retention
from airflow_provider_streams.model.retention import Schedule
from airflow_provider_streams.model.source import Source, check_source
from airflow_provider_streams.sensors.state import StateSensor
from airflow_provider_streams.systems.sources import source_to_json
from airflow_provider_streams.triggers.retention import RetentionRiskTrigger
from airflow_provider_streams.windows.retention import RetentionQuestion, risk_found

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_streams.model.readiness import Readiness


class RetentionGuardSensor(StateSensor):
    """Waits until there is too little room between a schedule and the source's retention: then tasks after it alert.

    It succeeds when something should be done, and goes on waiting while all is well. To check once, use
    `CheckRetentionOperator`.

    Args:
        source: what is read.
        window_length: the length of its windows.
        max_delay: the longest time from a window's end until it has been read, retries and outages included.
        margin: less room than this is a risk; default: one window's length.
        reader: whose holds and uncovered windows count (templated); None: any hold, and the schedule alone.

    Returns (XCom):
        `risk, needed_seconds, held_seconds, room_seconds, causes, horizon, bytes_per_second, unread_bytes`.
    """

    template_fields: Sequence[str] = ("reader",)
    ui_color = "#f3e6cf"

    def __init__(
        self,
        *,
        source: Source,
        window_length: timedelta,
        max_delay: timedelta,
        margin: timedelta | None = None,
        reader: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_source(source)
        self.source = source
        self.schedule = Schedule.of(window_length, max_delay, margin)
        self.reader = reader

    def ask(self, context: Context) -> Readiness:  # noqa: ARG002 - all sensors' shape
        """Poll once."""
        return risk_found(*check_retention(self._question()))

    def trigger(self, context: Context) -> RetentionRiskTrigger:  # noqa: ARG002 - all sensors' shape
        """The trigger that goes on asking."""
        return RetentionRiskTrigger(source_to_json(self.source), self._question().to_json(), self.poke_interval)

    def _question(self) -> RetentionQuestion:
        return RetentionQuestion(self.source, self.schedule, self.reader)
