"""Read one window of a stream with Spark, exactly, and prove it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.hooks.workplace import workplace
from airflow_provider_streams.model.basis import event_time_of
from airflow_provider_streams.model.landing import Landed, Landing
from airflow_provider_streams.model.partition_key import KEY_FORMAT
from airflow_provider_streams.model.plan import Plan
from airflow_provider_streams.model.plan_table import plan_table
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.operators.announcing import announce
from airflow_provider_streams.operators.base import LandingOperator, reader_name, run_ids
from airflow_provider_streams.operators.fan_out import TablesRun
from airflow_provider_streams.operators.landing import rendered_landing
from airflow_provider_streams.retry import terminal_errors
from airflow_provider_streams.timetables import run_facts
from airflow_provider_streams.windows.ask import Ask
from airflow_provider_streams.windows.of_run import ResolvedWindow, resolve_window
from airflow_provider_streams.windows.planning import WindowRead
from airflow_provider_streams.windows.readiness import WindowQuestion
from airflow_provider_streams.windows.reading import plan_window, read_window, summary, undecodable_sentence

if TYPE_CHECKING:
    from airflow.sdk import Context


class ReadWindowOperator(LandingOperator):
    """Reads a window of a source with Spark and lands it; a re-run reads the same positions.

    Before reading, the plan is pinned in the journal and logged as a table. After it, the receipt is compared with
    the plan; only then is the table replaced, the window recorded as covered, and the sink's asset updated.

    With placeholders in the sink, each topic or stream of the source is planned, pinned, read, proven and recorded on
    its own, into its own table, and all of them in one Spark job. Those that fail do not hold up the others: they fail
    the task at the end, and its retry reads them alone.

    Args:
        window: an explicit window, or its text `start/end` (templated). Default: the run's partition, then its
            data interval.
        window_length: the length of the run's partition, where the DAG's timetable does not tell where the next one
            starts, as when assets trigger it: a time, or its text (`1h`, `1d Europe/Berlin`, see `model.grid`).
        kwargs: as `LandingOperator` takes them. With `dry_run`, the plan is pinned, logged and returned; with `replan`
            beside it, a fresh one is only shown, and the window keeps the plan that it has.

    Returns (XCom):
        Of a sink with placeholders: `tables, rows, written, bytes, splits, largest, window, reader, by_earlier_tries`
        and more, of bounded size. Else
        `fingerprint, reader, window, start_cut, end_cut, rows, written, bytes, splits, verdict, window_rule, seconds,
        target, quarantined, dropped` and more.
    """

    template_fields: Sequence[str] = ("window", *LandingOperator.template_fields)

    def __init__(
        self, *, window: Window | str | None = None, window_length: timedelta | str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.window = window
        self.window_length = window_length

    def execute(self, context: Context) -> dict[str, Any]:
        """Plan, pin, read, compare, land, record.

        Raises:
            StreamsError: typed; a terminal one also is an `AirflowFailException`, so that no retry is spent on it.
        """
        with terminal_errors():
            landing = rendered_landing(self)
            resolved = resolve_window(self.window, self.window_length, run_facts(context))
            self.log.info("Window %s, from the run's %s", resolved.window, resolved.rule)
            if self.is_fan_out:
                read = self._window_read(resolved, context)
                _, told = TablesRun(self, read, landing, resolved, context)()
                return told | {"window_rule": resolved.rule}
            plan, landed = self._read(resolved, landing, context)
        self._planned = [(plan, landed)]
        return summary(plan, landed, self.sink) | {"window_rule": resolved.rule}

    def _read(self, resolved: ResolvedWindow, landing: Landing, context: Context) -> tuple[Plan, Landed | None]:
        read, ids = self._window_read(resolved, context), run_ids(context)
        ask = Ask(self.source, read.reader, landing, read.basis, resolved.grid, event_time_of(self.basis))
        with workplace(self.source, self.spark_conn_id, self.spark) as place:
            if self.dry_run_only:
                plan = plan_window(place, ask, read, ids, self.acts)
                self.log.info("Plan\n%s", plan_table(plan))
                self._withhold()
                return plan, None
            plan, landed = read_window(place, ask, read, ids, self.acts, planned=self._log_plan)
            if self.sink is not None:
                key_format = KEY_FORMAT if context.get("partition_key") else None
                announce(place.journal, context, ask, self.sink, key_format)
        receipt = landed.receipt
        self.log.info("Covered %s: %s rows in %.1f s, %s", plan.window, receipt.rows, receipt.seconds, receipt.verdict)
        if said := undecodable_sentence(plan.window, receipt, self.sink):
            self.log.warning("%s", said)
        return plan, landed

    def _log_plan(self, plan: Plan) -> None:
        self.log.info("Pinned plan\n%s", plan_table(plan))

    def _window_read(self, resolved: ResolvedWindow, context: Context) -> WindowRead:
        question = WindowQuestion(self.source, resolved.window, self.basis)
        reader = reader_name(self.reader, context)
        return WindowRead(question, reader, self.on_loss, self.target_split_bytes, self.on_unproven, self.undecodable)
