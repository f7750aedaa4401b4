"""Are a source's windows read before their events may go? The question, and what a system's answer means for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.readiness import Readiness
from airflow_provider_streams.model.retention import Holding, Schedule, Verdict
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.windows.horizon import MOST_CUTS
from airflow_provider_streams.windows.progress import covered_end

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal


@dataclass(frozen=True, slots=True)
class RetentionQuestion:
    """Are the windows of a source read before their events may go?"""

    source: Source
    schedule: Schedule
    reader: str | None = None
    """Whose windows and holds count; None: any hold, and no window."""

    def to_json(self) -> dict[str, Any]:
        """All but the source as plain JSON values."""
        spans = (self.schedule.window_length, self.schedule.max_delay, self.schedule.margin)
        return {"seconds": [span.total_seconds() for span in spans], "reader": self.reader}

    @classmethod
    def from_json(cls, source: Source, data: Mapping[str, Any]) -> Self:
        """The reverse of `to_json`."""
        length, delay, margin = (timedelta(seconds=seconds) for seconds in data["seconds"])
        return cls(source, Schedule(length, delay, margin), data["reader"])


def recorded(journal: Journal, source: Source) -> list[tuple[datetime, Cut]]:
    """The recorded cuts of a source, oldest first, with the time their sampling began."""
    return [(one.sampled_from, one.cut) for one in journal.recorded_cuts(source.key, MOST_CUTS)]


def waiting_since(journal: Journal, source: Source, reader: str) -> datetime | None:
    """Where the oldest window begins that a reader has not covered yet; None: it has covered none."""
    end = covered_end(journal, source.key, reader, None)
    return None if end is None else end.time


def verdict_facts(verdict: Verdict, holding: Holding) -> dict[str, Any]:
    """A verdict and what it rests on, as plain JSON values: what the operator returns and the trigger fires."""
    return {
        **verdict.to_json(),
        "horizon": holding.horizon.isoformat() if holding.horizon else None,
        "bytes_per_second": None if holding.bytes_per_second is None else round(holding.bytes_per_second, 1),
        "unread_bytes": holding.unread_bytes,
    }


def risk_found(verdict: Verdict, holding: Holding) -> Readiness:
    """What a guard makes of a verdict: it waits for trouble."""
    return Readiness(verdict.is_risk, str(verdict), verdict_facts(verdict, holding))
