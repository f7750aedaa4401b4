"""One run of a task that reads windows: prepare every table, then read what is planned, job by job.

A single window of one table, the windows of a span, and both for the topics or streams of a source, each in its own
table, go the same way. Each topic or stream is a source of its own; what fails for one does not hold up the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import (
    StartTrimmed,
    StreamsError,
)
from airflow_provider_streams.model.bin_packing import packed
from airflow_provider_streams.model.sinks.landing import Landed
from airflow_provider_streams.model.sinks.placeholders import SourceTable
from airflow_provider_streams.systems.system_pool import SystemPool
from airflow_provider_streams.windows.after_landing.late_rows import recount
from airflow_provider_streams.windows.after_landing.retention import horizon_of
from airflow_provider_streams.windows.plan.fan_out_sources import Expansion, expand, has_changed, vanished
from airflow_provider_streams.windows.plan.planning import WindowRead
from airflow_provider_streams.windows.plan.readiness import WindowQuestion
from airflow_provider_streams.windows.plan.tail_observations import observe_tail
from airflow_provider_streams.windows.run.each_table import EachTable
from airflow_provider_streams.windows.run.job_landing import PinnedWindow, land_together
from airflow_provider_streams.windows.run.outcome import LandedWindow, Outcome
from airflow_provider_streams.windows.run.preparation import DryRunPreparation, PreparedTable, TablePreparation
from airflow_provider_streams.windows.run.recording import recorded_planning
from airflow_provider_streams.windows.run.request import OneWindow, ReadRequest
from airflow_provider_streams.windows.run.unplanned_columns import land_unplanned

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_provider_streams.model.plan.plan import Plan
    from airflow_provider_streams.model.window.backfill import PlannedWindow
    from airflow_provider_streams.model.window.window import Window
    from airflow_provider_streams.spark.job.outcomes import WindowFailure
    from airflow_provider_streams.windows.run.window_context import WindowContext

_log = logging.getLogger(__name__)

_Gone = tuple[SourceTable, "Window", StreamsError]
"""A topic or stream that no longer exists, and what is lost of a window."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a run will read, and what it cannot."""

    request: ReadRequest
    tables: tuple[PreparedTable, ...]
    outcome: Outcome = field(default_factory=Outcome)
    """Of windows that are not read."""
    sources: tuple[SourceTable, ...] = ()
    """The topics or streams that have a table each, whether it was prepared or not."""
    late_rows: int = 0

    @property
    def reads(self) -> list[tuple[WindowRead, Plan, None]]:
        """The single window of each table with its plan."""
        return [(read, plan, None) for table in self.tables for read, plan in table.reads]

    @property
    def jobs(self) -> list[list[tuple[PreparedTable, PlannedWindow]]]:
        """The Spark jobs, in order of time; each may read windows of many topics or streams."""
        items = [(table, item) for table in self.tables for item in table.preview.readable]
        items.sort(key=lambda found: found[1].window)
        limits = self.request.windows.limits
        return list(packed(items, lambda found: found[1].bytes, limits.max_bytes, limits.max_windows))


class WindowRun:
    """Reads the windows of a request."""

    def __init__(self, window_context: WindowContext, request: ReadRequest) -> None:
        self._window_context, self._journal, self.request = window_context, window_context.journal, request

    def prepare(self, *, dry_run: bool = False) -> Prepared:
        """Claim the tables, and plan and pin their windows; a dry run claims nothing.

        Raises:
            StreamsError: an error that concerns all windows; of one table, also what planning a single window met.
        """
        with closing(SystemPool(self._window_context.stream.system)) as systems:
            if self.request.tables is not None:
                return self._prepare_tables(systems, dry_run=dry_run)
            self.request = self.request.with_schedule(self._journal, [self.request.source])
            late_rows = recount(self._window_context, systems, self.request)
            table = self._preparation(self.request, systems, dry_run=dry_run).prepare()
            if not isinstance(self.request.windows, OneWindow):
                table = replace(table, preview=replace(table.preview, horizon=self._horizon(systems)))
            return Prepared(self.request, (table,), _unread(table), late_rows=late_rows)

    def _horizon(self, systems: SystemPool) -> datetime | None:
        """None if it cannot be told, as of a deleted topic: the preview only shows it."""
        try:
            with systems.one() as system:
                return horizon_of(self._journal, system, self.request.source)
        except StreamsError as error:
            _log.warning("%s: the retention horizon is not known: %s", self.request.source, error)
            return None

    def _preparation(self, request: ReadRequest, systems: SystemPool, *, dry_run: bool) -> TablePreparation:
        kind = DryRunPreparation if dry_run else TablePreparation
        return kind(self._window_context, request, systems, side_by_side=self.request.tables is None)

    # Many tables

    def _prepare_tables(self, systems: SystemPool, *, dry_run: bool) -> Prepared:
        expansion, gone = self._expand(systems)
        _log.info("%s is %d topics or streams now", self.request.source, len(expansion))
        outcome = self._refused(expansion, gone, dry_run=dry_run)

        def prepare_one(table: SourceTable) -> PreparedTable | None:
            request = self.request.of_table(table)
            if self._is_done(request):
                return None
            return self._preparation(request, systems, dry_run=dry_run).prepare()

        with outcome.noting_earlier_failures():
            found = EachTable(self._window_context, expansion.tables).prepare(prepare_one)
        tables = []
        for source_table, one in zip(expansion.tables, found, strict=True):
            if isinstance(one, StreamsError):
                outcome = outcome.and_then(_failed(str(source_table), self.request.windows.span, one))
            elif one is None:
                outcome = outcome.and_then(Outcome(before=1))
            else:
                tables.append(one)
                outcome = outcome.and_then(_unread(one))
        return Prepared(self.request, tuple(tables), outcome, expansion.tables)

    def _expand(self, systems: SystemPool) -> tuple[Expansion, list[_Gone]]:
        """The topics or streams now, and those that are gone with what they may have held of a window."""
        request, sink = self.request, self.request.tables
        assert sink is not None  # noqa: S101 - the caller looked
        with systems.one() as system:
            expansion = expand(system, request.source, sink)
            self.request = request = request.with_schedule(self._journal, [one.source for one in expansion.tables])
            questions = [
                WindowQuestion(request.source, window, request.basis)
                for window in request.windows.cells(request.window_schedule)
            ]
            gone: list[_Gone] = [
                (one.table, question.window, one.error(question))
                for question in questions
                for one in vanished(self._journal, question, sink, expansion)
            ]
            again = has_changed(self._journal, request.source, expansion)
            observe_tail(self._journal, system, request.source, again=again)
        return expansion, gone

    def _is_done(self, request: ReadRequest) -> bool:
        """Whether an earlier try of this task has covered the window of a table."""
        windows = request.windows
        if not isinstance(windows, OneWindow) or windows.is_own is None:
            return False
        return not windows.is_wanted(request.coverage(self._journal, windows.window), is_gone=False)

    def _refused(self, expansion: Expansion, gone: Sequence[_Gone], *, dry_run: bool) -> Outcome:
        """The windows that cannot even be planned, recorded as such."""
        is_single = isinstance(self.request.windows, OneWindow)
        outcome = Outcome()
        for collision in expansion.meetings:
            window = self.request.windows.span
            outcome = outcome.and_then(self._refuse(collision.table, window, collision.error(), records=is_single))
        for table, window, error in gone:
            outcome = outcome.and_then(self._refuse(table, window, error, records=is_single or not dry_run))
        return outcome

    def _refuse(self, table: SourceTable, window: Window, error: StreamsError, *, records: bool) -> Outcome:
        request, is_gone = self.request.of_table(table), isinstance(error, StartTrimmed)
        is_wanted = request.windows.is_wanted(request.coverage(self._journal, window), is_gone=is_gone)
        if is_gone and request.on_loss == "record":
            if is_wanted:
                _log.warning("%s", error)
            return Outcome()
        if not is_wanted:
            return Outcome(before=int(isinstance(request.windows, OneWindow)))
        record = recorded_planning(self._journal, request.read_of(window), request.task) if records else nullcontext()
        with suppress(StreamsError), record:
            raise error
        return _failed(str(table), window, error)

    # Reading

    def land(self, prepared: Prepared, done: Callable[[int, Outcome], None]) -> Outcome:
        """Read what was planned and pinned, job by job; each window is recorded as soon as its job has ended.

        Args:
            prepared: the windows.
            done: called after each job with its number, from 1, and what became of its windows.

        Returns:
            What became of all windows, also of those that could not be planned.

        Raises:
            StreamsError: an error that concerns all windows. Jobs that ended before stay covered.
        """
        total = prepared.outcome
        for number, job in enumerate(prepared.jobs, 1):
            entries = [table.entry(self._journal, item.window) for table, item in job]
            with total.noting_earlier_failures():
                outcome = self._land_job([entry for entry in entries if entry is not None])
            done(number, outcome)
            total = total.and_then(outcome)
        return total.without_replaced()

    def _land_job(self, entries: Sequence[PinnedWindow]) -> Outcome:
        landed: list[LandedWindow] = []
        failures: dict[tuple[str, Window], WindowFailure] = {}
        fans_out = self.request.tables is not None
        first = land_together(self._window_context, entries, fans_out=fans_out)
        for entry, result in land_unplanned(self._window_context, entries, first, fans_out=fans_out):
            if isinstance(result, Landed):
                landed.append((entry.read, entry.plan, result))
            else:
                failures[str(entry.read), entry.plan.window] = result
                _log.warning("%s, window %s: %s: %s", entry.read, entry.plan.window, result.error_type, result.message)
        return Outcome(tuple(landed), failures)


def _failed(name: str, window: Window, error: StreamsError) -> Outcome:
    """One that is not landed."""
    from airflow_provider_streams.spark.job.outcomes import WindowFailure  # noqa: PLC0415 - Spark's side when used

    _log.warning("%s, window %s: %s: %s", name, window, type(error).__name__, error)
    return Outcome(failures={(name, window): WindowFailure.of(error)})


def _unread(table: PreparedTable) -> Outcome:
    """Windows of a table that cannot be planned."""
    from airflow_provider_streams.spark.job.outcomes import WindowFailure  # noqa: PLC0415 - as above

    return Outcome(
        failures={
            (str(table.request.source), item.window): WindowFailure.of(item.error)
            for item in table.preview.windows
            if item.error is not None
        }
    )
