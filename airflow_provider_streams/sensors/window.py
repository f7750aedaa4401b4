"""Wait until a window can be read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import StartTriggerArgs

from airflow_provider_streams.airflow_features import Feature, has
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.stream.source import Source, check_source
from airflow_provider_streams.model.window.basis import BasisLike, basis_to_json
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.model.window.window_schedule import parse_schedule
from airflow_provider_streams.sensors.base import StateSensor
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.systems.source_json import source_to_json
from airflow_provider_streams.template_rendering import is_late_value
from airflow_provider_streams.timetables.dag_timetable import schedule_of_timetable
from airflow_provider_streams.timetables.run_facts import run_facts
from airflow_provider_streams.triggers.window import RunWindowReadyTrigger, WindowReadyTrigger
from airflow_provider_streams.windows.plan.airflow_run_window import resolve_window
from airflow_provider_streams.windows.plan.readiness import WindowQuestion

if TYPE_CHECKING:
    from airflow.sdk import Context


class WindowReadySensor(StateSensor):
    """Waits until a window's end is certain.

    Basis `publish`: its time and the slack have passed, and nothing in it is still open. Basis `append`: its end's
    cut is recorded. Basis `event`: its end and `allowed_lateness` have passed (Pulsar: and the slack, by the clock;
    Pravega: the stream's watermark, or a recorded cut, has come so far).

    It asks the same question as `ReadWindowOperator` with the same arguments, and consumes nothing. Where the source
    ends when the wait begins is noted in the journal: what is removed from then on, the read will know to be lost.

    Args:
        source: what will be read.
        window: an explicit window, or its text `start/end` (templated). Default: the run's partition, then its
            data interval.
        window_length: as the read's.
        basis: as the read's.
        start_from_trigger: wait in the triggerer from the begin: the task takes a worker only once its window is
            complete. Implies `deferrable`. A templated `window` is then rendered in the triggerer, where the DAG's own
            macros and filters are not known; it cannot be the output of another task. Mapped tasks (`expand`), and
            all tasks before Airflow 3.3, still start in a worker, and defer.

    Returns (XCom):
        `window`.
    """

    template_fields: Sequence[str] = ("source", "window")
    ui_color = "#e3f1d8"

    def __init__(
        self,
        *,
        source: Source,
        window: Window | str | None = None,
        window_length: timedelta | str | None = None,
        basis: BasisLike | None = None,
        start_from_trigger: bool = False,
        deferrable: bool | None = None,
        poke_interval: timedelta | float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(deferrable=deferrable, poke_interval=poke_interval, **kwargs)
        check_source(source)
        self.source = source
        self.window = window
        self.window_length = window_length
        self.basis = declaration_of(source.system).basis(basis)
        if start_from_trigger:
            self._check_start_from_trigger(deferrable=deferrable)
            self.deferrable = True
            if has(Feature.START_FROM_TRIGGER):
                self._start_from_trigger()

    def trigger(self, context: Context) -> WindowReadyTrigger:
        """As `StateSensor`."""
        resolved = resolve_window(self.window, self.window_length, run_facts(context))
        question = WindowQuestion(self.source, resolved.window, self.basis)
        return WindowReadyTrigger(source_to_json(self.source), question.to_json(), self.poke_interval)

    def _check_start_from_trigger(self, *, deferrable: bool | None) -> None:
        if deferrable is False:
            raise InvalidRequest("start_from_trigger=True waits in the triggerer: deferrable cannot be False")
        if is_late_value(self.source):
            raise InvalidRequest(
                "with start_from_trigger=True, the scheduler creates the trigger: name the source without templates"
            )
        given: object = self.window  # whatever its annotation says, the user may give another task's output
        if not isinstance(given, str | Window | None):
            kind = type(given).__name__
            raise InvalidRequest(
                f"with start_from_trigger=True, window must be a Window, a text or a template, not {kind}: "
                "the scheduler creates the trigger, and does not know another task's output"
            )

    def _start_from_trigger(self) -> None:
        trigger = RunWindowReadyTrigger(
            source_to_json(self.source),
            basis_to_json(self.basis),
            window=None if self.window is None else str(self.window),
            window_length=None if self.window_length is None else str(parse_schedule(self.window_length)),
            window_schedule=self._schedule_text(),
            poll_interval=self.poke_interval,
        )
        path, arguments = trigger.serialize()
        self.start_from_trigger = True
        self.start_trigger_args = StartTriggerArgs(
            trigger_cls=path,
            next_method="execute_complete",
            trigger_kwargs=arguments,
            timeout=timedelta(seconds=self.timeout),
        )

    def _schedule_text(self) -> str | None:
        """How the DAG's runs tile time: the triggerer does not know its timetable."""
        has_dag = self.has_dag()  # type: ignore[no-untyped-call]  # Airflow's is not annotated
        window_schedule = schedule_of_timetable(self.dag.timetable) if has_dag else None
        return None if window_schedule is None else str(window_schedule)
