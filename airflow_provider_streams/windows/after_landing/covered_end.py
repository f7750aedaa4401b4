"""How far a reader's windows are covered without a gap: how far holds may move, and which window is waited for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.registry import declaration_of

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.model.plan.plan import Plan
    from airflow_provider_streams.model.window.coverage import Coverage

_FIRST = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class CoveredEnd:
    """Where an unbroken row of covered windows ends."""

    window: Window
    """The last one."""
    plan: str
    """Fingerprint of its plan."""
    cut: Cut | None = None
    """Where the next window starts, or before; None: that is looked up by its time."""

    @property
    def time(self) -> datetime:
        """When the row ends."""
        return self.window.end


def covered_end(journal: Journal, source_key: str, reader: str, since: datetime | None) -> CoveredEnd | None:
    """How far a reader's windows are covered without a gap since a time, or since the first one; None: not at all.

    A window that was planned and never read is a gap like a failed one: its events are still needed.
    """
    last = journal.last_covered(source_key, reader)
    if last is None or (since is not None and last.window.end <= since):
        return None
    coverage = journal.stretches(source_key, reader, since or _FIRST, last.window.end)
    end = _end_of_row(coverage, began=since is not None)
    plan = None if end is None else journal.last_covered(source_key, reader, before=end)
    if plan is None:
        return None
    return CoveredEnd(plan.window, plan.fingerprint, _next_start(plan))


def _next_start(plan: Plan) -> Cut | None:
    """Where the window after this one starts at the earliest; None: its time is looked up.

    A window by time has rows on both sides of its cuts, so the next one begins before this one's end. If events have
    times of their own, and the system cannot look times up, it may begin anywhere after this one's start.
    """
    if plan.basis == "event" and not declaration_of(plan.source.system).finds_times:
        return plan.start_cut
    return None if plan.filter else plan.end_cut


def _end_of_row(coverage: Coverage, *, began: bool) -> datetime | None:
    """Where the covered windows end before the first gap; `began`: blank time before them is a gap as well."""
    last: datetime | None = None
    for item in coverage.windows:
        is_blank = item.state == "missing" and not item.fingerprint and not item.attempts
        if item.state == "covered":
            last = item.window.end
        elif not is_blank or began or last is not None:
            break
    return last
