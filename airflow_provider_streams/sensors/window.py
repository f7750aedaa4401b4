"""Wait until a window can be read."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.hooks.base import hook_for, source_to_json
from airflow_provider_streams.hooks.readiness import WindowQuestion
from airflow_provider_streams.model.basis import MAX_SKEW, BasisLike, default_basis
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.operators.read import check_choices
from airflow_provider_streams.operators.windows import RunFacts, resolve_window
from airflow_provider_streams.retry import terminal_errors
from airflow_provider_streams.sensors.state import StateSensor
from airflow_provider_streams.triggers.window import WindowReadyTrigger, window_answer

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_streams.triggers.state import Answer


class WindowReadySensor(StateSensor):
    """Waits until a window's end is certain.

    Basis `publish`: its time and the slack have passed, and nothing in it is still open. Basis `append`: its end's
    cut is recorded. Basis `event`: the stream's watermark has passed it.

    It asks the same question as `ReadWindowOperator` with the same arguments, and consumes nothing.

    Args:
        source: what will be read.
        window: an explicit window, or its text `start/end` (templated). Default: the run's partition, then its
            data interval.
        window_length: the length of the run's partition, with `CronPartitionTimetable`.
        basis: as the read's.
        slack: as the read's.
        max_skew: as the read's.

    Returns (XCom):
        `window`.
    """

    template_fields: Sequence[str] = ("window",)
    ui_color = "#e3f1d8"

    def __init__(
        self,
        *,
        source: Source,
        window: Window | str | None = None,
        window_length: timedelta | None = None,
        basis: BasisLike | None = None,
        slack: timedelta = timedelta(seconds=60),
        max_skew: timedelta = MAX_SKEW,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choices(source=source, basis=basis)
        self.source = source
        self.window = window
        self.window_length = window_length
        self.basis = basis or default_basis(source.system)
        self.slack = slack
        self.max_skew = max_skew

    def ask(self, context: Context) -> Answer:
        """Poll once."""
        question = self._question(context)
        if waiting := question.wait(datetime.now(UTC)):
            return window_answer(question, waiting)
        with closing(hook_for(self.source)) as hook:
            return window_answer(question, hook.readiness(question))

    def trigger(self, context: Context) -> WindowReadyTrigger:
        """The trigger that goes on asking."""
        with terminal_errors():
            question = self._question(context)
        return WindowReadyTrigger(source_to_json(self.source), question.to_json(), self.poke_interval)

    def _question(self, context: Context) -> WindowQuestion:
        resolved = resolve_window(self.window, self.window_length, RunFacts.of(context))
        return WindowQuestion(self.source, resolved.window, self.basis, self.slack, self.max_skew)
