"""The steps of a backfill, without Airflow's context: choose, plan, read in jobs, record each window."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.configuration import conf

from airflow_provider_streams.errors import (
    AccessError,
    BackfillIncomplete,
    DataLoss,
    JournalError,
    ReadStalled,
    StreamsError,
    SystemUnavailable,
    WindowNotReady,
)
from airflow_provider_streams.hooks import metrics
from airflow_provider_streams.hooks.base import StreamHook, hook_for
from airflow_provider_streams.hooks.horizon import horizon_of
from airflow_provider_streams.hooks.readiness import WindowQuestion
from airflow_provider_streams.model.backfill import (
    Limits,
    PlannedWindow,
    Preview,
    Selection,
    reading_speed,
)
from airflow_provider_streams.model.basis import MAX_SKEW, BasisLike
from airflow_provider_streams.model.coverage import Coverage, WindowState
from airflow_provider_streams.model.plan import DEFAULT_SPLIT_BYTES, OnLoss, Plan
from airflow_provider_streams.model.receipt import Receipt
from airflow_provider_streams.model.source import Source
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.operators.lateness import Recount, plan_with_late_rows, recounts
from airflow_provider_streams.operators.reading import (
    Landing,
    RunIds,
    WindowRead,
    fresh_plan,
    noting_on,
    pinned_plan,
    recordable,
    recorded_planning,
)

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.spark.chunk import WindowResult
    from airflow_provider_streams.systems.base import StreamSystem

_log = logging.getLogger(__name__)

_PLANNERS = 4


@dataclass(frozen=True)
class Backfill:
    """Which windows of which source, for whom, and how."""

    source: Source
    span: Window
    length: timedelta
    reader: str
    selection: Selection
    basis: BasisLike = "publish"
    slack: timedelta = timedelta(seconds=60)
    max_skew: timedelta = MAX_SKEW
    on_loss: OnLoss = "fail"
    target_split_bytes: int = DEFAULT_SPLIT_BYTES
    replan: bool = False
    lookback: timedelta | None = None
    """How long after a window's end its late rows may be stored; None: late rows are not looked for."""
    limits: Limits = field(default_factory=Limits)

    def read_of(self, window: Window) -> WindowRead:
        """One of its windows."""
        question = WindowQuestion(self.source, window, self.basis, self.slack, self.max_skew)
        return WindowRead(question, self.reader, self.on_loss, self.target_split_bytes)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a backfill did."""

    covered: tuple[Window, ...] = ()
    rows: int = 0
    bytes: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    """Window to cause."""
    retryable: bool = False
    """Whether some failure may pass by itself."""

    def and_then(self, other: Outcome) -> Outcome:
        """Both together."""
        return Outcome(
            (*self.covered, *other.covered),
            self.rows + other.rows,
            self.bytes + other.bytes,
            {**self.failures, **other.failures},
            self.retryable or other.retryable,
        )


class Backfiller:
    """Runs one backfill.

    Args:
        journal: what is covered, and where to record what will be.
        backfill: what to do.
        ids: who does it.
        landing: where the rows go.
    """

    def __init__(self, journal: Journal, backfill: Backfill, ids: RunIds, landing: Landing) -> None:
        self._journal, self._backfill, self._ids, self._landing = journal, backfill, ids, landing
        self._hook: StreamHook = hook_for(backfill.source)
        self._options: dict[str, str] | None = None

    def coverage(self) -> Coverage:
        """What the journal knows of the span."""
        one = self._backfill
        return self._journal.coverage(one.source.key, one.reader, one.span.start, one.span.end, one.length)

    def recount(self) -> int:
        """Count the late rows of the covered windows; how many there are in all. Nothing without `lookback`."""
        lookback = self._backfill.lookback
        if lookback is None:
            return 0
        with closing(self._hook.system()) as system:
            args = (self._backfill.source, self._backfill.reader, self.coverage().select("covered"))
            found = list(recounts(self._journal, system, *args, lookback=lookback))
        total = 0
        for job in _jobs_of(found, self._backfill.limits):
            columns = (job[0].plan.filter.column,) if job[0].plan.filter else None
            results = self._read([one.plan for one in job], Landing(None, None, columns, self._landing.spark_conn_id))
            for one, result in zip(job, results, strict=True):
                if isinstance(result, Receipt) and one.item.run is not None:
                    self._journal.count_late(one.item.run.id, result.rows)
                    total += result.rows
                elif not isinstance(result, Receipt):
                    _log.warning("%s could not be recounted: %s", one.item.window, result.message)
        metrics.recounted(self._backfill.source, self._backfill.reader, total)
        _log.info("Recounted %d covered windows: %d late rows", len(found), total)
        return total

    def preview(self, *, pin: bool) -> Preview:
        """Choose and plan the windows; with `pin` the plans are pinned, and windows that cannot be planned recorded.

        Raises:
            AccessError, SystemUnavailable: the system refuses, or does not answer.
        """
        coverage = self.coverage()
        chosen = self._backfill.selection.of(coverage, self._backfill.span)
        with closing(self._hook.system()) as system:
            horizon = horizon_of(self._journal, system, self._backfill.source)
        return Preview(
            self._backfill.span,
            tuple(sorted(self._backfill.selection.select)),
            tuple(self._planned(chosen, pin=pin)),
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
        return total

    def check(self, outcome: Outcome) -> None:
        """Complain about what is not covered.

        Raises:
            BackfillIncomplete: some windows are not.
        """
        if outcome.failures:
            raise BackfillIncomplete(
                self._backfill.source, len(outcome.covered), outcome.failures, retryable=outcome.retryable
            )

    # Planning

    def _planned(self, chosen: Sequence[WindowState], *, pin: bool) -> list[PlannedWindow]:
        """All chosen windows, planned by a few threads with a connection each."""
        shares = [chosen[first::_PLANNERS] for first in range(min(_PLANNERS, len(chosen)))]
        if not shares:
            return []
        systems = [self._hook.system() for _ in shares]
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
            return PlannedWindow.of(item, self._plan(system, item, pin=pin))
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

    def _plan(self, system: StreamSystem, item: WindowState, *, pin: bool) -> Plan:
        read = self._backfill.read_of(item.window)
        pinned = self._journal.pinned(read.source_key, read.reader, item.window)
        if item.late_rows and pinned is not None and self._backfill.lookback is not None:
            plan = plan_with_late_rows(system, self._backfill.source, pinned, self._backfill.lookback)
            return self._journal.replan(read.source_key, plan) if pin else plan
        if not pin:
            return (
                pinned if pinned is not None and not self._backfill.replan else fresh_plan(self._journal, system, read)
            )
        with recorded_planning(self._journal, read, self._ids):
            return pinned_plan(self._journal, system, read, replan=self._backfill.replan)

    # Reading

    def _run_job(self, job: Sequence[PlannedWindow]) -> Outcome:
        key, reader = self._backfill.source.key, self._backfill.reader
        plans = [plan for item in job if (plan := self._journal.pinned(key, reader, item.window)) is not None]
        runs = [self._journal.start_run(key, plan, **asdict(self._ids)) for plan in plans]
        try:
            results = self._read(plans, self._landing)
        except BaseException as error:
            with noting_on(error):
                for run in runs:
                    self._journal.fail_run(run, type(error).__name__, recordable(error))
            raise
        outcome = Outcome()
        for plan, run, result in zip(plans, runs, results, strict=True):
            outcome = outcome.and_then(self._record(plan, run, result))
        return outcome

    def _record(self, plan: Plan, run: int, result: WindowResult) -> Outcome:
        if isinstance(result, Receipt):
            self._journal.finish_run(run, result)
            metrics.covered(self._backfill.source.key, plan, result)
            return Outcome((plan.window,), result.rows, result.bytes)
        self._journal.fail_run(run, result.error_type, result.message, lost=result.lost)
        cause = f"{result.error_type}: {result.message}"
        return Outcome(failures={str(plan.window): cause}, retryable=result.retryable)

    def _read(self, plans: Sequence[Plan], landing: Landing) -> list[WindowResult]:
        from airflow_provider_streams.hooks.spark import launch_chunk  # noqa: PLC0415 - Spark is loaded when it is used
        from airflow_provider_streams.spark.chunk import ChunkSpec  # noqa: PLC0415
        from airflow_provider_streams.spark.spec import SMALL_PLAN_BYTES, JobSpec  # noqa: PLC0415

        if self._options is None:
            self._options = self._hook.options()
        how = JobSpec(
            plan=plans[0],
            sink=landing.sink,
            columns=landing.columns,
            transform=landing.transform,
            on_loss=self._backfill.on_loss,
            options=self._options,
            small_plan_bytes=conf.getint("streams", "small_plan_bytes", fallback=SMALL_PLAN_BYTES),
        )
        return launch_chunk(ChunkSpec.of(plans, how), landing.spark_conn_id)


def _jobs_of(found: Sequence[Recount], limits: Limits) -> Iterator[list[Recount]]:
    """Recounts in jobs as large as those that read."""
    by_window = {one.item.window: one for one in found}
    for job in limits.pack(PlannedWindow.of(one.item, one.plan) for one in found):
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
        "failures": outcome.failures,
        "late_rows": late_rows,
    }
