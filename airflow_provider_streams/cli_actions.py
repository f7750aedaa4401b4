"""What `airflow streams ..` does. An error of this package is one line, and exit code 1."""

from __future__ import annotations

import functools
import getpass
import json
import os
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import InvalidRequest, InvalidWindow, StreamsError
from airflow_provider_streams.hooks.base import hook_for, source_of
from airflow_provider_streams.hooks.journal import open_journal
from airflow_provider_streams.hooks.readiness import WindowQuestion
from airflow_provider_streams.model.basis import check_basis, default_basis
from airflow_provider_streams.model.sink import ParquetSink
from airflow_provider_streams.model.source import PulsarSource, Source
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.operators.reading import (
    Landing,
    RunIds,
    WindowRead,
    fresh_plan,
    land,
    pinned_plan,
    summary,
)

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

    read_ = _window_read(args)
    with open_journal() as journal, closing(hook_for(read_.question.source).system()) as system:
        made = fresh_plan(journal, system, read_)
    print(json.dumps(made.to_json(), indent=2) if args.output == "json" else plan_table(made))


@command
def read(args: Namespace) -> None:
    """Read a window into Parquet files."""
    from airflow_provider_streams.model.plan_table import plan_table

    read_ = _window_read(args)
    hook = hook_for(read_.question.source)
    sink = ParquetSink(args.path)
    with open_journal() as journal:
        with closing(hook.system()) as system:
            pinned = pinned_plan(journal, system, read_, replan=args.replan)
        if args.output == "table":
            print(plan_table(pinned))
        landing = Landing(sink, None, _names(args.columns), args.spark_conn_id)
        ids = RunIds("cli", f"{getpass.getuser()}@{datetime.now(UTC):%Y%m%dT%H%M%SZ}", "read", 1)
        receipt = land(journal, read_, pinned, landing, options=hook.options(), ids=ids)
    result = summary(pinned, receipt, sink)
    if args.output == "json":
        print(json.dumps(result, indent=2))
    else:
        print(f"covered {pinned.window}: {receipt.rows:,} rows, {receipt.verdict}, in {sink.path}")


@command
def coverage(args: Namespace) -> None:
    """Show which windows of which sources are covered."""
    start, end = _span(args)
    with open_journal() as journal:
        found = list(_sources(journal, args.source, args.reader))
        if not found:
            raise InvalidRequest("the journal knows no such source and reader yet: nothing was read")
        pictures = {key: journal.coverage(*key, start, end) for key in found}
    if args.output == "json":
        rows = [{"source": key, "reader": reader, **seen.to_json()} for (key, reader), seen in pictures.items()]
        print(json.dumps(rows, indent=2, default=str))
        return
    for (key, reader), seen in pictures.items():
        print(f"{key}   reader {reader}\n{seen.as_text()}\n")


def _window_read(args: Namespace) -> WindowRead:
    source = source_of_args(args)
    basis = args.basis or default_basis(source.system)
    check_basis(source.system, basis)
    question = WindowQuestion(
        source, Window.parse(args.window), basis, timedelta(seconds=args.slack), timedelta(seconds=args.max_skew)
    )
    return WindowRead(question, args.reader, args.on_loss)


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
    return source_of(system, names, conn_id)


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


def _names(text: str | None) -> tuple[str, ...] | None:
    return tuple(name.strip() for name in text.split(",")) if text else None


def _sources(journal: Journal, part: str, reader: str | None) -> Iterator[tuple[str, str]]:
    for key, name in journal.sources():
        if part in key and reader in (None, name):
            yield key, name
