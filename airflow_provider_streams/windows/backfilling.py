"""The steps of a backfill: choose, plan, read in jobs, record each window."""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import (
    AccessError,
    BackfillIncomplete,
    DataLoss,
    FewerRows,
    InvalidRequest,
    InvalidWindow,
    JournalError,
    ReadStalled,
    StreamsError,
    SystemUnavailable,
    WindowNotReady,
)
from airflow_provider_streams.model.backfill import (
    Limits,
    PlannedWindow,
    Preview,
    Selection,
    reading_speed,
)
from airflow_provider_streams.model.basis import Basis, Chained, Cuts, PublishTime, event_time_of
from airflow_provider_streams.model.coverage import Coverage, WindowState
from airflow_provider_streams.model.event_field import column_of
from airflow_provider_streams.model.grid import Grid, grid_through
from airflow_provider_streams.model.landing import Landed, Landing
from airflow_provider_streams.model.plan import DEFAULT_SPLIT_BYTES, OnLoss, OnUnproven, Plan
from airflow_provider_streams.model.replanning import lost_since
from airflow_provider_streams.model.row_filter import FieldFilter
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.model.timeline import undecodable_words
from airflow_provider_streams.model.undecodable import Undecodable
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.windows.acts import Acts
from airflow_provider_streams.windows.ask import Ask
from airflow_provider_streams.windows.fitting import Fitting, Outgrown, check_room
from airflow_provider_streams.windows.horizon import horizon_of
from airflow_provider_streams.windows.jobs import land_together
from airflow_provider_streams.windows.kept_landing import grid_of
from airflow_provider_streams.windows.landing import (
    Foreseen,
    check,
    check_landable,
    enter,
    fitting_foreseen,
    fitting_of,
    land_anew,
)
from airflow_provider_streams.windows.lateness import Recount, plan_with_late_rows, recounts
from airflow_provider_streams.windows.own_table import Entered
from airflow_provider_streams.windows.planning import WindowRead, fresh_plan, pinned_plan
from airflow_provider_streams.windows.readiness import WindowQuestion
from airflow_provider_streams.windows.reading import Begin, Entry, RunIds, recorded_planning
from airflow_provider_streams.windows.table import foresee
from airflow_provider_streams.windows.workplace import Workplace

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.spark.batch_spec import WindowFailure, WindowResult
    from airflow_provider_streams.systems.base import StreamSystem

_log = logging.getLogger(__name__)

_PLANNERS = 4


@dataclass(frozen=True)
class Backfill:
    """Which windows of which source, for whom, and how.

    Raises:
        InvalidRequest: a basis whose windows need an order; late rows are to be read, and nobody says how late they
            may be.
    """

    source: Source
    span: Window
    grid: Grid
    reader: str
    selection: Selection
    landing: Landing = field(default_factory=Landing)
    basis: Basis = field(default_factory=PublishTime)
    on_loss: OnLoss = "fail"
    on_unproven: OnUnproven = "land"
    undecodable: Undecodable = field(default_factory=Undecodable)
    target_split_bytes: int = DEFAULT_SPLIT_BYTES
    lookback: timedelta | None = None
    """How long after a window's end its late rows may be stored; None: late rows are not looked for."""
    limits: Limits = field(default_factory=Limits)
    acts: Acts = field(default_factory=Acts)
    whole: Source | None = None
    """See `PlanRequest`."""

    def __post_init__(self) -> None:
        check_any_order(self.basis)
        if "late" in self.selection.select and self.lookback is None:
            raise InvalidRequest(
                "select='late' reads windows again as far as their late rows were stored: say how late that may be "
                "with lookback=timedelta(..)"
            )

    @property
    def ask(self) -> Ask:
        """What the reader is to land."""
        return Ask(self.source, self.reader, self.landing, self.basis.name, self.grid, event_time_of(self.basis))

    def read_of(self, window: Window) -> WindowRead:
        """One of its windows."""
        question = WindowQuestion(self.source, window, self.basis, self.whole)
        return WindowRead(
            question, self.reader, self.on_loss, self.target_split_bytes, self.on_unproven, self.undecodable
        )


def check_any_order(basis: Basis) -> None:
    """Refuse a basis whose windows cannot be read in any order.

    Raises:
        InvalidRequest: it is one.
    """
    if isinstance(basis, Cuts | Chained):
        raise InvalidRequest(
            "a backfill reads windows of time, in any order: its basis cannot be Chained() or Cuts(..)"
        )


def backfill_grid(journal: Journal, source_key: str, reader: str, length: timedelta | str | None, span: Window) -> Grid:
    """How the windows of a backfill tile time: as it says, else as its reader's do.

    Raises:
        InvalidWindow: it does not say, and nothing was read yet that could tell; or see `asked_grid`.
    """
    grid = grid_of(journal, source_key, reader)
    if length is not None:
        return asked_grid(length, span, grid)
    if grid is None:
        raise InvalidWindow(
            f"reader {reader!r} of {source_key} has no grid yet: say how long its windows are, with "
            "window_length=timedelta(..) or a text like '1h' or '1d Europe/Berlin'"
        )
    return grid


def asked_grid(length: timedelta | str, span: Window, known: Grid | None) -> Grid:
    """The grid of a length, through a span's start where it is a plain one.

    Raises:
        InvalidWindow: no whole window of it lies in the span, and it is not the reader's: it would become it.
    """
    grid = grid_through(length, span.start)
    if str(grid) != str(known) and next(grid.cells(span.start, span.end), None) is None:
        raise InvalidWindow(f"no whole window of {grid} lies in {span}, the first one is {grid.cell(span.start)}")
    return grid


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a backfill did."""

    landed: tuple[tuple[Plan, Landed], ...] = ()
    """What was read of each window that is covered now."""
    failures: dict[str, str] = field(default_factory=dict)
    """Window to cause."""
    retryable: bool = False
    """Whether some failure may pass by itself."""

    @property
    def covered(self) -> tuple[Window, ...]:
        """The windows that are covered now."""
        return tuple(plan.window for plan, _ in self.landed)

    @property
    def rows(self) -> int:
        """Of all of them."""
        return sum(landed.receipt.rows for _, landed in self.landed)

    @property
    def bytes(self) -> int:
        """Payload bytes of these rows."""
        return sum(landed.receipt.bytes for _, landed in self.landed)

    @property
    def quarantined(self) -> int:
        """Events of all of them that could not be decoded, and lie beside the rows."""
        return sum(landed.receipt.totals["quarantined"] for _, landed in self.landed)

    @property
    def dropped(self) -> int:
        """Events of all of them that could not be decoded, and were left out."""
        return sum(landed.receipt.totals["dropped"] for _, landed in self.landed)

    @property
    def words(self) -> str:
        """What is said of it, of a job or of all."""
        said = f"{len(self.covered)} windows covered, {self.rows:,} rows"
        if self.quarantined or self.dropped:
            said += f" ({undecodable_words(self.quarantined, self.dropped)})"
        return said + (f", {len(self.failures)} failed" if self.failures else "")

    def and_then(self, other: Outcome) -> Outcome:
        """Both together."""
        failures = {**self.failures, **other.failures}
        return Outcome((*self.landed, *other.landed), failures, self.retryable or other.retryable)

    def as_it_stands(self) -> Outcome:
        """Without windows that later ones took the place of, as they may with `overlap="replace"`."""
        standing: list[tuple[Plan, Landed]] = []
        for one in self.landed:
            window = one[0].window
            first = bisect_right(standing, window.start, key=lambda held: held[0].window.end)
            last = bisect_left(standing, window.end, key=lambda held: held[0].window.start)
            standing[first:last] = [one]
        kept = {id(one) for one in standing}
        return replace(self, landed=tuple(one for one in self.landed if id(one) in kept))


class Backfiller:
    """Runs one backfill.

    Args:
        place: where.
        backfill: what to do.
        ids: who does it.
    """

    def __init__(self, place: Workplace, backfill: Backfill, ids: RunIds) -> None:
        self._place, self._backfill, self._ids = place, backfill, ids
        self._journal = place.journal
        self._options: dict[str, str] | None = None
        self._entered: Entered | None = None
        self._fitting = Fitting(backfill.landing)
        self._foreseen = Foreseen()
        self._landable: set[str] = set()

    def coverage(self) -> Coverage:
        """What the journal knows of the span; after a preview that pins nothing, what it would know if that did."""
        one = self._backfill
        return foresee(
            self._journal, one.source.key, one.reader, one.span, landing=self._foreseen.landing, grid=one.grid
        )

    def recount(self) -> int:
        """Count the late rows of the covered windows; how many there are in all. Nothing without `lookback`."""
        lookback = self._backfill.lookback
        if lookback is None:
            return 0
        with closing(self._place.stream.system()) as system:
            args = (self._backfill.source, self._backfill.reader, self.coverage().select("covered"))
            found = list(recounts(self._journal, system, *args, lookback=lookback, on_loss=self._backfill.on_loss))
        total = 0
        for job in _jobs_of(found, self._backfill.limits):
            results = self._read([one.plan for one in job], Landing(None, None, _counted(job[0].plan)))
            for one, result in zip(job, results, strict=True):
                total += self._count(one, result)
        self._place.figures.recounted(self._backfill.source, self._backfill.reader, total)
        _log.info("Recounted %d covered windows: %d late rows", len(found), total)
        return total

    def preview(self, *, pin: bool, system: StreamSystem | None = None) -> Preview:
        """Choose and plan the windows; with `pin` the plans are pinned, and windows that cannot be planned recorded.

        Args:
            pin: whether they will be read.
            system: plans them one by one, and nobody asks how far back it reaches; None: several side by side.

        Raises:
            LandingMismatch, OffGrid: the reader lands something else.
            AccessError, SystemUnavailable: the system refuses, or does not answer.
        """
        while True:
            self._check_landing(system, pin=pin)
            try:
                return self._preview(pin=pin, system=system)
            except Outgrown:
                land_anew(self._journal, self._backfill.ask, self._entered or Entered(None, None))

    def _preview(self, *, pin: bool, system: StreamSystem | None) -> Preview:
        coverage = self.coverage()
        chosen = self._backfill.selection.of(coverage, self._backfill.span)
        if system is None:
            planned = self._planned(chosen, pin=pin)
            with closing(self._place.stream.system()) as asked:
                horizon = horizon_of(self._journal, asked, self._backfill.source)
        else:
            planned, horizon = [self._plan_one(system, item, pin=pin) for item in chosen], None
        return Preview(
            self._backfill.span,
            tuple(sorted(self._backfill.selection.select)),
            tuple(planned),
            self._backfill.limits,
            horizon,
            reading_speed(coverage.windows),
        )

    def run(self, preview: Preview, done: Callable[[int, Outcome], None]) -> Outcome:
        """Read what was planned and pinned, job by job; each window is recorded as soon as its job has ended.

        Args:
            preview: from `preview(pin=True)`.
            done: told after each job: its number from 1, and what came of it.

        Raises:
            AccessError, SystemUnavailable, PreflightFailed, InvalidRequest, SinkError: what concerns all windows
                alike. Jobs that ended before stay covered.
        """
        unplanned = preview.having("lost", "failed")
        total = Outcome(
            failures={str(item.window): f"{item.error_type}: {item.cause}" for item in unplanned},
            retryable=any(item.retryable for item in unplanned),
        )
        for number, job in enumerate(preview.jobs, 1):
            outcome = self._run_job(job)
            done(number, outcome)
            total = total.and_then(outcome)
        return total.as_it_stands()

    def check(self, outcome: Outcome) -> None:
        """Complain about what is not covered.

        Raises:
            BackfillIncomplete: some windows are not.
        """
        if outcome.failures:
            raise BackfillIncomplete(
                self._backfill.source, len(outcome.covered), outcome.failures, retryable=outcome.retryable
            )

    # Landing

    def _check_landing(self, system: StreamSystem | None, *, pin: bool) -> None:
        """What is to be landed must be what the reader lands; from then on it is."""
        one = self._backfill
        windows = list(one.grid.cells(one.span.start, one.span.end))
        if pin:
            self._entered = enter(self._journal, one.ask, windows, one.acts, partial(self._check_room, system))
            self._fitting = fitting_of(one.ask, self._entered, one.acts)
            return
        self._foreseen = check(self._journal, one.ask, windows, one.acts, partial(self._check_room, system))
        if not one.acts.reland:
            self._fitting = fitting_foreseen(one.ask, self._foreseen, one.acts)

    def _check_room(self, system: StreamSystem | None) -> None:
        with closing(self._place.stream.system()) if system is None else nullcontext(system) as asked:
            check_room(asked, self._backfill.ask, self._backfill.span)

    # Planning

    def _planned(self, chosen: Sequence[WindowState], *, pin: bool) -> list[PlannedWindow]:
        """All chosen windows, planned by a few threads with a connection each."""
        shares = [chosen[first::_PLANNERS] for first in range(min(_PLANNERS, len(chosen)))]
        if not shares:
            return []
        systems = [self._place.stream.system() for _ in shares]
        with ThreadPoolExecutor(len(shares), thread_name_prefix="streams-plan") as pool:
            parts = [
                pool.submit(self._plan_share, system, share, pin=pin)
                for system, share in zip(systems, shares, strict=True)
            ]
            found = [one for part in parts for one in part.result()]
        return sorted(found, key=lambda one: one.window)

    def _plan_share(self, system: StreamSystem, share: Sequence[WindowState], *, pin: bool) -> list[PlannedWindow]:
        with closing(system):
            return [self._plan_one(system, item, pin=pin) for item in share]

    def _plan_one(self, system: StreamSystem, item: WindowState, *, pin: bool) -> PlannedWindow:
        try:
            plan = self._plan(system, item, pin=pin)
        except WindowNotReady as waiting:
            return PlannedWindow(item.window, item.state, "not ready", cause=waiting.reason)
        except (AccessError, JournalError):
            raise
        except StreamsError as error:
            if isinstance(error, SystemUnavailable) and not isinstance(error, ReadStalled):
                raise
            return PlannedWindow(
                item.window,
                item.state,
                "lost" if isinstance(error, DataLoss) else "failed",
                cause=str(error),
                error_type=type(error).__name__,
                retryable=error.retryable,
            )
        if not pin:
            self._check_landable(system, plan)
        return PlannedWindow.of(item, plan)

    def _check_landable(self, system: StreamSystem, plan: Plan) -> None:
        """Windows of the same columns are looked at once: what a table refuses of one ends the backfill of all.

        With `reland` the table may be set aside, for whichever window comes first: nobody looks at it.
        """
        columns = "" if plan.decoding is None else f"{plan.decoding.value} {plan.decoding.key}"
        if columns not in self._landable:
            foreseen = replace(self._foreseen, terms=None) if self._backfill.acts.reland else self._foreseen
            check_landable(self._journal, system, self._backfill.ask, foreseen, plan)
            self._landable.add(columns)

    def _plan(self, system: StreamSystem, item: WindowState, *, pin: bool) -> Plan:
        read, replan = self._backfill.read_of(item.window), self._backfill.acts.replan
        pinned = self._journal.pinned(read.source_key, read.reader, item.window)
        if item.late_rows and pinned is not None and self._backfill.lookback is not None:
            plan = self._plan_with_late_rows(system, item, pinned, self._backfill.lookback)
            return self._journal.replan(read.source_key, plan) if pin else plan
        if not pin:
            if pinned is not None and not replan:
                return pinned
            return fresh_plan(self._journal, system, read, replan=replan, fitting=self._fitting)
        with recorded_planning(self._journal, read, self._ids):
            return pinned_plan(self._journal, system, read, replan=replan, fitting=self._fitting)

    def _plan_with_late_rows(self, system: StreamSystem, item: WindowState, pinned: Plan, lookback: timedelta) -> Plan:
        """A fresh plan that may take the pinned one's place.

        Raises:
            FewerRows: it cannot hold what the table holds, and nobody said that it need not: the window stays covered.
        """
        source, on_loss = self._backfill.source, self._backfill.on_loss
        plan = plan_with_late_rows(self._journal, system, source, pinned, lookback, on_loss=on_loss)
        self._fitting.check(system, plan)
        lost = "" if self._backfill.acts.accept_fewer or not item.rows else lost_since(pinned, plan)
        if lost:
            raise FewerRows(source, item.window, item.rows, None, lost)
        return plan

    # Reading

    def entry(self, item: PlannedWindow) -> Entry | None:
        """A planned window as it is read; None: its plan is pinned no more."""
        read = self._backfill.read_of(item.window)
        plan = self._journal.pinned(read.source_key, read.reader, item.window)
        begin = Begin(self._entered or Entered(None, None), self._ids, self._backfill.acts)
        return None if plan is None else Entry(read, plan, self._backfill.landing, begin)

    def _run_job(self, job: Sequence[PlannedWindow]) -> Outcome:
        entries = [entry for entry in map(self.entry, job) if entry is not None]
        outcome = Outcome()
        for entry, result in zip(entries, land_together(self._place, entries), strict=True):
            one = Outcome(((entry.plan, result),)) if isinstance(result, Landed) else _failed(entry.plan, result)
            outcome = outcome.and_then(one)
        return outcome

    def _count(self, one: Recount, result: WindowResult) -> int:
        if isinstance(result, Landed):
            if one.item.run is not None:
                self._journal.count_late(one.item.run.id, result.receipt.rows)
            return result.receipt.rows
        _log.warning("%s could not be recounted: %s", one.item.window, result.message)
        return 0

    def _read(self, plans: Sequence[Plan], landing: Landing) -> list[WindowResult]:
        """Read without landing."""
        from airflow_provider_streams.spark.batch_spec import ChunkSpec  # noqa: PLC0415 - Spark's side when used
        from airflow_provider_streams.spark.spec import JobSpec  # noqa: PLC0415

        if self._options is None:
            self._options = self._place.stream.options()
        how = JobSpec(
            plan=plans[0],
            columns=landing.columns,
            on_loss=self._backfill.on_loss,
            options=self._options,
            small_plan_bytes=self._place.small_plan_bytes,
            undecodable=Undecodable("drop"),
        )
        results: list[WindowResult] = self._place.spark(ChunkSpec.of(plans, how))
        return results


def _failed(plan: Plan, failure: WindowFailure) -> Outcome:
    cause = f"{failure.error_type}: {failure.message}"
    return Outcome(failures={str(plan.window): cause}, retryable=failure.retryable)


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


def summary(preview: Preview, outcome: Outcome | None, late_rows: int) -> dict[str, Any]:
    """What a backfill returns as XCom: plain JSON values; without an outcome, what a dry run shows."""
    shown = preview.to_json()
    shown.pop("details")
    if outcome is None:
        return {**shown, "verdict": "planned", "late_rows": late_rows}
    return {
        **shown,
        "verdict": "complete" if not outcome.failures else "incomplete",
        "covered": [str(window) for window in outcome.covered],
        "rows": outcome.rows,
        "bytes_read": outcome.bytes,
        "quarantined": outcome.quarantined,
        "dropped": outcome.dropped,
        "failures": outcome.failures,
        "late_rows": late_rows,
    }
