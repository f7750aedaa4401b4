"""Check that a source keeps its events until their windows are read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from airflow.sdk import BaseOperator

from airflow_provider_streams.airflow_runtime import metrics
from airflow_provider_streams.airflow_runtime.retention import check_retention
from airflow_provider_streams.errors import InvalidRequest, RetentionAtRisk
from airflow_provider_streams.model.stream.retention import Schedule
from airflow_provider_streams.model.stream.source import Source, check_source
from airflow_provider_streams.retry import terminal_errors
from airflow_provider_streams.template_rendering import RendersValues
from airflow_provider_streams.windows.after_landing.retention import RetentionQuestion, verdict_facts

if TYPE_CHECKING:
    from airflow.sdk import Context


class CheckRetentionOperator(RendersValues, BaseOperator):
    """Compares how long the source keeps events with when they are read at the latest.

    It looks at retention by time and by size (at the rate the topic grows), and for data that a hold keeps at the TTL
    and the backlog quotas; with `reader` also at the oldest window that is not covered yet. It changes nothing.

    Args:
        source: what is read.
        window_length: the length of its windows.
        max_delay: the longest time from a window's end until it has been read, retries and outages included.
        margin: less room than this is a risk; default: one window's length.
        reader: whose holds and uncovered windows count (templated); None: any hold, and the schedule alone.
        on_risk: `warn` in the log, or `fail` the task without retries.

    Returns (XCom):
        `risk` (`safe`, `low`, `loss` or `unknown`), `needed_seconds, held_seconds, room_seconds, causes, horizon,
        bytes_per_second, unread_bytes`.

    Raises:
        RetentionAtRisk: `on_risk="fail"`, and there is less room than the margin.
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
        on_risk: Literal["warn", "fail"] = "warn",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_source(source)
        if on_risk not in ("warn", "fail"):
            raise InvalidRequest(f"on_risk must be 'warn' or 'fail', got {on_risk!r}")
        self.source = source
        self.schedule = Schedule.of(window_length, max_delay, margin)
        self.reader = reader
        self.on_risk = on_risk

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 - Airflow's signature
        """Ask, compare, warn or fail.

        Raises:
            StreamsError: typed; `RetentionAtRisk` among them.
        """
        with terminal_errors():
            verdict, holding = check_retention(RetentionQuestion(self.source, self.schedule, self.reader))
            metrics.guarded(self.source, self.reader, verdict, holding)
            if verdict.is_risk and self.on_risk == "fail":
                raise RetentionAtRisk(self.source, str(verdict))
        tell = self.log.info if verdict.risk == "safe" else self.log.warning
        tell("%s: %s", self.source, verdict)
        return verdict_facts(verdict, holding)
