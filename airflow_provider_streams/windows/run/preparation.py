"""What comes before a table's windows are read: claim the table, choose its windows, plan and pin them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import DataLoss, RowCountDecreased, SourceReplaced, StreamsError
from airflow_provider_streams.model.window.backfill import PlannedWindow, Preview, reading_speed
from airflow_provider_streams.model.window.basis import Chained
from airflow_provider_streams.spark.job.concurrency import AT_ONCE, side_by_side
from airflow_provider_streams.windows.after_landing.late_rows import LateRows
from airflow_provider_streams.windows.claim.claim import claim_table, preview_claim, start_new_landing
from airflow_provider_streams.windows.claim.decision import TableClaim
from airflow_provider_streams.windows.claim.landing_checks import (
    check_first_columns,
    check_landable,
    refuse_overlaps,
    row_requirements,
)
from airflow_provider_streams.windows.claim.plan_fits_table import Room, SchemaOutgrown
from airflow_provider_streams.windows.claim.table_coverage import foresee
from airflow_provider_streams.windows.plan.payload_decoding import log_undecoded
from airflow_provider_streams.windows.plan.planning import fresh_plan, pinned_plan
from airflow_provider_streams.windows.run.job_landing import PinnedWindow
from airflow_provider_streams.windows.run.recording import RunStart, recorded_planning
from airflow_provider_streams.windows.run.request import OneWindow, ReadRequest

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.model.plan.plan import Plan
    from airflow_provider_streams.model.window.coverage import WindowState
    from airflow_provider_streams.model.window.window import Window
    from airflow_provider_streams.systems.base import StreamSystem
    from airflow_provider_streams.systems.system_pool import SystemPool
    from airflow_provider_streams.windows.claim.decision import Decision
    from airflow_provider_streams.windows.plan.planning import WindowRead
    from airflow_provider_streams.windows.run.window_context import WindowContext


@dataclass(frozen=True, slots=True)
class PreparedTable:
    """A table, and its windows to read."""

    request: ReadRequest
    preview: Preview
    plans: Mapping[Window, Plan] = field(default_factory=dict)
    """Of a single window. Those of a span are many: the journal keeps them until their job."""
    begin: RunStart | None = None
    """How its runs begin; None: a dry run claimed nothing."""

    @property
    def reads(self) -> list[tuple[WindowRead, Plan]]:
        """The single window with its plan."""
        return [(self.request.read_of(window), plan) for window, plan in self.plans.items()]

    def entry(self, journal: Journal, window: Window) -> PinnedWindow | None:
        """A planned window as it is read; None: its plan is no longer pinned, or never was."""
        read = self.request.read_of(window)
        plan = self.plans.get(window) or journal.pinned(read.source_key, read.reader, window)
        return None if plan is None or self.begin is None else PinnedWindow(read, plan, self.begin)


class TablePreparation:
    """Claims one table, and plans and pins its windows; side by side, if no other table is prepared meanwhile."""

    def __init__(
        self, window_context: WindowContext, request: ReadRequest, systems: SystemPool, *, side_by_side: bool
    ) -> None:
        self._window_context, self._request, self._systems = window_context, request, systems
        self._journal, self._landing_request = window_context.journal, request.landing_request
        self._windows = request.windows.cells(request.window_schedule)
        self._room = Room(systems.one, self._landing_request, request.windows.span)
        self._threads = AT_ONCE if side_by_side else 1
        self._claim: TableClaim | Decision

    def prepare(self) -> PreparedTable:
        """Claim, choose, plan and pin; windows that can never be planned are recorded.

        Raises:
            LandingMismatch, WindowNotAligned, TableOwnedByOther, WindowsOverlap: the reader may not land so.
            StreamsError: planning failed; a failure of one window of a span is only noted in the preview.
        """
        with self._systems.one() as system:
            log_undecoded(self._journal, system, self._request.source, self._request.reader)
        while True:
            self._claim = self._claimed()
            try:
                return self._planned()
            except SchemaOutgrown:  # under a new landing any columns fit
                start_new_landing(self._journal, self._landing_request, self._claim)

    def _claimed(self) -> TableClaim | Decision:
        request = self._request
        with self._systems.one() as system:
            check_first_columns(self._journal, system, self._landing_request, request.windows.span)
        missing = self._window_context.report_missing
        return claim_table(
            self._journal, self._landing_request, self._windows, request.overrides, self._room, missing=missing
        )

    def _planned(self) -> PreparedTable:
        request, windows = self._request, self._request.windows
        coverage = foresee(
            self._journal,
            request.source.key,
            request.reader,
            windows.span,
            landing=self._claim.landing,
            window_schedule=request.window_schedule,
        )
        is_single = isinstance(windows, OneWindow)
        if is_single:
            refuse_overlaps(self._landing_request, windows.span, request.overrides, coverage)
        self._fitting = row_requirements(self._landing_request, self._claim, request.overrides)
        with side_by_side(self._plan_one, windows.chosen(coverage), "streams-plan", self._threads) as each:
            planned = [(item, plan if is_single else None) for item, plan in each]
        preview = Preview(
            windows.span,
            windows.select,
            tuple(item for item, _ in planned),
            windows.limits,
            bytes_per_second=reading_speed(coverage.windows),
        )
        plans = {item.window: plan for item, plan in planned if plan is not None}
        claim = self._claim if isinstance(self._claim, TableClaim) else None
        begin = RunStart(claim, request.task, request.overrides) if claim else None
        return PreparedTable(request, preview, plans, begin)

    def _plan_one(self, state: WindowState) -> tuple[PlannedWindow, Plan | None]:
        with self._systems.one() as system:
            try:
                plan = self._plan(system, state)
            except StreamsError as error:
                if self._request.windows.fails_with(error):
                    raise
                return PlannedWindow.failed(state, error), None
            self._check(system, plan)
            return PlannedWindow.of(state, plan), plan

    def _plan(self, system: StreamSystem, state: WindowState) -> Plan:
        """The plan of a window, pinned."""
        read, replan = self._request.read_of(state.window), self._request.overrides.replan
        if late := self._plan_with_late_rows(system, state):
            return self._journal.replan(read.source_key, late)
        with recorded_planning(self._journal, read, self._request.task):
            return pinned_plan(self._journal, system, read, replan=replan, fitting=self._fitting)

    def _plan_with_late_rows(self, system: StreamSystem, state: WindowState) -> Plan | None:
        """A fresh plan that may take the pinned one's place; None: no late rows are to be read.

        Raises:
            RowCountDecreased: it cannot hold what the table holds, and must: the window stays covered.
        """
        request, lookback = self._request, self._request.windows.lookback
        if not state.late_rows or lookback is None:
            return None
        pinned = self._journal.pinned(request.source.key, request.reader, state.window)
        if pinned is None:
            return None
        plan = LateRows(self._journal, system, request.source, lookback, request.on_loss).included(pinned)
        self._fitting.check(system, plan)
        lost = "" if request.overrides.allow_fewer_rows or not state.rows else plan.lost_since(pinned)
        if lost:
            raise RowCountDecreased(request.source, state.window, state.rows, None, lost)
        return plan

    def _check(self, system: StreamSystem, plan: Plan) -> None:
        """What must hold of a plan before any window is read; the job itself checks those that are read."""


class DryRunPreparation(TablePreparation):
    """Foresees what `TablePreparation` does. A table is not claimed, and a window keeps the plan that it has.

    The plan of a single window is pinned if it has none, unless `replan` asks for a fresh one.
    """

    _claim: Decision
    _checked: frozenset[str] = frozenset()

    def _claimed(self) -> Decision:
        overrides = self._request.overrides
        return preview_claim(self._journal, self._landing_request, self._windows, overrides, self._room)

    def _plan(self, system: StreamSystem, state: WindowState) -> Plan:
        read, replan = self._request.read_of(state.window), self._request.overrides.replan
        try:
            if isinstance(self._request.windows, OneWindow) and not replan:
                return super()._plan(system, state)
            late = self._plan_with_late_rows(system, state)
            pinned = None if replan else self._journal.pinned(read.source_key, read.reader, state.window)
            if late or pinned is None:
                return late or fresh_plan(self._journal, system, read, replan=replan, fitting=self._fitting)
            return self._pinned_as_held(system, read, pinned)
        except SchemaOutgrown as outgrown:  # a run begins a new landing, and so a table of any columns
            self._claim = self._claim.begun_again(self._landing_request)
            self._fitting = row_requirements(self._landing_request, self._claim, self._request.overrides)
            return outgrown.plan

    def _pinned_as_held(self, system: StreamSystem, read: WindowRead, pinned: Plan) -> Plan:
        """A pinned plan, or one that shows which of its events the stream no longer holds.

        Raises:
            DataLoss, SourceReplaced: a run could not read what is pinned.
        """
        if isinstance(read.question.basis, Chained):  # which plans only the next window of its chain
            return pinned
        try:
            fresh = fresh_plan(self._journal, system, read, replan=False)
            system.check_origin(pinned)
        except (DataLoss, SourceReplaced):
            raise
        except StreamsError:  # a run needs no fresh plan: the cuts of its edges may be forgotten by now
            return pinned
        return fresh if fresh.losses else pinned

    def _check(self, system: StreamSystem, plan: Plan) -> None:
        """See once for all windows of the same columns that the table can take them."""
        columns = "" if plan.decoding is None else f"{plan.decoding.value} {plan.decoding.key}"
        if columns not in self._checked:
            check_landable(self._journal, system, self._landing_request, self._claim, plan)
            self._checked |= {columns}
