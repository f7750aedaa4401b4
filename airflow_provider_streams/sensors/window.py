"""Wait until a window can be read."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import StartTriggerArgs

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.model.basis import BasisLike, basis_to_json
from airflow_provider_streams.model.grid import parse_grid
from airflow_provider_streams.model.source import Source, check_source
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.retry import terminal_errors
from airflow_provider_streams.sensors.state import StateSensor
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.systems.sources import source_to_json
from airflow_provider_streams.timetables import grid_of_timetable, run_facts
from airflow_provider_streams.triggers.window import RunWindowReadyTrigger, WindowReadyTrigger
from airflow_provider_streams.windows.of_run import resolve_window
from airflow_provider_streams.windows.readiness import WindowQuestion

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_streams.model.readiness import Readiness


class WindowReadySensor(StateSensor):
    """Waits until a window's end is certain.

    Basis `publish`: its time and the slack have passed, and nothing in it is still open. Basis `append`: its end's
    cut is recorded. Basis `event`: its end and `max_lateness` have passed (Pulsar: and the slack, by the clock;
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
            macros and filters are not known; it cannot be the output of another task. Mapped tasks (`expand`) still
            start in a worker, and defer.

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
        window_length: timedelta | str | None = None,
        basis: BasisLike | None = None,
        start_from_trigger: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_source(source)
        self.source = source
        self.window = window
        self.window_length = window_length
        self.basis = declaration_of(source.system).basis(basis)
        if start_from_trigger:
            self._start_from_trigger(deferrable=kwargs.get("deferrable"))

    def ask(self, context: Context) -> Readiness:
        """Poll once."""
        question = self._question(context)
        with closing(hook_for(self.source)) as hook:
            hook.look(self.source)
            return hook.readiness(question)

    def trigger(self, context: Context) -> WindowReadyTrigger:
        """The trigger that goes on asking."""
        with terminal_errors():
            question = self._question(context)
        return WindowReadyTrigger(source_to_json(self.source), question.to_json(), self.poke_interval)

    def _start_from_trigger(self, *, deferrable: bool | None) -> None:
        if deferrable is False:
            raise InvalidRequest("start_from_trigger=True waits in the triggerer: deferrable cannot be False")
        given: object = self.window  # whatever its annotation says, the user may give another task's output
        if not isinstance(given, str | Window | None):
            kind = type(given).__name__
            raise InvalidRequest(
                f"with start_from_trigger=True, window must be a Window, a text or a template, not {kind}: "
                "the scheduler creates the trigger, and knows no other task's output"
            )
        trigger = RunWindowReadyTrigger(
            source_to_json(self.source),
            basis_to_json(self.basis),
            window=None if self.window is None else str(self.window),
            window_length=None if self.window_length is None else str(parse_grid(self.window_length)),
            grid=self._grid_text(),
            poll_interval=self.poke_interval,
        )
        path, arguments = trigger.serialize()
        self.deferrable = self.start_from_trigger = True
        self.start_trigger_args = StartTriggerArgs(
            trigger_cls=path,
            next_method="execute_complete",
            trigger_kwargs=arguments,
            timeout=timedelta(seconds=self.timeout),
        )

    def _has_dag(self) -> bool:
        return bool(self.has_dag())  # type: ignore[no-untyped-call]  # Airflow's is not annotated

    def _grid_text(self) -> str | None:
        """How the DAG's runs tile time: the triggerer does not know its timetable."""
        grid = grid_of_timetable(self.dag.timetable) if self._has_dag() else None
        return None if grid is None else str(grid)

    def _question(self, context: Context) -> WindowQuestion:
        resolved = resolve_window(self.window, self.window_length, run_facts(context))
        return WindowQuestion(self.source, resolved.window, self.basis)
