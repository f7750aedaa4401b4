"""Fill what is missing of a span of time, many windows in one Spark job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.hooks.workplace import workplace
from airflow_provider_streams.model.backfill import MAX_BYTES, MAX_WINDOWS, Limits, Selection, parse_select
from airflow_provider_streams.model.coverage import RunRef
from airflow_provider_streams.model.grid import Grid, parse_grid
from airflow_provider_streams.model.partition_key import KEY_FORMAT
from airflow_provider_streams.model.timeline import draw
from airflow_provider_streams.model.window import Window, utc_moment
from airflow_provider_streams.operators.announcing import announce
from airflow_provider_streams.operators.base import LandingOperator, reader_name, run_ids
from airflow_provider_streams.operators.fan_out import TablesFill
from airflow_provider_streams.operators.landing import rendered_landing
from airflow_provider_streams.operators.own_tries import OwnTries
from airflow_provider_streams.retry import terminal_errors
from airflow_provider_streams.windows.backfilling import (
    Backfill,
    Backfiller,
    Outcome,
    backfill_grid,
    check_any_order,
    summary,
)

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_streams.journal.store import Journal

_AT_WORK = {"running", "deferred", "queued", "scheduled", "up_for_retry", "up_for_reschedule", "restarting"}
"""States of a task instance that may yet cover its window."""


class BackfillWindowsOperator(LandingOperator):
    """Reads the windows of a span of time that are not covered yet, many in one Spark job, each proven on its own.

    First it previews: which windows, how many bytes, tasks and minutes, and what lies beyond the retention horizon.
    Then every plan is pinned, and jobs of at most `max_bytes` are read one after the other. A window is recorded as
    covered as soon as its job's receipts agree; one that fails or is lost does not hold up the others, and fails the
    task at the end. A retry, after a failure or a kill, goes on with what is not covered.

    Args:
        start: where the first window starts: an aware datetime, or its ISO 8601 text (templated).
        end: where the last window ends, at the latest (templated).
        window_length: the length of a window, or its text (`1h`, `1d Europe/Berlin`, see `model.grid`). Default: the
            reader's own grid.
        select: `missing` (all that are not covered), `failed`, `lost`, `late`, `all`; one or several. Windows that
            another task is reading are left to it.
        lookback: how long after a window's end its late rows may be stored: covered windows are recounted, the late
            rows shown in the coverage, and read again with `select="late"`. None: late rows are not looked for.
        max_bytes: stored bytes that one Spark job reads.
        max_windows: windows that one Spark job reads.
        partition_key_format: how a window's start becomes the partition key of its asset event, as the reading DAG's
            `CronPartitionTimetable` writes it; None: no events under keys.
        kwargs: as `LandingOperator` takes them. `reader` is that of the task which reads the windows otherwise; `basis`
            is one whose windows need no order. With `on_loss="record"`, windows that are lost are read for what is
            left of them; with `on_unproven="fail"`, such windows are left out as lost ones are. A `dry_run` pins
            nothing.

    With placeholders in the sink, the windows of each topic or stream of the source are chosen, planned and recorded on
    their own, and jobs read windows of many of them. One that appeared later has its earlier windows filled, too.

    Each landed window is told: one asset event for all of them, and one under the partition key of each. A task that
    fails can tell nothing; what it landed is told by the next of its reader's tasks that succeeds, or at once by
    `AnnounceWindowsOperator` as a teardown.

    Returns (XCom):
        `windows, bytes, tasks, jobs, minutes, horizon, beyond_horizon, not_ready, verdict, covered, rows, failures,
        late_rows, quarantined, dropped, unannounced` and more; windows by their texts, as
        `ReadWindowOperator(window=..)` takes them.
    """

    template_fields: Sequence[str] = ("start", "end", "select", *LandingOperator.template_fields)

    def __init__(
        self,
        *,
        start: datetime | str,
        end: datetime | str,
        window_length: timedelta | str | None = None,
        select: str | Sequence[str] = "missing",
        lookback: timedelta | None = None,
        max_bytes: int = MAX_BYTES,
        max_windows: int = MAX_WINDOWS,
        partition_key_format: str | None = KEY_FORMAT,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_any_order(self.basis)
        if window_length is not None:
            parse_grid(window_length)
        self.start, self.end, self.window_length = start, end, window_length
        self.select = select
        self.lookback = lookback
        self.limits = Limits(max_bytes, max_windows)
        self.partition_key_format = partition_key_format

    def execute(self, context: Context) -> dict[str, Any]:
        """Recount, preview, pin, read, record.

        Raises:
            BackfillIncomplete: some windows are not covered; retried only if some failure may pass by itself.
            StreamsError: what concerns all windows alike.
        """
        with terminal_errors(), workplace(self.source, self.spark_conn_id, self.spark) as place:
            if self.is_fan_out:
                with place.journal.kept_open():
                    return TablesFill(self, place, context)()
            backfill = self._backfill(place.journal, context)
            backfiller = Backfiller(place, backfill, run_ids(context))
            late_rows = backfiller.recount()
            preview = backfiller.preview(pin=not self.dry_run_only)
            self.log.info("Preview\n%s", preview.as_text())
            if self.dry_run_only:
                self._withhold()
                return summary(preview, None, late_rows)
            outcome = backfiller.run(preview, done=self._log_job)
            self._planned = outcome.landed
            self.log.info("Coverage\n%s", draw(backfiller.coverage(), str(self.source), horizon=preview.horizon))
            backfiller.check(outcome)
            left = self._announce(place.journal, context, backfill)
        return summary(preview, outcome, late_rows) | {"unannounced": left}

    def _announce(self, journal: Journal, context: Context, backfill: Backfill) -> int:
        """Tell what was landed; how many windows are left to tell. What landed nothing tells nothing."""
        if self.sink is None:
            return 0
        if not journal.unannounced(self.source.key, backfill.reader):
            self._withhold()
            return 0
        return announce(journal, context, backfill.ask, self.sink, self.partition_key_format)

    def _backfill(self, journal: Journal, context: Context) -> Backfill:
        def grid(reader: str, span: Window) -> Grid:
            return backfill_grid(journal, self.source.key, reader, self.window_length, span)

        return self.backfill(context, grid)

    def backfill(self, context: Context, grid: Callable[[str, Window], Grid]) -> Backfill:
        """What this task is to fill.

        Args:
            context: the run's.
            grid: how windows tile time, given the reader and the span.
        """
        ti, reader = context["ti"], reader_name(self.reader, context)
        span = Window(utc_moment(self.start), utc_moment(self.end))
        return Backfill(
            source=self.source,
            span=span,
            grid=grid(reader, span),
            reader=reader,
            landing=rendered_landing(self),
            selection=Selection(
                parse_select(self.select),
                accepts_loss=self.on_loss == "record",
                is_own=OwnTries.of(self, context).__contains__,
                is_alive=_AtWork(ti).__contains__,
            ),
            basis=self.basis,
            on_loss=self.on_loss,
            on_unproven=self.on_unproven,
            undecodable=self.undecodable,
            target_split_bytes=self.target_split_bytes,
            lookback=self.lookback,
            limits=self.limits,
            acts=self.acts,
        )

    def _log_job(self, number: int, outcome: Outcome) -> None:
        self.log.info("Job %d: %s", number, outcome.words)


class _AtWork:
    """The runs whose task instance Airflow still sees at work."""

    def __init__(self, ti: Any) -> None:
        self._ti = ti

    def __contains__(self, run: object) -> bool:
        if not isinstance(run, RunRef):
            return False
        states = self._ti.get_task_states(dag_id=run.dag_id, task_ids=[run.task_id], run_ids=[run.run_id])
        name = run.task_id if run.map_index < 0 else f"{run.task_id}_{run.map_index}"
        return states.get(run.run_id, {}).get(name) in _AT_WORK
