"""What `airflow streams plan` and `airflow streams read` do."""

from __future__ import annotations

from argparse import Namespace
from contextlib import closing

from airflow_provider_streams.cli.action import command, run_ids
from airflow_provider_streams.cli.arguments import Reading, acts_of, reading_of
from airflow_provider_streams.cli.output import answer, answer_data, for_people
from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.hooks.journal import open_journal
from airflow_provider_streams.hooks.workplace import workplace
from airflow_provider_streams.model.basis import event_time_of
from airflow_provider_streams.model.plan import Plan
from airflow_provider_streams.model.plan_table import plan_table
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.windows.ask import Ask
from airflow_provider_streams.windows.planning import fresh_plan
from airflow_provider_streams.windows.reading import read_window, summary, undecodable_sentence


@command
def plan(args: Namespace) -> None:
    """Show the plan that reading a window now would make."""
    with open_journal() as journal:
        reading = reading_of(args).as_landed(journal)
        read_ = reading.window(Window.parse(args.window), journal)
        with closing(hook_for(reading.source).system()) as system:
            made = fresh_plan(journal, system, read_)
    if for_people(args.output):
        answer(plan_table(made))
    else:
        answer_data(made.to_json(), args.output)


@command
def read(args: Namespace) -> None:
    """Read a window, and land it."""
    reading, acts = Reading.of(args), acts_of(args)
    with workplace(reading.source, reading.spark_conn_id, reading.spark) as place:
        read_ = reading.window(Window.parse(args.window), place.journal)
        landing = reading.landing_in(place.journal)
        ask = Ask(reading.source, read_.reader, landing, read_.basis, reading.grid, event_time_of(read_.question.basis))
        planned = _show if for_people(args.output) else _nothing
        pinned, landed = read_window(place, ask, read_, run_ids("read"), acts, planned=planned)
    if not for_people(args.output):
        answer_data(summary(pinned, landed, landing.sink), args.output)
    else:
        answer(f"covered {pinned.window}: {landed.receipt.rows:,} rows, {landed.receipt.verdict}, in {landing.sink}")
        if said := undecodable_sentence(pinned.window, landed.receipt, landing.sink):
            answer(said)


def _show(plan: Plan) -> None:
    answer(plan_table(plan))


def _nothing(plan: Plan) -> None: ...
