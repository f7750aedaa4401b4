"""What `airflow streams plan` and `airflow streams read` do."""

from __future__ import annotations

import sys
from argparse import Namespace
from contextlib import closing

from airflow_provider_streams.airflow_runtime.window_context import check_installed, open_context
from airflow_provider_streams.cli.action import command, task_instance_key
from airflow_provider_streams.cli.arguments import Reading, overrides_of, reading_of
from airflow_provider_streams.cli.option_names import as_options
from airflow_provider_streams.cli.output import answer, answer_data, for_people
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.lake.registry import check_undecodable
from airflow_provider_streams.model.plan.plan_summary import plan_table
from airflow_provider_streams.model.sinks.landing import rows_text
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.windows.plan.payload_decoding import undecoded_note
from airflow_provider_streams.windows.plan.planning import fresh_plan
from airflow_provider_streams.windows.run.outcome import kind_sentence, other_type_sentence
from airflow_provider_streams.windows.run.request import OneWindow
from airflow_provider_streams.windows.run.summary import preview_text, summary
from airflow_provider_streams.windows.run.window_run import WindowRun


@command
def plan(args: Namespace) -> None:
    """Show the plan that reading a window now would make."""
    with open_journal() as journal:
        reading = reading_of(args).as_landed(journal)
        read_ = reading.window(Window.parse(args.window), journal)
        with closing(hook_for(reading.source).system()) as system:
            made = fresh_plan(journal, system, read_)
            note = undecoded_note(journal, system, reading.source, reading.reader)
    if for_people(args.output):
        answer(as_options(plan_table(made), args))
    else:
        answer_data(made.to_json(), args.output)
    if note:
        # on stderr: another program may read the answer on stdout
        print(as_options(note, args), file=sys.stderr)


@command
def read(args: Namespace) -> None:
    """Read a window, and land it."""
    reading, acts = Reading.of(args), overrides_of(args)
    with open_context(reading.source, reading.spark_conn_id, reading.spark) as window_context:
        basis = reading.basis_in(window_context.journal)
        landing = reading.landing_in(window_context.journal)
        check_undecodable(landing.sink, reading.undecodable)
        if landing.sink is not None:
            check_installed(reading.source, landing.sink, reading.spark_conn_id)
        request = reading.request(OneWindow(Window.parse(args.window)), task_instance_key("read"), landing, basis, acts)
        run = WindowRun(window_context, request)
        prepared = run.prepare()
        if for_people(args.output):
            answer(as_options(preview_text(prepared), args))
        outcome = run.land(prepared, lambda *_: None)
        outcome.check(request)
    if not for_people(args.output):
        answer_data(summary(prepared, outcome), args.output)
        return
    ((_, pinned, landed),) = outcome.landed
    rows = rows_text(landed.receipt.rows, landed.written)
    answer(f"covered {pinned.window}: {rows}, {landed.receipt.verdict}, in {landing.sink}")
    for said in filter(None, (of(pinned.window, landed.receipt) for of in (other_type_sentence, kind_sentence))):
        answer(as_options(said, args))
    for said in outcome.notes():
        answer(as_options(said, args))
