"""Rows that appeared after their window was read: counted exactly, and how the window is planned to have them.

A pinned plan ends at a position. Whatever was stored behind that position, and carries a time of the window, is late;
what lies before it was read. So a recount reads only from there, up to where the window's end plus `lookback` lies.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import DataLoss, WindowNotReady
from airflow_provider_streams.model.coverage import WindowState
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.plan import Plan, PlanRequest
from airflow_provider_streams.model.source import Source

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
) -> Iterator[Recount]:
    """What to read to count the late rows of covered windows.

    Windows of a basis without a row filter have none: every event is in the window it was stored in. Those are left
    out behind whose end the stream holds nothing whole any more.

    Args:
        journal: keeps the pins.
        system: plans.
        source: the source, as it was read.
        reader: who covered the windows.
        windows: those that are not covered are left out.
        lookback: how long after a window's end its late rows may be stored. Later ones are not looked for.

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
            yield Recount(item, plan_behind(system, source, pinned, lookback))
        except DataLoss:
            _log.info("%s is too old to be recounted: what lies behind it is no longer held", item.window)


def plan_behind(system: StreamSystem, source: Source, pinned: Plan, lookback: timedelta) -> Plan:
    """Everything stored behind a plan's end, up to the end of `lookback` or the tail, filtered as the plan was."""
    return _between(system, source, pinned, pinned.end_cut, lookback)


def plan_with_late_rows(system: StreamSystem, source: Source, pinned: Plan, lookback: timedelta) -> Plan:
    """The same window from the same start on, up to the end of `lookback` or the tail: late rows included.

    What was lost, or not proven, when it was planned first, still is.

    Raises:
        StartTrimmed: the stream no longer holds the window's start.
    """
    plan = _between(system, source, pinned, pinned.start_cut, lookback)
    doubts = {part.shard: part.verdict for part in pinned.unproven}
    ranges = tuple(replace(part, verdict=doubts.get(part.shard, part.verdict)) for part in plan.ranges)
    return replace(plan, ranges=ranges, losses=(*pinned.losses, *plan.losses))


def _between(system: StreamSystem, source: Source, pinned: Plan, start: Cut, lookback: timedelta) -> Plan:
    end = _end(system, source, pinned, lookback)
    if end.keys() != start.keys():
        # a partition that was made since: all of it is new; one that is gone holds nothing
        head = system.parse_cut(source, "earliest")
        start = Cut({shard: start.get(shard, head[shard]) for shard in end})
    end = Cut({shard: max(position, start[shard]) for shard, position in end.items()})
    request = PlanRequest(
        source, pinned.window, pinned.reader, basis="cuts", slack=timedelta(0), start_cut=start, end_cut=end
    )
    return replace(system.plan(request), basis=pinned.basis, filter=pinned.filter)


def _end(system: StreamSystem, source: Source, pinned: Plan, lookback: timedelta) -> Cut:
    request = PlanRequest(source, pinned.window, pinned.reader, basis=pinned.basis, slack=lookback, on_loss="record")
    try:
        return system.plan(request).end_cut
    except WindowNotReady:
        return system.tail(source)  # lookback is not over: as far as there is anything
