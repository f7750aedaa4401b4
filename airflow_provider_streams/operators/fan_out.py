"""What the landing operators do when each topic or stream of their source has a table of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.hooks.workplace import workplace
from airflow_provider_streams.model.basis import event_time_of
from airflow_provider_streams.model.partition_key import KEY_FORMAT
from airflow_provider_streams.model.table_list import plans_text, summary
from airflow_provider_streams.operators.announcing_tables import TablesAnnouncement, withhold_tables
from airflow_provider_streams.operators.base import run_ids
from airflow_provider_streams.operators.own_tries import OwnTries
from airflow_provider_streams.windows.ask import Ask
from airflow_provider_streams.windows.backfilling_tables import TablesBackfiller, grid_of_tables
from airflow_provider_streams.windows.fan_out import Tables, failed
from airflow_provider_streams.windows.reading import undecodable_sentence
from airflow_provider_streams.windows.reading_tables import TablesReader, WholeRead

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_streams.model.grid import Grid
    from airflow_provider_streams.model.landing import Landing
    from airflow_provider_streams.model.window import Window
    from airflow_provider_streams.operators.backfill import BackfillWindowsOperator
    from airflow_provider_streams.operators.read import ReadWindowOperator
    from airflow_provider_streams.windows.expansion import Expansion
    from airflow_provider_streams.windows.of_run import ResolvedWindow
    from airflow_provider_streams.windows.planning import WindowRead
    from airflow_provider_streams.windows.workplace import Workplace


class TablesFill:
    """One run of a task that fills a span of many tables.

    Args:
        task: which task.
        place: where.
        context: the run's.
    """

    def __init__(self, task: BackfillWindowsOperator, place: Workplace, context: Context) -> None:
        self._task, self._place, self._context = task, place, context
        self._backfiller = TablesBackfiller(place, task.source, task.table_sink, run_ids(context))

    def __call__(self) -> dict[str, Any]:
        """Expand, preview, pin, read, record, announce; the task's XCom.

        Raises:
            FanOutIncomplete: some windows are not landed.
            StreamsError: what concerns all alike.
        """
        task = self._task
        expansion = self._backfiller.expand()
        task.log.info("%s is %d topics or streams now", task.source, len(expansion))

        def grid(reader: str, span: Window) -> Grid:
            return grid_of_tables(self._place.journal, expansion, reader, task.window_length, span)

        how = task.backfill(self._context, grid)
        preview, outcome = self._backfiller.preview(expansion, how, pin=not task.dry_run_only)
        task.log.info("Preview\n%s", preview.as_text())
        if task.dry_run_only:
            withhold_tables(task, task.table_sink, expansion.tables)
            return preview.to_json() | {"verdict": "planned", "failed": len(outcome.failures)}
        outcome = self._backfiller.run(preview, self._log_job, outcome)
        task._tables = outcome.landed  # noqa: SLF001 - what its lineage is told of
        outcome.check(task.source, f"windows of {how.span}", names_windows=True)
        announcement = TablesAnnouncement(self._place.journal, task, self._context, how.ask, task.table_sink)
        left = announcement.send(expansion.tables, task.partition_key_format)
        landed = summary(outcome.landed)
        return {**preview.to_json(), **landed, "verdict": "complete", "unannounced": left}

    def _log_job(self, number: int, outcome: Tables) -> None:
        self._task.log.info("Job %d: %s", number, outcome.words)


class TablesRun:
    """One run of a task that reads a window into many tables.

    Args:
        task: which task.
        read: what of the source as a whole.
        landing: what the tables have in common.
        resolved: the window.
        context: the run's.
    """

    def __init__(
        self, task: ReadWindowOperator, read: WindowRead, landing: Landing, resolved: ResolvedWindow, context: Context
    ) -> None:
        self._task, self._context, self._log = task, context, task.log
        self._ask = Ask(task.source, read.reader, landing, read.basis, resolved.grid, event_time_of(task.basis))
        own = OwnTries.of(task, context).__contains__
        self._whole = WholeRead(read, self._ask, task.table_sink, run_ids(context), task.acts, own)

    def __call__(self) -> tuple[Tables, dict[str, Any]]:
        """Expand, plan, read, record, announce; what was landed, and the task's XCom.

        Raises:
            FanOutIncomplete: some are not landed.
            StreamsError: what concerns all alike.
        """
        task = self._task
        with workplace(task.source, task.spark_conn_id, task.spark) as place, place.journal.kept_open():
            reader = TablesReader(place, self._whole)
            expansion, refused = reader.expand()
            window = self._whole.read.question.window
            self._log.info("%s is %d topics or streams now", task.source, len(expansion))
            if task.dry_run_only:
                return self._shown(reader, expansion, refused)
            with refused.named_by_what_ends_all():
                entries, outcome = reader.prepare(expansion)
            self._log.info("Pinned plans\n%s", plans_text([(table, entry.plan) for table, entry in entries]))
            outcome = reader.land(entries, self._log_job, refused.and_then(outcome))
            task._tables = outcome.landed  # noqa: SLF001 - what its lineage is told of
            self._log.info("Window %s: %s", window, outcome.words)
            for table, plan, landed in outcome.landed:
                if said := undecodable_sentence(plan.window, landed.receipt, table.sink):
                    self._log.warning("%s: %s", table, said)
            outcome.check(task.source, f"window {window}", names_windows=False)
            left = self._announce(place, expansion)
        return outcome, self._summary(outcome) | {"unannounced": left}

    def _shown(self, reader: TablesReader, expansion: Expansion, outcome: Tables) -> tuple[Tables, dict[str, Any]]:
        window = self._whole.read.question.window
        found = reader.plan(expansion)
        for table, one in found:
            if isinstance(one, StreamsError):
                outcome = outcome.and_then(failed(table, window, one))
        plans = [(table, one) for table, one in found if not isinstance(one, StreamsError)]
        self._log.info("Plans\n%s", plans_text(plans))
        withhold_tables(self._task, self._task.table_sink, expansion.tables)
        outcome.check(self._task.source, f"window {window}", names_windows=False, planned=len(plans))
        self._task._tables = [(table, plan, None) for table, plan in plans]  # noqa: SLF001 - as above
        return outcome, self._summary(outcome) | {"verdict": "planned"}

    def _log_job(self, number: int, outcome: Tables) -> None:
        self._log.info("Job %d: %s", number, outcome.words)

    def _announce(self, place: Workplace, expansion: Expansion) -> int:
        key_format = KEY_FORMAT if self._context.get("partition_key") else None
        announcement = TablesAnnouncement(place.journal, self._task, self._context, self._ask, self._task.table_sink)
        return announcement.send(expansion.tables, key_format)

    def _summary(self, outcome: Tables) -> dict[str, Any]:
        return {
            **summary(self._task._tables),  # noqa: SLF001 - as above
            "window": self._whole.read.question.window.to_json(),
            "reader": self._whole.read.reader,
            "basis": self._whole.read.basis,
            "by_earlier_tries": outcome.before,
            "target": self._task.table_sink.asset_uri,
            "verdict": "complete",
        }
