"""What `airflow streams coverage` does."""

from __future__ import annotations

import sys
from argparse import Namespace
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from airflow_provider_streams.cli.action import command
from airflow_provider_streams.cli.option_names import as_options
from airflow_provider_streams.cli.output import answer, answer_data, for_people
from airflow_provider_streams.cli.reader_arguments import readers_of
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.model.window.coverage_timeline import draw
from airflow_provider_streams.model.window.window import Window, utc_moment
from airflow_provider_streams.model.window.window_schedule import schedule_through
from airflow_provider_streams.windows.after_landing.retention import horizon_of, source_of_key
from airflow_provider_streams.windows.claim.landing_defaults import schedule_of
from airflow_provider_streams.windows.claim.table_coverage import compare

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal

_SHOWN = timedelta(hours=24)
_FIRST = datetime.min.replace(tzinfo=UTC)


@command
def coverage(args: Namespace) -> None:
    """Show which windows of which sources are covered, and how far back their streams still reach."""
    start, end = _span(args)
    window_schedule = schedule_through(args.window_length, start) if args.window_length else None
    with open_journal() as journal:
        found = readers_of(journal, args)
        horizons = {key: None if args.offline else _horizon(journal, key) for key in {key for key, _ in found}}
        pictures = {
            one: compare(
                journal, *one, journal.coverage(*one, start, end, window_schedule or schedule_of(journal, *one))
            )
            for one in found
        }
    if not for_people(args.output):
        rows = [
            {
                "source": key,
                "reader": reader,
                **seen.to_json(horizon=horizons[key]),
                "table": table.to_json() if table else None,
            }
            for (key, reader), (seen, table) in pictures.items()
        ]
        answer_data(rows, args.output)
        return
    if not found:
        answer("the journal knows no window yet: nothing was read")
    for (key, reader), (seen, table) in pictures.items():
        landed = f"{table}\n" if table else ""
        answer(f"{key}   reader {reader}\n{draw(seen, horizon=horizons[key])}\n{landed}")


def _horizon(journal: Journal, key: str) -> datetime | None:
    """None, and a line of explanation, where it cannot be asked: coverage is known without it."""
    try:
        source = source_of_key(journal, key)
        with closing(hook_for(source).system()) as system:
            return horizon_of(journal, system, source)
    except StreamsError as error:
        print(
            f"{key}: the retention horizon is not known: {type(error).__name__}: {as_options(str(error))}",
            file=sys.stderr,
        )
        return None


def _span(args: Namespace) -> tuple[datetime, datetime]:
    end = utc_moment(args.end) if args.end else datetime.now(UTC)
    start = utc_moment(args.start) if args.start else end - min(_SHOWN, end - _FIRST)
    window = Window(start, end)
    return window.start, window.end
