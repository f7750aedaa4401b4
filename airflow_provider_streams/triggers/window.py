"""Fires when a window's end is certain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import InvalidWindow
from airflow_provider_streams.model.grid import parse_grid
from airflow_provider_streams.model.readiness import Readiness
from airflow_provider_streams.timetables import run_facts
from airflow_provider_streams.triggers.state import SourceTrigger
from airflow_provider_streams.windows.of_run import RunFacts, resolve_window
from airflow_provider_streams.windows.readiness import WindowQuestion

if TYPE_CHECKING:
    import jinja2


class WindowReadyTrigger(SourceTrigger):
    """Fires when a window can be read; until its end has passed by the slack, nothing is asked but where it ends now.

    Args:
        source: as `systems.sources.source_to_json` gives it.
        question: as `WindowQuestion.to_json` gives it.
        poll_interval: seconds between two polls.
    """

    def __init__(self, source: dict[str, Any], question: dict[str, Any], poll_interval: float = 60.0) -> None:
        super().__init__(source, poll_interval)
        self.question = question
        self._has_looked = False

    def arguments(self) -> dict[str, Any]:
        """See `SourceTrigger`."""
        return {"question": self.question}

    async def ask(self) -> Readiness:
        """One poll."""
        source, hook = self.read_source(), self.hook()
        if not self._has_looked:
            self._has_looked = True
            await hook.alook(source)
        return await hook.areadiness(WindowQuestion.from_json(source, self.question))


class RunWindowReadyTrigger(SourceTrigger):
    """As `WindowReadyTrigger`, but created by the scheduler, before any worker could tell which window the run reads.

    The triggerer knows the run: it renders `window`, and says where the run's partition and data interval lie.

    Args:
        source: as `systems.sources.source_to_json` gives it.
        basis: as `model.basis.basis_to_json` gives it.
        window: an explicit window as text (templated).
        window_length: the length of the run's partition, as `model.grid` writes it.
        grid: how the DAG's runs tile time, as `model.grid` writes it.
        poll_interval: seconds between two polls.
    """

    def __init__(
        self,
        source: dict[str, Any],
        basis: dict[str, Any],
        *,
        window: str | None = None,
        window_length: str | None = None,
        grid: str | None = None,
        poll_interval: float = 60.0,
    ) -> None:
        super().__init__(source, poll_interval)
        self.basis = basis
        self.window, self.window_length, self.grid = window, window_length, grid
        self._facts = RunFacts()
        self._refused: InvalidWindow | None = None
        self._resolved: WindowReadyTrigger | None = None

    def arguments(self) -> dict[str, Any]:
        """See `SourceTrigger`."""
        names = ("basis", "window", "window_length", "grid")
        return {name: getattr(self, name) for name in names}

    def render_template_fields(self, context: Mapping[str, Any], jinja_env: jinja2.Environment | None = None) -> None:
        """What the triggerer calls once, before `run`, with the run's context."""
        self._facts = run_facts(context)
        template = self.window
        try:
            super().render_template_fields(context, jinja_env)  # type: ignore[arg-type]  # any mapping will do
        except Exception as error:  # noqa: BLE001 - templates are the user's: the task is to raise it, typed
            self._refused = InvalidWindow(
                f"window={template!r} cannot be rendered in the triggerer ({type(error).__name__}): "
                "use plain templates of the run, or leave out start_from_trigger"
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
        own = self._facts.grid or (parse_grid(self.grid) if self.grid else None)
        resolved = resolve_window(self.window, self.window_length, replace(self._facts, grid=own))
        self.log.info("Window %s, from the run's %s", resolved.window, resolved.rule)
        return WindowReadyTrigger(
            self.source, {"window": str(resolved.window), "basis": self.basis}, self.poll_interval
        )
