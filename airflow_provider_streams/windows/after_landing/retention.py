"""How far back a stream still reaches, and whether its windows are read before their events may be removed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.retention import Holding, Schedule, Verdict
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.stream.tail_observation import Incarnation
from airflow_provider_streams.model.window.readiness import Readiness
from airflow_provider_streams.systems.source_json import source_from_json
from airflow_provider_streams.windows.after_landing.covered_end import covered_end

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.systems.base import StreamSystem


MOST_CUTS = 50_000
"""How many of the last recorded cuts are used."""


@dataclass(frozen=True, slots=True)
class RetentionQuestion:
    """Are the windows of a source read before their events may be removed?"""

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
    """When the oldest window begins that a reader has not covered yet; None: it has covered none."""
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
    """A verdict for a sensor that waits for a risk."""
    return Readiness(verdict.is_risk, str(verdict), verdict_facts(verdict, holding))


def horizon_of(journal: Journal, system: StreamSystem, source: Source) -> datetime | None:
    """The oldest time from which on a source is still held whole; None: nothing was removed, or it cannot be told.

    Raises:
        AccessError, SystemUnavailable: the system refuses or does not answer.
    """

    def recorded() -> Iterator[tuple[datetime, Cut, Incarnation]]:
        for cut in journal.recorded_cuts(source.key, MOST_CUTS):
            yield cut.sampled_from, cut.cut, cut.incarnation

    return system.horizon(source, recorded)


def source_of_key(journal: Journal, key: str) -> Source:
    """The source that a journal's key names, as its first read stored it.

    Raises:
        InvalidRequest: it was never read.
    """
    written = journal.source(key)
    if written is None:
        raise InvalidRequest(f"the journal does not say how {key} is written: read a window of it once")
    return source_from_json(written)
