"""What `airflow streams coverage` and `airflow streams backfill` do."""

from __future__ import annotations

import getpass
import json
import re
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from airflow_provider_streams.cli_actions import command, source_of_args
from airflow_provider_streams.errors import InvalidRequest, InvalidWindow, StreamsError
from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.hooks.horizon import horizon_of, source_of_key
from airflow_provider_streams.hooks.journal import open_journal
from airflow_provider_streams.model.backfill import Limits, Selection, parse_select
from airflow_provider_streams.model.basis import check_basis, default_basis
from airflow_provider_streams.model.sink import ParquetSink
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.operators.backfilling import Backfill, Backfiller, Outcome, summary
from airflow_provider_streams.operators.reading import Landing, RunIds

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd])")


@command
def coverage(args: Namespace) -> None:
    """Show which windows of which sources are covered, and how far back their streams still reach."""
    start, end = _span(args)
    length = parse_duration(args.window_length) if args.window_length else None
    with open_journal() as journal:
        found = list(_sources(journal, args.source, args.reader))
        if not found:
            raise InvalidRequest("the journal knows no such source and reader yet: nothing was read")
        horizons = {key: None if args.offline else _horizon(journal, key) for key in {key for key, _ in found}}
        pictures = {one: journal.coverage(*one, start, end, length) for one in found}
    if args.output == "json":
        rows = [
            {"source": key, "reader": reader, **seen.to_json(horizon=horizons[key])}
            for (key, reader), seen in pictures.items()
        ]
        print(json.dumps(rows, indent=2, default=str))
        return
    for (key, reader), seen in pictures.items():
        print(f"{key}   reader {reader}\n{seen.as_text(horizon=horizons[key])}\n")


@command
def backfill(args: Namespace) -> None:
    """Read the windows of a span that are not covered yet, or show what that would read."""
    if not args.dry_run and not args.path:
        raise InvalidRequest("say where the rows go with --path, or only look with --dry-run")
    sink = ParquetSink(args.path) if args.path else None
    columns = tuple(name.strip() for name in args.columns.split(",")) if args.columns else None
    ids = RunIds("cli", f"{getpass.getuser()}@{datetime.now(UTC):%Y%m%dT%H%M%SZ}", "backfill", 1)
    say = args.output == "table"
    with open_journal() as journal:
        backfiller = Backfiller(journal, _backfill(args), ids, Landing(sink, None, columns, args.spark_conn_id))
        late_rows = backfiller.recount()
        preview = backfiller.preview(pin=not args.dry_run)
        if say:
            print(preview.as_text())
        outcome = None if args.dry_run else backfiller.run(preview, done=_say_job if say else _nothing)
        if not say:
            print(json.dumps(summary(preview, outcome, late_rows), indent=2))
        if outcome is not None:
            backfiller.check(outcome)


def _backfill(args: Namespace) -> Backfill:
    source = source_of_args(args)
    basis = args.basis or default_basis(source.system)
    check_basis(source.system, basis)
    if basis == "chained":
        raise InvalidRequest("a backfill reads windows of time, in any order: basis must be publish or append")
    return Backfill(
        source=source,
        span=Window(_moment(args.start), _moment(args.end) if args.end else datetime.now(UTC)),
        length=parse_duration(args.window_length),
        reader=args.reader,
        selection=Selection(parse_select(args.select.split(",")), accepts_loss=args.on_loss == "record"),
        basis=basis,
        slack=timedelta(seconds=args.slack),
        max_skew=timedelta(seconds=args.max_skew),
        on_loss=args.on_loss,
        lookback=parse_duration(args.lookback) if args.lookback else None,
        limits=Limits(args.max_bytes, args.max_windows),
    )


def parse_duration(text: str) -> timedelta:
    """A length of time like `15m`, `1h`, `1d`, `90s`.

    Raises:
        InvalidWindow: it is none.
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise InvalidWindow(f"{text!r} is not a length of time: write it like 15m, 1h or 1d")
    return timedelta(**{_UNITS[found[2]]: float(found[1])})


def _say_job(number: int, outcome: Outcome) -> None:
    failed = f", {len(outcome.failures)} failed" if outcome.failures else ""
    print(f"job {number}: {len(outcome.covered)} windows covered, {outcome.rows:,} rows{failed}", flush=True)


def _nothing(number: int, outcome: Outcome) -> None:
    """Another program reads the output."""


def _horizon(journal: Journal, key: str) -> datetime | None:
    """None, and a line of explanation, where it cannot be asked: coverage is known without it."""
    try:
        source = source_of_key(key)
        with closing(hook_for(source).system()) as system:
            return horizon_of(journal, system, source)
    except StreamsError as error:
        print(f"{key}: the retention horizon is not known: {type(error).__name__}: {error}", file=sys.stderr)
        return None


def _sources(journal: Journal, part: str, reader: str | None) -> Iterator[tuple[str, str]]:
    for key, name in journal.sources():
        if part in key and reader in (None, name):
            yield key, name


def _span(args: Namespace) -> tuple[datetime, datetime]:
    end = _moment(args.end) if args.end else datetime.now(UTC)
    start = _moment(args.start) if args.start else end - timedelta(hours=24)
    window = Window(start, end)
    return window.start, window.end


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidWindow(f"{text!r} is not a time: write it like 2026-11-20T10:00Z") from error
