"""What work on windows needs from its surroundings; a task provides it, and so can a test."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.model.sinks.landing import Landed
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.missing_rows import MissingWindows, OnMissing

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.spark.job.job_spec import JobSpec
    from airflow_provider_streams.spark.job.outcomes import WindowResult
    from airflow_provider_streams.systems.base import StreamSystem

_log = logging.getLogger(__name__)


class Stream(Protocol):
    """A connection to a stream system; a hook is one."""

    def system(self) -> StreamSystem:
        """Its system, which connects when used; the caller closes it."""

    def options(self) -> dict[str, str]:
        """Its settings, secrets included."""


class Figures(Protocol):
    """Receives the figures of reads. No method ever raises."""

    def covered(self, source_key: str, plan: Plan, landed: Landed) -> None:
        """A window was covered."""

    def recounted(self, source: Source, reader: str, late_rows: int) -> None:
        """Late rows of covered windows were counted."""

    def replayed(self, source: Source, reader: str, rows: int) -> None:
        """Quarantined events became rows of their windows."""

    def missing(self, source: Source, reader: str, windows: int) -> None:
        """Covered windows are missing again: their table or their rows were removed."""


@dataclass(frozen=True, slots=True)
class WindowContext:
    """What work on windows of one source needs."""

    journal: Journal
    stream: Stream
    spark: Callable[[JobSpec], list[WindowResult]]
    """Runs a job, and returns what became of each of its windows."""
    figures: Figures
    small_plan_bytes: int
    """Plans up to this size are read by the Spark driver program itself."""
    on_missing: OnMissing | None = None
    """The user's callback for covered windows that are missing again."""

    def report_missing(self, found: MissingWindows) -> None:
        """Report covered windows that are missing again. Never raises: the run goes on."""
        self.figures.missing(found.source, found.reader, len(found.windows))
        if self.on_missing is not None:
            try:
                self.on_missing(found)
            except Exception:  # noqa: BLE001 - the user's code
                _log.warning("on_missing failed for %s", found, exc_info=True)
