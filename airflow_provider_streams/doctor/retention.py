"""Whether the stream keeps events until their windows are read: in normal operation, and over an outage."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.doctor.finding import Finding, Level, Notes
from airflow_provider_streams.doctor.journal import inspected
from airflow_provider_streams.doctor.setup import Setup
from airflow_provider_streams.errors import AccessError, InvalidRequest, StreamsError
from airflow_provider_streams.hooks.base import Sampled, StreamHook
from airflow_provider_streams.model.stream.retention import Holding, Schedule, Verdict, judge
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.length_text import length_text
from airflow_provider_streams.model.window.window_schedule import WindowSchedule
from airflow_provider_streams.windows.after_landing.retention import recorded, waiting_since

_CELLS: Final = 60
"""How many windows from now on are looked at for the longest one."""
_ZERO = timedelta(0)


@dataclass(frozen=True, slots=True)
class Judgement:
    """One comparison of what the stream keeps with what is needed."""

    check: str
    loss: Level
    """How bad a loss is."""
    schedule: Schedule


def check_retention(setup: Setup, hook: StreamHook) -> list[Finding]:
    """Two findings: for the schedule, and for an outage."""
    notes = Notes("retention")
    now = datetime.now(UTC)
    try:
        has_journal = inspected().state == "ready"  # looking does not make one
    except StreamsError:
        notes.skipped("schedule", "the journal cannot be read, which says what was read so far: see the journal below")
        return notes.findings
    try:
        since, holding = _asked(setup, hook, has_journal=has_journal)
    except InvalidRequest as error:
        notes.skipped("schedule", str(error))
    except AccessError as error:
        notes.warning("schedule", f"it is unknown how long events are kept: {error}", _ASK)
    except StreamsError as error:
        notes.warning("schedule", f"it is unknown how long events are kept: {error}", "Check the connection")
    else:
        judge_holding(notes, holding, judgements(setup, now), now, since)
    return notes.findings


def _asked(setup: Setup, hook: StreamHook, *, has_journal: bool) -> tuple[datetime | None, Holding]:
    assert setup.source is not None  # noqa: S101 - the area is skipped without one
    source, since = setup.source, None
    if has_journal and setup.reader:
        with open_journal() as journal:
            since = waiting_since(journal, source, setup.reader)
    return since, hook.holding(source, setup.reader, lambda: _recorded(source) if has_journal else [])


def _recorded(source: Source) -> Sampled:
    with open_journal() as journal:
        return recorded(journal, source)


def judgements(setup: Setup, now: datetime) -> tuple[Judgement, Judgement]:
    """What is needed. A window may be read until the next one ends, or until an outage is over. Pure."""
    length = longest(setup.window_schedule, now)
    return (
        Judgement("schedule", "error", Schedule.of(length, length, _ZERO)),
        Judgement("outage", "warning", Schedule.of(length, max(setup.outage, length), _ZERO)),
    )


def longest(window_schedule: WindowSchedule, now: datetime) -> timedelta:
    """The length of the longest of the next windows. Pure."""
    return max(_lengths(window_schedule, now))


def _lengths(window_schedule: WindowSchedule, now: datetime) -> Iterable[timedelta]:
    edge = window_schedule.before(now)
    for _ in range(_CELLS):
        following = window_schedule.after(edge)
        yield following - edge
        edge = following


def judge_holding(
    notes: Notes, holding: Holding, wanted: Iterable[Judgement], now: datetime, since: datetime | None = None
) -> None:
    """The findings about what the stream keeps. Pure."""
    for one in wanted:
        verdict = judge(holding, one.schedule, now, waiting_since=since)
        if verdict.risk == "unknown":
            notes.warning(one.check, str(verdict), _ASK)
            return
        _note(notes, one, verdict)


def _note(notes: Notes, one: Judgement, verdict: Verdict) -> None:
    if not verdict.is_risk:
        notes.ok(one.check, str(verdict))
        return
    advice = (
        f"Keep events for more than {length_text(one.schedule.needed)}, or hold unread ones with HoldRetentionOperator"
    )
    if verdict.risk == "loss" and one.loss == "error":
        notes.error(one.check, f"events go before their window is read: {verdict}", advice)
    else:
        notes.warning(one.check, str(verdict), advice)


_ASK = (
    "Ask an administrator of the stream system for retention and expiry, or let this user read them; then compare "
    "with the schedule"
)
