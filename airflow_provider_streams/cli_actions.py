"""What `airflow streams ..` does. An error of this package is one line, and exit code 1."""

from __future__ import annotations

import functools
import getpass
import json
import os
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import InvalidRequest, StreamsError
from airflow_provider_streams.hooks.base import hook_for, hook_of
from airflow_provider_streams.hooks.journal import open_journal
from airflow_provider_streams.hooks.pravega_connection import full_stream_name
from airflow_provider_streams.hooks.workplace import workplace
from airflow_provider_streams.model.basis import BasisLike, check_basis, default_basis
from airflow_provider_streams.model.landing import Landing
from airflow_provider_streams.model.sink import ParquetSink
from airflow_provider_streams.model.source import PulsarSource, Source
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.systems.sources import source_of
from airflow_provider_streams.windows.acts import Acts
from airflow_provider_streams.windows.landing import Ask, basis_of, enter, kept_landing, refuse_overlaps
from airflow_provider_streams.windows.planning import WindowRead, fresh_plan, pinned_plan
from airflow_provider_streams.windows.readiness import WindowQuestion
from airflow_provider_streams.windows.reading import Begin, RunIds, land, summary

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal


def command(action: Callable[[Namespace], None]) -> Callable[[Namespace], None]:
    """An action as a command: it sees connections as the server does, and its errors are one line."""

    @functools.wraps(action)
    def run(args: Namespace) -> None:
        # as `airflow connections get` does: without it only connections of the environment are found
        os.environ["_AIRFLOW_PROCESS_CONTEXT"] = "server"
        try:
            with warnings.catch_warnings():
                # Airflow prints Python's warnings to stdout, into what another program may be reading
                warnings.simplefilter("ignore")
                action(args)
        except StreamsError as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            raise SystemExit(1) from error

    return run


@command
def plan(args: Namespace) -> None:
    """Show the plan that reading a window now would make."""
    from airflow_provider_streams.model.plan_table import plan_table

    with open_journal() as journal:
        read_ = _window_read(args, journal)
        with closing(hook_for(read_.question.source).system()) as system:
            made = fresh_plan(journal, system, read_)
    print(json.dumps(made.to_json(), indent=2) if args.output == "json" else plan_table(made))


@command
def read(args: Namespace) -> None:
    """Read a window into Parquet files."""
    from airflow_provider_streams.model.plan_table import plan_table

    source, acts = source_of_args(args), acts_of(args)
    with workplace(source, args.spark_conn_id) as place:
        read_ = _window_read(args, place.journal)
        landing = landing_of(args, place.journal, source)
        ask = Ask(source, read_.reader, landing, read_.basis)
        entered = enter(place.journal, ask, [read_.question.window], acts)
        refuse_overlaps(place.journal, ask, read_.question.window, acts)
        with closing(place.stream.system()) as system:
            pinned = pinned_plan(place.journal, system, read_, replan=acts.replan)
        if args.output == "table":
            print(plan_table(pinned))
        landed = land(place, read_, pinned, landing, Begin(entered, run_ids("read"), acts))
    if args.output == "json":
        print(json.dumps(summary(pinned, landed, landing.sink), indent=2))
    else:
        print(f"covered {pinned.window}: {landed.receipt.rows:,} rows, {landed.receipt.verdict}, in {landing.sink}")


def landing_of(args: Namespace, journal: Journal, source: Source) -> Landing:
    """Where the rows go: as the arguments say, else as this reader landed so far.

    Raises:
        InvalidRequest: neither says it.
    """
    kept = kept_landing(journal, source.key, args.reader)
    given = ParquetSink(args.path) if args.path else None
    if kept is not None and not args.columns and (given is None or given == kept.sink):
        return kept
    if given is None:
        raise InvalidRequest(f"say where the rows go with --path: reader {args.reader!r} has landed nothing yet")
    return Landing(given, None, names_of(args.columns))


def basis_of_args(args: Namespace, journal: Journal, source: Source) -> BasisLike:
    """How times become positions: as the arguments say, else as this reader reads, else as its system does."""
    basis: Any = args.basis or basis_of(journal, source.key, args.reader) or default_basis(source.system)
    check_basis(source.system, basis)
    found: BasisLike = basis
    return found


def _window_read(args: Namespace, journal: Journal) -> WindowRead:
    source = source_of_args(args)
    basis = basis_of_args(args, journal, source)
    question = WindowQuestion(
        source, Window.parse(args.window), basis, timedelta(seconds=args.slack), timedelta(seconds=args.max_skew)
    )
    return WindowRead(question, args.reader, args.on_loss)


def run_ids(task_id: str) -> RunIds:
    """Who reads by hand, as the journal records it."""
    return RunIds("cli", f"{getpass.getuser()}@{datetime.now(UTC):%Y%m%dT%H%M%SZ}", task_id, 1)


def acts_of(args: Namespace) -> Acts:
    """What is done on purpose."""
    return Acts(args.replan, args.reland, args.accept_fewer, "replace" if args.replace_overlaps else "refuse")


def source_of_args(args: Namespace) -> Source:
    """The source that a command's arguments name.

    Raises:
        InvalidRequest: none, or no such system.
    """
    system, *names = args.source or ["pulsar"]
    names += args.topic
    conn_id = args.conn_id or f"{system}_default"
    if args.pattern and system == "pulsar":
        return PulsarSource(names, pattern=args.pattern, conn_id=conn_id)
    if not names:
        raise InvalidRequest("name the source, for example: pulsar shop/orders/events")
    if system == "pravega" and len(names) == 1 and "/" not in names[0]:
        names = [full_stream_name(names[0], hook_of(system, conn_id).settings()["scope"].value, conn_id)]
    return source_of(system, names, conn_id)


def names_of(text: str | None) -> tuple[str, ...] | None:
    """Names between commas; None: none."""
    return tuple(name.strip() for name in text.split(",")) if text else None
