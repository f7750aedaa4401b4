"""What work on windows needs from outside; Airflow's side gives it, and so can a test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from airflow_provider_streams.model.plan import Plan
from airflow_provider_streams.model.receipt import Receipt
from airflow_provider_streams.model.source import Source

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.systems.base import StreamSystem


class Stream(Protocol):
    """A connection to a stream system; a hook is one."""

    def system(self) -> StreamSystem:
        """The system behind it, to be closed by whoever asked; it connects when used."""

    def options(self) -> dict[str, str]:
        """Its settings, secrets included."""


class Figures(Protocol):
    """Where figures of reads go. None of these ever raises."""

    def covered(self, source_key: str, plan: Plan, receipt: Receipt) -> None:
        """A window was covered."""

    def recounted(self, source: Source, reader: str, late_rows: int) -> None:
        """Late rows of covered windows were counted."""

    def replayed(self, source: Source, reader: str, rows: int) -> None:
        """Quarantined events became rows of their windows."""


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where windows of one source are worked on."""

    journal: Journal
    stream: Stream
    spark: Callable[[Any], Any]
    """Runs a `JobSpec` to its `Landed`, a `ChunkSpec` to its list of `WindowResult`."""
    figures: Figures
    small_plan_bytes: int
    """Plans up to this size are read by the Spark driver program itself."""
