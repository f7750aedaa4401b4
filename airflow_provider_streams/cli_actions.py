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
from datetime import UTC, datetime

from airflow_provider_streams.cli_output import answer, answers_alone
from airflow_provider_streams.cli_reading import reading_of
from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.hooks.journal import open_journal
from airflow_provider_streams.hooks.workplace import workplace
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.windows.acts import Acts
from airflow_provider_streams.windows.landing import Ask, enter, refuse_overlaps
from airflow_provider_streams.windows.planning import fresh_plan, pinned_plan
from airflow_provider_streams.windows.reading import Begin, RunIds, land, summary


def command(action: Callable[[Namespace], None]) -> Callable[[Namespace], None]:
    """An action as a command: it sees connections as the server does, and its errors are one line."""

    @functools.wraps(action)
    def run(args: Namespace) -> None:
        # as `airflow connections get` does: without it only connections of the environment are found
        os.environ["_AIRFLOW_PROCESS_CONTEXT"] = "server"
        try:
            with warnings.catch_warnings(), answers_alone():
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

    reading = reading_of(args)
    with open_journal() as journal:
        read_ = reading.window(Window.parse(args.window), journal)
        with closing(hook_for(reading.source).system()) as system:
            made = fresh_plan(journal, system, read_)
    answer(json.dumps(made.to_json(), indent=2) if args.output == "json" else plan_table(made))


@command
def read(args: Namespace) -> None:
    """Read a window, and land it."""
    from airflow_provider_streams.model.plan_table import plan_table

    reading, acts = reading_of(args), acts_of(args)
    with workplace(reading.source, reading.spark_conn_id, reading.spark) as place:
        read_ = reading.window(Window.parse(args.window), place.journal)
        landing = reading.landing_in(place.journal)
        ask = Ask(reading.source, read_.reader, landing, read_.basis, reading.grid)
        entered = enter(place.journal, ask, [read_.question.window], acts)
        refuse_overlaps(place.journal, ask, read_.question.window, acts)
        with closing(place.stream.system()) as system:
            pinned = pinned_plan(place.journal, system, read_, replan=acts.replan)
        if args.output == "table":
            answer(plan_table(pinned))
        landed = land(place, read_, pinned, landing, Begin(entered, run_ids("read"), acts))
    if args.output == "json":
        answer(json.dumps(summary(pinned, landed, landing.sink), indent=2))
    else:
        answer(f"covered {pinned.window}: {landed.receipt.rows:,} rows, {landed.receipt.verdict}, in {landing.sink}")


def run_ids(task_id: str) -> RunIds:
    """Who reads by hand, as the journal records it."""
    return RunIds("cli", f"{getpass.getuser()}@{datetime.now(UTC):%Y%m%dT%H%M%SZ}", task_id, 1)


def acts_of(args: Namespace) -> Acts:
    """What is done on purpose."""
    return Acts(args.replan, args.reland, args.accept_fewer, "replace" if args.replace_overlaps else "refuse")
