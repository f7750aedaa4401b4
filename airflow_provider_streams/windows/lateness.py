"""Rows that appeared after their window was read: counted exactly, and how the window is planned to have them.

A pinned plan ends at a position. Whatever was stored behind that position, and carries a time of the window, is late;
what lies before it was read. So a recount reads only from there, up to where the window's end plus `lookback` lies.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import DataLoss, NoCutNearby, WindowNotReady
from airflow_provider_streams.model.basis import EventTime
from airflow_provider_streams.model.coverage import WindowState
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.plan import Loss, OnLoss, Plan, PlanRequest
from airflow_provider_streams.model.row_filter import AnyFilter, FieldFilter
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.windows.narrowing import narrowed_by_receipts, slack_of
from airflow_provider_streams.windows.readiness import with_recorded

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.systems.base import StreamSystem


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Recount:
    """A covered window, and the plan of what was stored since behind its end."""

    item: WindowState
    plan: Plan


def recounts(
    journal: Journal,
    system: StreamSystem,
    source: Source,
    reader: str,
    windows: Sequence[WindowState],
    *,
    lookback: timedelta,
    on_loss: OnLoss = "fail",
) -> Iterator[Recount]:
    """What to read to count the late rows of covered windows.

    Windows of a basis without a row filter have none: every event is in the window it was stored in. Those are left
    out behind whose end the stream holds nothing whole any more, unless what is lost there is accepted.

    Args:
        journal: keeps the pins.
        system: plans.
        source: the source, as it was read.
        reader: who covered the windows.
        windows: those that are not covered are left out.
        lookback: how long after a window's end its late rows may be stored. Later ones are not looked for.
        on_loss: `record`: what is still held is counted.

    Raises:
        AccessError, SystemUnavailable: as `StreamSystem.plan`.
    """
    for item in windows:
        if item.state != "covered" or item.run is None:
            continue
        pinned = journal.pinned(source.key, reader, item.window)
        if pinned is None or pinned.filter is None:
            continue
        try:
            yield Recount(item, plan_behind(journal, system, source, pinned, lookback, on_loss=on_loss))
        except DataLoss:
            _log.info("%s is too old to be recounted: what lies behind it is no longer held", item.window)


def plan_behind(
    journal: Journal,
    system: StreamSystem,
    source: Source,
    pinned: Plan,
    lookback: timedelta,
    *,
    on_loss: OnLoss = "fail",
) -> Plan:
    """Everything stored behind a plan's end, up to the end of `lookback` or the tail, filtered as the plan was.

    Rows are counted by the time that the system stored, which needs no payload; unless a field of them is the time.

    Raises:
        StartTrimmed: the stream no longer holds the plan's end, and loss is not accepted.
    """
    end = _end(journal, system, source, pinned, lookback)
    behind = _between(system, source, pinned, pinned.end_cut, end, on_loss=on_loss)
    plan = _narrowed(journal, source, behind, pinned, lookback)
    return plan if isinstance(plan.filter, FieldFilter) else replace(plan, decoding=None)


def plan_with_late_rows(
    journal: Journal,
    system: StreamSystem,
    source: Source,
    pinned: Plan,
    lookback: timedelta,
    *,
    on_loss: OnLoss = "fail",
) -> Plan:
    """The same window from the same start on, up to the end of `lookback` or the tail: late rows included.

    What was lost, or not proven, when it was planned first, still is.

    Raises:
        StartTrimmed: the stream no longer holds the window's start, and loss is not accepted.
    """
    end = _end(journal, system, source, pinned, lookback)
    whole = _between(system, source, pinned, pinned.start_cut, end, on_loss=on_loss)
    plan = _narrowed(journal, source, whole, pinned, lookback)
    doubts = {part.shard: part.verdict for part in pinned.unproven}
    lost = {loss.shard for loss in plan.losses}
    ranges = tuple(
        part if part.shard in lost else replace(part, verdict=doubts.get(part.shard, part.verdict))
        for part in plan.ranges
    )
    known = (loss for loss in pinned.losses if not any(_is_within(loss, now) for now in plan.losses))
    terms = replace(pinned.terms, on_loss=on_loss) if pinned.terms and on_loss == "record" else pinned.terms
    return replace(plan, ranges=ranges, losses=(*known, *plan.losses), terms=terms)


def _is_within(loss: Loss, other: Loss) -> bool:
    return loss.shard == other.shard and other.start <= loss.start and loss.end <= other.end


def _between(system: StreamSystem, source: Source, pinned: Plan, start: Cut, end: Cut, *, on_loss: OnLoss) -> Plan:
    asked = PlanRequest(source, pinned.window, pinned.reader, slack=timedelta(0), on_loss=on_loss)
    if declaration_of(source.system).finds_times:
        asked = _by_shard(system, asked, start, end)
    else:
        # shards end, and others follow them: cuts are of one moment each, as recorded ones are
        asked = replace(asked, basis="append", start_cut=start, end_cut=system.go_on(start, end) or start)
    return replace(system.plan(asked), basis=pinned.basis, filter=pinned.filter)


def _narrowed(journal: Journal, source: Source, plan: Plan, pinned: Plan, lookback: timedelta) -> Plan:
    """Later windows have read what lies behind; where they met nothing of this one, there is nothing late."""
    return narrowed_by_receipts(journal, source.key, plan, lateness=lookback, slack=slack_of(pinned))


def _by_shard(system: StreamSystem, asked: PlanRequest, start: Cut, end: Cut) -> PlanRequest:
    if end.keys() != start.keys():
        # a partition that was made since: all of it is new; one that is gone holds nothing
        head = system.parse_cut(asked.source, "earliest")
        start = Cut({shard: start.get(shard, head[shard]) for shard in end})
    end = Cut({shard: max(position, start[shard]) for shard, position in end.items()})
    return replace(asked, basis="cuts", start_cut=start, end_cut=end)


def _end(journal: Journal, system: StreamSystem, source: Source, pinned: Plan, lookback: timedelta) -> Cut:
    asked = PlanRequest(source, pinned.window, pinned.reader, basis=pinned.basis, slack=lookback, on_loss="record")
    if pinned.basis == "event":
        asked = replace(asked, event=_by(pinned.filter, lookback), slack=slack_of(pinned))
    try:
        end = system.plan(with_recorded(journal, asked)).end_cut
    except WindowNotReady:
        return system.tail(source)  # lookback is not over: as far as there is anything
    if pinned.basis != "event" or declaration_of(source.system).finds_times:
        return end
    # writers whose times are ahead of the clock pull the end to what was stored long before lookback is over
    return system.go_on(end, _stored_by(journal, system, source, asked.stored.end)) or end


def _stored_by(journal: Journal, system: StreamSystem, source: Source, moment: datetime) -> Cut:
    """A place behind all that was stored before a time: as it was recorded, or seen, soon after it; else the tail."""
    try:
        recorded = journal.cut_at(source.key, moment)
    except NoCutNearby:
        recorded = None
    if recorded is not None:
        return recorded.cut
    seen = [one for one in journal.sightings_around(source.key, moment, moment) if one.at >= moment]
    return seen[0].tail if seen else system.tail(source)


def _by(rows: AnyFilter | None, lookback: timedelta) -> EventTime:
    if isinstance(rows, FieldFilter):
        return EventTime(lookback, event_time=rows.column, unit=rows.unit)
    return EventTime(lookback)
