"""Rows that appeared after their window was read: counts them, and plans the window again to include them.

A pinned plan ends at a position. Events that were stored after that position, with a time of the window, are late;
those before it were read. So a recount reads only from there, up to the position of the window's end plus `lookback`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import DataLoss, NoCutNearby, WindowNotReady
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.model.plan.plan import Loss, OnLoss, Plan, PlanRequest
from airflow_provider_streams.model.plan.row_filter import FieldFilter
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy
from airflow_provider_streams.model.schema.event_time_field import column_of
from airflow_provider_streams.model.sinks.landing import Landed
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.backfill import Limits, PlannedWindow
from airflow_provider_streams.model.window.basis import EventTime
from airflow_provider_streams.model.window.coverage import WindowState
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.windows.plan.pruning_by_receipts import narrowed_by_receipts, slack_of
from airflow_provider_streams.windows.plan.readiness import with_recorded

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.systems.base import StreamSystem
    from airflow_provider_streams.systems.system_pool import SystemPool
    from airflow_provider_streams.windows.run.request import ReadRequest
    from airflow_provider_streams.windows.run.window_context import WindowContext


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LateRows:
    """Plans events of a source that were stored after its windows were planned.

    They are looked for up to the end of `lookback` after a window's end, or the tail.
    """

    journal: Journal
    system: StreamSystem
    source: Source
    """As it was read."""
    lookback: timedelta
    on_loss: OnLoss = "fail"
    """`record`: use what is still held."""

    def recounts(self, reader: str, windows: Sequence[WindowState]) -> Iterator[Recount]:
        """What to read to count the late rows of covered windows.

        Windows of a basis without a row filter have none: every event is in the window it was stored in. A window is
        left out if the stream has lost events after its end, unless that loss is accepted.

        Raises:
            AccessError, SystemUnavailable: as `StreamSystem.plan`.
        """
        for item in windows:
            pinned = self.journal.pinned(self.source.key, reader, item.window) if item.run is not None else None
            if item.state != "covered" or pinned is None or pinned.filter is None:
                continue
            try:
                yield Recount(item, self.after(pinned))
            except DataLoss:
                _log.info("%s is too old to be recounted: the events after it are no longer held", item.window)

    def after(self, pinned: Plan) -> Plan:
        """Everything stored after a plan's end, filtered as the plan was.

        Rows are counted by the time that the system stored, which needs no payload, unless a field has the time.

        Raises:
            StartTrimmed: the stream no longer holds the plan's end, and loss is not accepted.
        """
        plan = self._from(pinned.end_cut, pinned)
        return plan if isinstance(plan.filter, FieldFilter) else replace(plan, decoding=None)

    def included(self, pinned: Plan) -> Plan:
        """The same window from the same start, late rows included.

        Ranges that were lost, or not proven, in the pinned plan remain so.

        Raises:
            StartTrimmed: the stream no longer holds the window's start, and loss is not accepted.
        """
        plan = self._from(pinned.start_cut, pinned)
        doubts = {part.shard: part.verdict for part in pinned.unproven}
        lost = {loss.shard for loss in plan.losses}
        ranges = tuple(
            part if part.shard in lost else replace(part, verdict=doubts.get(part.shard, part.verdict))
            for part in plan.ranges
        )
        known = (loss for loss in pinned.losses if not any(_is_within(loss, now) for now in plan.losses))
        terms = pinned.terms
        if terms is not None and self.on_loss == "record":
            terms = replace(terms, on_loss="record")
        return replace(plan, ranges=ranges, losses=(*known, *plan.losses), terms=terms)

    def _from(self, start: Cut, pinned: Plan) -> Plan:
        """From a cut on. Later windows have read what follows; where they met nothing of this one, nothing is late."""
        system, end = self.system, self._end(pinned)
        asked = PlanRequest(
            self.source,
            pinned.window,
            pinned.reader,
            slack=timedelta(0),
            on_loss=self.on_loss,
            changes_before=pinned.changes,
        )
        if declaration_of(self.source.system).finds_times:
            asked = _by_shard(system, asked, start, end)
        else:
            # shards end, and others follow them: cuts are of one moment each, as recorded ones are
            asked = replace(asked, basis="append", start_cut=start, end_cut=system.go_on(start, end) or start)
        plan = replace(system.plan(asked), basis=pinned.basis, filter=pinned.filter)
        return narrowed_by_receipts(self.journal, self.source.key, plan, lateness=self.lookback, slack=slack_of(pinned))

    def _end(self, pinned: Plan) -> Cut:
        lookback, rows = self.lookback, pinned.filter
        asked = PlanRequest(
            self.source,
            pinned.window,
            pinned.reader,
            basis=pinned.basis,
            slack=lookback,
            on_loss="record",
            changes_before=pinned.changes,
        )
        if pinned.basis == "event":
            event = EventTime(lookback)
            if isinstance(rows, FieldFilter):
                event = replace(event, event_time=rows.column, unit=rows.unit)
            asked = replace(asked, event=event, slack=slack_of(pinned))
        try:
            end = self.system.plan(with_recorded(self.journal, asked)).end_cut
        except WindowNotReady:
            return self.system.tail(self.source)  # lookback is not over: as far as there is anything
        if pinned.basis != "event" or declaration_of(self.source.system).finds_times:
            return end
        # writers whose times are ahead of the clock pull the end to what was stored long before lookback is over
        return self.system.go_on(end, self._stored_by(asked.stored.end)) or end

    def _stored_by(self, moment: datetime) -> Cut:
        """A cut after all that was stored before a time: one recorded or observed soon after it; else the tail."""
        key = self.source.key
        with suppress(NoCutNearby):
            if recorded := self.journal.cut_at(key, moment):
                return recorded.cut
        seen = [one for one in self.journal.tail_observations_around(key, moment, moment) if one.at >= moment]
        return seen[0].tail if seen else self.system.tail(self.source)


def _is_within(loss: Loss, other: Loss) -> bool:
    return loss.shard == other.shard and other.start <= loss.start and loss.end <= other.end


def _by_shard(system: StreamSystem, asked: PlanRequest, start: Cut, end: Cut) -> PlanRequest:
    if end.keys() != start.keys():
        # a partition that was made since: all of it is new; one that is gone holds nothing
        head = system.parse_cut(asked.source, "earliest")
        start = Cut({shard: start.get(shard, head[shard]) for shard in end})
    end = Cut({shard: max(position, start[shard]) for shard, position in end.items()})
    return replace(asked, basis="cuts", start_cut=start, end_cut=end)


@dataclass(frozen=True, slots=True)
class Recount:
    """A covered window, and the plan of what was stored after its end since."""

    item: WindowState
    plan: Plan


def recount(window_context: WindowContext, systems: SystemPool, request: ReadRequest) -> int:
    """Count the late rows of the covered windows; how many there are in all. Nothing without `lookback`."""
    from airflow_provider_streams.spark.job.job_spec import JobSpec, WindowSpec  # noqa: PLC0415 - Spark's side when used

    journal, lookback = window_context.journal, request.windows.lookback
    if lookback is None:
        return 0
    covered = request.coverage(journal).select("covered")
    with systems.one() as system:
        late = LateRows(journal, system, request.source, lookback, request.on_loss)
        found = list(late.recounts(request.reader, covered))
    total = 0
    for job in _jobs_of(found, request.windows.limits):
        how = WindowSpec(
            plan=job[0].plan,
            columns=_counted(job[0].plan),
            on_loss=request.on_loss,
            options=window_context.stream.options(),
            small_plan_bytes=window_context.small_plan_bytes,
            undecodable=DecodeErrorPolicy("drop"),
        )
        results = window_context.spark(JobSpec.of([one.plan for one in job], how))
        for one, result in zip(job, results, strict=True):
            if not isinstance(result, Landed):
                _log.warning("%s could not be recounted: %s", one.item.window, result.message)
                continue
            total += result.receipt.rows
            if one.item.run is not None:
                journal.count_late(one.item.run.id, result.receipt.rows)
    window_context.figures.recounted(request.source, request.reader, total)
    _log.info("Recounted %s: %s", counted(len(found), "covered window"), counted(total, "late row"))
    return total


def _counted(plan: Plan) -> tuple[str, ...] | None:
    """The one column to read for counting rows: their time."""
    if isinstance(plan.filter, FieldFilter):
        return (column_of(plan.decoding, plan.filter.column),)
    return (plan.filter.column,) if plan.filter else None


def _jobs_of(found: Sequence[Recount], limits: Limits) -> Iterator[list[Recount]]:
    """Recounts in jobs as large as those that read, each of windows that count the same column."""
    by_window = {one.item.window: one for one in found}
    for columns in dict.fromkeys(_counted(one.plan) for one in found):
        alike = [one for one in found if _counted(one.plan) == columns]
        for job in limits.pack(PlannedWindow.of(one.item, one.plan) for one in alike):
            yield [by_window[item.window] for item in job]
