"""What `airflow streams backfill` does."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from airflow_provider_streams.airflow_runtime.window_context import check_installed, open_context
from airflow_provider_streams.cli.action import command, task_instance_key
from airflow_provider_streams.cli.arguments import Reading, overrides_of
from airflow_provider_streams.cli.option_names import as_options
from airflow_provider_streams.cli.output import answer, answer_data, for_people
from airflow_provider_streams.lake.registry import check_undecodable
from airflow_provider_streams.model.sinks.landing import Landing
from airflow_provider_streams.model.window.backfill import Limits, Selection, parse_select
from airflow_provider_streams.model.window.window import Window, parse_length, utc_moment
from airflow_provider_streams.windows.claim.landing_defaults import stored_landing
from airflow_provider_streams.windows.run.outcome import Outcome
from airflow_provider_streams.windows.run.request import ReadRequest, WindowsOfSpan
from airflow_provider_streams.windows.run.summary import preview_text, summary
from airflow_provider_streams.windows.run.window_run import WindowRun

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal


@command
def backfill(args: Namespace) -> None:
    """Read the windows of a span that are not covered yet, or show what that would read."""
    say, reading = for_people(args.output), Reading.of(args)
    with open_context(reading.source, reading.spark_conn_id, reading.spark) as window_context:
        request = _request(args, reading, window_context.journal)
        check_undecodable(request.landing.sink, reading.undecodable)
        if request.landing.sink is not None and not args.dry_run:
            check_installed(reading.source, request.landing.sink, reading.spark_conn_id)
        run = WindowRun(window_context, request)
        prepared = run.prepare(dry_run=args.dry_run)
        if say:
            answer(as_options(preview_text(prepared), args))
        outcome = None if args.dry_run else run.land(prepared, partial(_say_job, args) if say else _nothing)
        if not say:
            answer_data(summary(prepared, outcome), args.output)
        if outcome is not None:
            outcome.check(request)


def _request(args: Namespace, reading: Reading, journal: Journal) -> ReadRequest:
    span = Window(utc_moment(args.start), utc_moment(args.end) if args.end else datetime.now(UTC))
    windows = WindowsOfSpan(
        span,
        Selection(parse_select(args.select.split(",")), accepts_loss=reading.on_loss == "record"),
        args.window_length,
        parse_length(args.lookback) if args.lookback else None,
        Limits(args.max_bytes, args.max_windows),
    )
    landing = _landing_of_preview(reading, journal) if args.dry_run else reading.landing_in(journal)
    request = reading.request(
        windows, task_instance_key("backfill"), landing, reading.basis_in(journal), overrides_of(args)
    )
    return replace(request, window_schedule=None) if args.window_length else request


def _landing_of_preview(reading: Reading, journal: Journal) -> Landing:
    """A preview lands nothing, so it need not know where."""
    return reading.landing or stored_landing(journal, reading.source.key, reading.reader) or Landing()


def _say_job(args: Namespace, number: int, outcome: Outcome) -> None:
    answer(as_options(f"job {number}: {outcome.words}", args))


def _nothing(number: int, outcome: Outcome) -> None:
    """Another program reads the output."""
