"""Are a source's windows read before their events may go? The question, asked on both edges, and its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_streams.hooks.base import StreamHook, hook_for
from airflow_provider_streams.hooks.journal import aopen_journal, open_journal
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.readiness import Readiness
from airflow_provider_streams.model.retention import Holding, Schedule, Verdict, judge
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


def check_retention(question: RetentionQuestion) -> tuple[Verdict, Holding]:
    """The verdict now, and what it rests on; nothing is changed.

    Raises:
        InvalidRequest: a system whose retention cannot be asked for.
        AccessError, SystemUnavailable: the system refuses or does not answer.
    """
    source, reader = question.source, question.reader
    with closing(hook_for(source)) as hook:
        holding = hook.holding(source, reader, lambda: _recorded(source))
    if reader is None:
        return judge(holding, question.schedule, datetime.now(UTC)), holding
    with open_journal() as journal:
        return _judged(journal, question, holding), holding


async def acheck_retention(question: RetentionQuestion, hook: StreamHook) -> tuple[Verdict, Holding]:
    """As `check_retention`, for an event loop; `hook` is the source's, and stays open."""
    source, reader = question.source, question.reader
    holding = await hook.aholding(source, reader, lambda: _arecorded(source))
    if reader is None:
        return judge(holding, question.schedule, datetime.now(UTC)), holding
    with closing(await aopen_journal()) as journal:
        return await asyncio.to_thread(_judged, journal, question, holding), holding


def _judged(journal: Journal, question: RetentionQuestion, holding: Holding) -> Verdict:
    """With the reader's oldest window that is not covered yet."""
    end = covered_end(journal, question.source.key, question.reader or "", None)
    since = None if end is None else end.time
    return judge(holding, question.schedule, datetime.now(UTC), waiting_since=since)


def _recorded(source: Source) -> list[tuple[datetime, Cut]]:
    with open_journal() as journal:
        return _cuts(journal, source)


async def _arecorded(source: Source) -> list[tuple[datetime, Cut]]:
    with closing(await aopen_journal()) as journal:
        return await asyncio.to_thread(_cuts, journal, source)


def _cuts(journal: Journal, source: Source) -> list[tuple[datetime, Cut]]:
    return [(one.sampled_from, one.cut) for one in journal.recorded_cuts(source.key, MOST_CUTS)]


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
