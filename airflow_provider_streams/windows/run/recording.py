"""Runs of windows in the journal: how they begin and end, and what could not be planned."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import DataLoss, RowCountDecreased, SourceNotFound, StreamsError
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.model.sinks.untouched_table import left_untouched
from airflow_provider_streams.windows.claim.decision import TableClaim
from airflow_provider_streams.windows.claim.overrides import Overrides

if TYPE_CHECKING:
    from airflow_provider_streams.journal.runs.run_records import Started
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.model.plan.plan import Plan
    from airflow_provider_streams.model.sinks.landing import Landed
    from airflow_provider_streams.windows.plan.planning import WindowRead

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunStart:
    """How runs begin: under which landing, by which task, and with which overrides."""

    claim: TableClaim
    """See `windows.claim.claim.claim_table`."""
    task: TaskInstanceKey
    overrides: Overrides = field(default_factory=Overrides)

    def run(self, journal: Journal, source_key: str, plan: Plan) -> Started:
        """See `Journal.start_run`; a plan that cannot hold what the table holds is no longer the window's."""
        landing_id = self.claim.landing_id
        try:
            return journal.start_run(
                source_key,
                plan,
                task=self.task,
                landing_id=landing_id,
                replace_overlaps=self.overrides.overlap == "replace",
                allow_fewer_rows=self.overrides.allow_fewer_rows,
            )
        except RowCountDecreased as error:
            with noting_on(error):
                journal.restore_previous_plans(source_key, plan.reader, landing_id, plan.window)
            raise

    def finish(self, journal: Journal, source_key: str, plan: Plan, run: int, landed: Landed) -> None:
        """The window is covered, and the reader lands what it was decoded as from now on."""
        journal.finish_run(run, landed)
        if self.claim.payloads is not None and self.claim.landing_id is not None:
            journal.decode_as(source_key, plan.reader, self.claim.landing_id, self.claim.payloads)


@contextmanager
def recorded_planning(journal: Journal, read: WindowRead, task: TaskInstanceKey) -> Iterator[None]:
    """Records a window that can never be planned as failed, or lost; one that is only not ready yet is no failure.

    Nothing is recorded of a reader that never read, and whose source does not exist: a name was mistyped.
    """
    try:
        yield
    except StreamsError as error:
        if not error.retryable and not _is_mistyped(journal, read, error):
            with noting_on(error):
                journal.fail_window(
                    read.source_key,
                    read.reader,
                    read.question.window,
                    error_type=type(error).__name__,
                    message=str(error),
                    lost=isinstance(error, DataLoss),
                    task=task,
                )
        raise


def _is_mistyped(journal: Journal, read: WindowRead, error: StreamsError) -> bool:
    is_unread = False
    if isinstance(error, SourceNotFound):
        with noting_on(error):
            is_unread = journal.forget_unread(read.source_key, read.reader)
    return is_unread


@contextmanager
def recorded_run(journal: Journal, source_key: str, plan: Plan, begin: RunStart) -> Iterator[Started]:
    """A run in the journal; whatever ends it early is recorded, and raised again."""
    started = begin.run(journal, source_key, plan)
    try:
        yield started
    except BaseException as error:
        with noting_on(error):
            fail_run(journal, started, error)
        raise


def fail_run(journal: Journal, started: Started, error: BaseException) -> None:
    """A run ended early, for this reason."""
    lost, untouched = isinstance(error, DataLoss), left_untouched(error)
    journal.fail_run(started.run, type(error).__name__, recordable(error), lost=lost, untouched=untouched)


@contextmanager
def noting_on(error: BaseException) -> Iterator[None]:
    """While a failure is recorded: if that fails too, it is logged and noted on `error`, which stays the one raised.

    The run then stays a running one in the journal, until a later run of its window supersedes it.
    """
    try:
        yield
    except Exception as second:  # noqa: BLE001 - whatever it is, the task failed because of `error`
        note = f"The journal could not record this failure: {type(second).__name__}: {recordable(second)}"
        _log.warning("%s", note)
        error.add_note(note)


def recordable(error: BaseException) -> str:
    """An error's text as the journal may keep it: foreign ones may quote what they were given, secrets included."""
    return str(error) if isinstance(error, StreamsError) else "see the task's log"
