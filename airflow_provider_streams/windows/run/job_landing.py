"""Planned and pinned windows, of one source or several, are read in one job; each is recorded on its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import InvalidRequest, RowCountDecreased, SinkError, TableRecreated, error_class
from airflow_provider_streams.lake.connections import connection_of, properties_of
from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.model.sinks.landing import Landed
from airflow_provider_streams.model.sinks.untouched_table import table_untouched
from airflow_provider_streams.systems.planned_changes import change_terms_of
from airflow_provider_streams.windows.plan.planning import WindowRead
from airflow_provider_streams.windows.run.recording import RunStart, fail_run, noting_on
from airflow_provider_streams.windows.run.window_context import WindowContext

if TYPE_CHECKING:
    from airflow_provider_streams.journal.runs.run_records import Started
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.spark.job.job_spec import JobSpec
    from airflow_provider_streams.spark.job.outcomes import WindowResult


@dataclass(frozen=True, slots=True)
class PinnedWindow:
    """A window that is planned and pinned, and may land."""

    read: WindowRead
    plan: Plan
    begin: RunStart

    @property
    def source_key(self) -> str:
        """Its source, in the journal."""
        return self.read.source_key

    def recreated(self, journal: Journal, error: type[BaseException]) -> TableRecreated | None:
        """Why its job could not write the table, if a newer landing has made the table again; None: another reason.

        A run with `full_refresh` must not be retried: it would set aside what the newer landing put there.
        """
        if not issubclass(error, SinkError) or error.retryable or self.begin.overrides.full_refresh:
            return None
        landing = journal.landing(self.source_key, self.read.reader)
        if landing is None or landing.id == self.begin.claim.landing_id:
            return None
        return TableRecreated(str(self.read.landing.sink))


def land_together(
    window_context: WindowContext, entries: Sequence[PinnedWindow], *, fans_out: bool = False
) -> list[WindowResult]:
    """Begin a run of each window, read all in one job, and record what became of each, in order.

    A window that may not begin, because others share time with it or its plan holds less, does not hold up the rest.

    Args:
        window_context: journal, stream and Spark.
        entries: the windows.
        fans_out: see `JobSpec`.

    Raises:
        StreamsError: an error that concerns all windows alike; recorded for each.
    """
    from airflow_provider_streams.spark.job.outcomes import WindowFailure  # noqa: PLC0415 - Spark's side when used

    begun: dict[int, Started] = {}
    results: dict[int, WindowResult] = {}
    try:
        for number, entry in enumerate(entries):
            try:
                begun[number] = entry.begin.run(window_context.journal, entry.source_key, entry.plan)
            except (InvalidRequest, RowCountDecreased) as error:
                results[number] = WindowFailure.of(error)
        with table_untouched():
            started = [(entries[number], one) for number, one in begun.items()]
            job = job_of(window_context, started, fans_out=fans_out) if started else None
        read = window_context.spark(job) if job else []
        for number, found in zip(list(begun), read, strict=True):
            results[number] = _explained(window_context, entries[number], found)
            _record(window_context, entries[number], begun[number], results[number])
            del begun[number]
    except BaseException as error:
        _fail(window_context, [(entries[number], started) for number, started in begun.items()], error)
        raise
    return [results[number] for number in range(len(entries))]


def _fail(window_context: WindowContext, begun: Sequence[tuple[PinnedWindow, Started]], error: BaseException) -> None:
    """Record why runs ended early.

    Raises:
        TableRecreated: a reader's table was made again meanwhile, which explains the error.
    """
    journal = window_context.journal
    again = [entry.recreated(journal, type(error)) for entry, _ in begun]
    first = next(filter(None, again), None)
    with noting_on(first or error):
        for (_, started), recreated in zip(begun, again, strict=True):
            fail_run(journal, started, recreated or error)
    if first is not None:
        raise first from error


def job_of(
    window_context: WindowContext, begun: Sequence[tuple[PinnedWindow, Started]], *, fans_out: bool = False
) -> JobSpec:
    """A job of windows whose runs have begun; all are of one connection, and so are their tables.

    Raises:
        InvalidRequest: the connection of the tables does not exist here.
    """
    from airflow_provider_streams.spark.job.job_spec import JobSpec, WindowSpec  # noqa: PLC0415 - Spark's side when used

    first = begun[0][0].read
    how = WindowSpec(
        plan=begun[0][0].plan,
        columns=first.landing.columns,
        transform=first.landing.transform,
        on_loss=first.on_loss,
        undecodable=first.undecodable,
        small_plan_bytes=window_context.small_plan_bytes,
        options=window_context.stream.options(),
        table=properties_of(connection_of(first.landing.sink)),
    )
    specs = []
    for entry, started in begun:
        terms, held = entry.begin.claim.terms, None if entry.begin.overrides.allow_fewer_rows else started.held
        if terms is not None:
            changes = change_terms_of(entry.plan, entry.read.landing.columns)
            terms = replace(terms, later=started.later, changes=changes)
        specs.append(replace(how, plan=entry.plan, sink=entry.read.landing.sink, terms=terms, held=held))
    return JobSpec(tuple(specs), fans_out)


def _explained(window_context: WindowContext, entry: PinnedWindow, result: WindowResult) -> WindowResult:
    """What became of a window, with the error to raise; its reader may have made the table again."""
    from airflow_provider_streams.spark.job.outcomes import WindowFailure  # noqa: PLC0415 - as above

    if isinstance(result, Landed):
        return result
    error = result.exception
    again = entry.recreated(window_context.journal, error_class(result.error_type))
    if again is None:
        return replace(result, error=error)
    again.__cause__ = error
    return WindowFailure.of(again)


def _record(window_context: WindowContext, entry: PinnedWindow, started: Started, result: WindowResult) -> None:
    journal = window_context.journal
    if isinstance(result, Landed):
        entry.begin.finish(journal, entry.source_key, entry.plan, started.run, result)
        window_context.figures.covered(entry.source_key, entry.plan, result)
        return
    with noting_on(result.exception):
        journal.fail_run(started.run, result.error_type, result.message, lost=result.lost, untouched=result.untouched)
