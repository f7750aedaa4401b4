"""Fires when a window's end is certain."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import InvalidWindow
from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.model.window.readiness import Readiness
from airflow_provider_streams.model.window.window_schedule import parse_schedule
from airflow_provider_streams.timetables.run_facts import run_facts
from airflow_provider_streams.triggers.base import SourceTrigger, StateTrigger, StoredTrigger
from airflow_provider_streams.windows.plan.airflow_run_window import RunFacts, resolve_window
from airflow_provider_streams.windows.plan.readiness import WindowQuestion

if TYPE_CHECKING:
    import jinja2


class WindowReadyTrigger(SourceTrigger):
    """Fires when a window can be read; until its end has passed by the slack, nothing is asked but where it ends now.

    Args:
        source: as `systems.source_json.source_to_json` gives it.
        question: as `WindowQuestion.to_json` gives it.
        poll_interval: seconds between two polls.
    """

    stored = ("source", "question", "poll_interval")

    def __init__(self, source: dict[str, Any], question: dict[str, Any], poll_interval: float = 60.0) -> None:
        super().__init__(source, poll_interval)
        self.question = question
        self._has_looked = False

    async def ask(self) -> Readiness:
        """One poll."""
        source, hook = self.read_source(), self.hook()
        if not self._has_looked:
            self._has_looked = True
            await hook.aobserve_tail(source)
        return await hook.areadiness(WindowQuestion.from_json(source, self.question))

    def ask_blocking(self) -> Readiness:
        """As `ask`, in a worker."""
        source = self.read_source()
        with closing(hook_for(source)) as hook:
            hook.observe_tail(source)
            return hook.readiness(WindowQuestion.from_json(source, self.question))


class RunWindowReadyTrigger(StoredTrigger, StateTrigger):
    """As `WindowReadyTrigger`, but created by the scheduler, before any worker could tell which window the run reads.

    The triggerer knows the run: it renders `window`, and says where the run's partition and data interval lie.

    Args:
        source: as `systems.source_json.source_to_json` gives it.
        basis: as `model.window.basis.basis_to_json` gives it.
        window: an explicit window as text (templated).
        window_length: the length of the run's partition, as `parse_schedule` writes it.
        window_schedule: how the DAG's runs tile time, as `parse_schedule` writes it.
        poll_interval: seconds between two polls.
    """

    stored = ("source", "basis", "window", "window_length", "window_schedule", "poll_interval")

    def __init__(
        self,
        source: dict[str, Any],
        basis: dict[str, Any],
        *,
        window: str | None = None,
        window_length: str | None = None,
        window_schedule: str | None = None,
        poll_interval: float = 60.0,
    ) -> None:
        super().__init__(poll_interval)
        self.source, self.basis = source, basis
        self.window, self.window_length, self.window_schedule = window, window_length, window_schedule
        self._facts = RunFacts()
        self._refused: InvalidWindow | None = None
        self._resolved: WindowReadyTrigger | None = None

    def render_template_fields(self, context: Mapping[str, Any], jinja_env: jinja2.Environment | None = None) -> None:
        """What the triggerer calls once, before `run`, with the run's context."""
        self._facts = run_facts(context)
        template = self.window
        try:
            super().render_template_fields(context, jinja_env)  # type: ignore[arg-type]  # any mapping will do
        except Exception as error:  # noqa: BLE001 - templates are the user's: the task is to raise it, typed
            self._refused = InvalidWindow(
                f"window={template!r} cannot be rendered in the triggerer ({type(error).__name__}): "
                "use only templates of the run, or leave out start_from_trigger"
            )

    async def ask(self) -> Readiness:
        """One poll."""
        if self._resolved is None:
            self._resolved = self._resolve()
        return await self._resolved.ask()

    async def cleanup(self) -> None:
        """Close local connections; there is nothing to undo at the server."""
        if self._resolved is not None:
            await self._resolved.cleanup()

    def _resolve(self) -> WindowReadyTrigger:
        if self._refused is not None:
            raise self._refused
        own = self._facts.window_schedule or (parse_schedule(self.window_schedule) if self.window_schedule else None)
        resolved = resolve_window(self.window, self.window_length, replace(self._facts, window_schedule=own))
        self.log.info("Window %s, from the run's %s", resolved.window, resolved.rule)
        return WindowReadyTrigger(
            self.source, {"window": str(resolved.window), "basis": self.basis}, self.poll_interval
        )
