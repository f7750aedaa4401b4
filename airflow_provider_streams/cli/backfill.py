"""What `airflow streams backfill` does."""

from __future__ import annotations

from argparse import Namespace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow_provider_streams.cli.action import command, run_ids
from airflow_provider_streams.cli.arguments import Reading, acts_of
from airflow_provider_streams.cli.output import answer, answer_data, for_people
from airflow_provider_streams.hooks.workplace import workplace
from airflow_provider_streams.model.backfill import Limits, Selection, parse_select
from airflow_provider_streams.model.landing import Landing
from airflow_provider_streams.model.window import Window, parse_length, parse_moment
from airflow_provider_streams.windows.backfilling import Backfill, Backfiller, Outcome, backfill_grid, summary
from airflow_provider_streams.windows.kept_landing import kept_landing

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal


@command
def backfill(args: Namespace) -> None:
    """Read the windows of a span that are not covered yet, or show what that would read."""
    say, reading = for_people(args.output), Reading.of(args)
    with workplace(reading.source, reading.spark_conn_id, reading.spark) as place:
        backfill = _backfill(args, reading, place.journal)
        backfiller = Backfiller(place, backfill, run_ids("backfill"))
        late_rows = backfiller.recount()
        preview = backfiller.preview(pin=not args.dry_run)
        if say:
            answer(preview.as_text())
        outcome = None if args.dry_run else backfiller.run(preview, done=_say_job if say else _nothing)
        if not say:
            answer_data(summary(preview, outcome, late_rows), args.output)
        if outcome is not None:
            backfiller.check(outcome)


def _backfill(args: Namespace, reading: Reading, journal: Journal) -> Backfill:
    source = reading.source
    span = Window(parse_moment(args.start), parse_moment(args.end) if args.end else datetime.now(UTC))
    own = None if args.window_length else reading.grid
    return Backfill(
        source=source,
        span=span,
        grid=own or backfill_grid(journal, source.key, reading.reader, args.window_length, span),
        reader=reading.reader,
        selection=Selection(parse_select(args.select.split(",")), accepts_loss=reading.on_loss == "record"),
        landing=_landing_of_preview(reading, journal) if args.dry_run else reading.landing_in(journal),
        basis=reading.basis_in(journal),
        on_loss=reading.on_loss,
        on_unproven=reading.on_unproven,
        undecodable=reading.undecodable,
        lookback=parse_length(args.lookback) if args.lookback else None,
        limits=Limits(args.max_bytes, args.max_windows),
        acts=acts_of(args),
        whole=reading.whole,
    )


def _landing_of_preview(reading: Reading, journal: Journal) -> Landing:
    """A preview lands nothing, so it need not know where."""
    return reading.landing or kept_landing(journal, reading.source.key, reading.reader) or Landing()


def _say_job(number: int, outcome: Outcome) -> None:
    answer(f"job {number}: {outcome.words}")


def _nothing(number: int, outcome: Outcome) -> None:
    """Another program reads the output."""
