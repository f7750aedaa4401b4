"""Wait until a source's events may go before their window is read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.model.stream.retention import Schedule
from airflow_provider_streams.model.stream.source import Source, check_source
from airflow_provider_streams.sensors.base import StateSensor
from airflow_provider_streams.systems.source_json import source_to_json
from airflow_provider_streams.triggers.retention import RetentionRiskTrigger
from airflow_provider_streams.windows.after_landing.retention import RetentionQuestion

if TYPE_CHECKING:
    from airflow.sdk import Context


class RetentionRiskSensor(StateSensor):
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

    template_fields: Sequence[str] = ("source", "reader")
    ui_color = "#f3e6cf"

    def __init__(
        self,
        *,
        source: Source,
        window_length: timedelta,
        max_delay: timedelta,
        margin: timedelta | None = None,
        reader: str | None = None,
        deferrable: bool | None = None,
        poke_interval: timedelta | float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(deferrable=deferrable, poke_interval=poke_interval, **kwargs)
        check_source(source)
        self.source = source
        self.schedule = Schedule.of(window_length, max_delay, margin)
        self.reader = reader

    def trigger(self, context: Context) -> RetentionRiskTrigger:  # noqa: ARG002 - all sensors' shape
        """As `StateSensor`."""
        question = RetentionQuestion(self.source, self.schedule, self.reader)
        return RetentionRiskTrigger(source_to_json(self.source), question.to_json(), self.poke_interval)
