"""What `airflow streams init` does: ask a stream system about a source, and write a DAG file that lands its windows."""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

from airflow.providers.common.compat.sdk import AirflowNotFoundException
from airflow.sdk import BaseHook

from airflow_provider_streams.cli.action import command
from airflow_provider_streams.cli.arguments import refined_of, source_of_args
from airflow_provider_streams.cli.new_dag.connection_commands import commands_of, connections_of
from airflow_provider_streams.cli.new_dag.dag_file import DagFile
from airflow_provider_streams.cli.new_dag.dag_id_owner import file_in_database, file_in_folder
from airflow_provider_streams.cli.new_dag.source_facts import SourceFacts, ask_source
from airflow_provider_streams.cli.option_names import as_options
from airflow_provider_streams.cli.output import answer
from airflow_provider_streams.cli.sink_arguments import sink_of
from airflow_provider_streams.connections.missing_connection import refuse_unreadable
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.window_schedule import WindowSchedule, schedule_of
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.timetables.cron_schedule import CronSchedule

HOURLY: Final = "@hourly"
_DAG_ID: Final = re.compile(r"[\w.-]{1,240}", re.ASCII)


@command
def init(args: Namespace) -> None:
    """Write the file, then say what was found and what to do next."""
    _ask_missing(args)
    source, sink = source_of_args(args), sink_of(args)
    if sink is None:
        raise InvalidRequest("say where rows land with --sink, like --sink iceberg:shop.orders, or with --path")
    schedule = schedule_of(args.schedule or HOURLY, args.timezone)
    facts = None if args.offline else ask_source(source, _length(schedule))
    made = DagFile(
        _dag_id(args.dag_id, source),
        facts.source if facts else source,
        sink,
        declaration_of(source.system).basis(args.basis, refined_of(args)),
        schedule.expression if isinstance(schedule, CronSchedule) else str(schedule),
        schedule.zone if isinstance(schedule, CronSchedule) else "UTC",
        _first_day(args.start_date),
        tuple(filter(None, (facts.rows, facts.warning))) if facts else (),
    )
    file = Path(args.output_file or f"{made.dag_id}.py")
    connections = tuple(_connections(made.source, sink, ask=facts is not None))
    _write(file, made.text)
    told = (*_found(file, made, facts), *_taken(file, made, ask=facts is not None))
    for line in (*told, *connections, *_next(made)):
        answer(as_options(line, args))


def _ask_missing(args: Namespace) -> None:
    """Ask the person at a terminal for what the options leave open."""
    if not sys.stdin.isatty():
        return
    if not (args.source or args.topic or args.pattern or args.scope):
        args.source = input("Source, like: pulsar shop/orders/events\n> ").split(maxsplit=1)
    if not (args.sink or args.path):
        args.sink = input("Table, like: iceberg:shop.orders, delta:s3://lake/orders, parquet:/lake/orders\n> ").strip()
        conn_id = input("Airflow connection of its catalog or store (empty: none)\n> ").strip()
        args.sink_option = [*args.sink_option, *([f"conn_id={conn_id}"] if conn_id else [])]
    if not args.schedule:
        args.schedule = input(f"Which windows: a cron expression, or a length like 15m? (empty: {HOURLY})\n> ").strip()


def _length(schedule: WindowSchedule) -> timedelta:
    begin = schedule.before(datetime.now(UTC))
    return schedule.after(begin) - begin


def _dag_id(given: str | None, source: Source) -> str:
    """The DAG's name, by default the source's last word.

    Raises:
        InvalidRequest: Airflow takes no such name.
    """
    last = re.split(r"[/:]", str(source))[-1]
    name = re.sub(r"[^\w.-]+", "_", last, flags=re.ASCII).strip("._-") or f"{source.system}_windows"
    if given is not None and not _DAG_ID.fullmatch(given):
        raise InvalidRequest(f"--dag-id {given!r:.100}: a DAG's name has letters, digits, '-', '.' and '_', up to 240")
    return given or name[:200]


def _first_day(given: str | None) -> date:
    if given is None:
        return datetime.now(UTC).date()
    try:
        return date.fromisoformat(given)
    except ValueError as error:
        raise InvalidRequest(f"--start-date is a day like 2026-11-20, not {given!r:.40}") from error


def _write(file: Path, text: str) -> None:
    """Create the file.

    Raises:
        InvalidRequest: it exists, or cannot be created.
    """
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(text)
    except FileExistsError as error:
        raise InvalidRequest(f"{file} exists, and init overwrites nothing: name another file with --output") from error
    except OSError as error:
        raise InvalidRequest(f"{file} cannot be written: {error.strerror}. Name another file with --output") from error


def _found(file: Path, made: DagFile, facts: SourceFacts | None) -> Iterator[str]:
    windows = f"{made.schedule} {made.timezone}"
    yield f"{file}: DAG {made.dag_id} lands each window ({windows}) of {made.source} in {made.sink}"
    if facts is None:
        yield "not asked (--offline): whether the source exists, its schema, its retention, the connections"
        return
    yield f"rows: {facts.rows}"
    yield f"retention: {facts.retention}"
    if facts.warning:
        yield f"WARNING {facts.warning}"


def _taken(file: Path, made: DagFile, *, ask: bool) -> Iterator[str]:
    """A warning for each DAG of the file whose name another file has."""
    for dag_id in filter(None, (made.dag_id, made.recorder_id)):
        other = file_in_folder(dag_id, file) or (file_in_database(dag_id, file) if ask else None)
        if other is not None:
            yield (
                f"WARNING {other} also has a DAG {dag_id}, and Airflow runs only one of them: rename one, or write "
                "this one again with other values of --dag-id and --output"
            )


def _connections(source: Source, sink: Sink, *, ask: bool) -> Iterator[str]:
    missing = {
        conn_id: type_
        for conn_id, type_ in connections_of(source, sink).items()
        if not ask or (conn_id != source.conn_id and not _exists(conn_id))
    }
    if missing:
        yield f"\nadd the {'missing ' if ask else ''}connections:"
    for conn_id, type_ in missing.items():
        yield from (f"  {line}" for line in commands_of(conn_id, type_))


def _exists(conn_id: str) -> bool:
    try:
        BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        refuse_unreadable(conn_id)
        return False
    return True


def _next(made: DagFile) -> Sequence[str]:
    recorder = [f"  airflow dags unpause {made.recorder_id}"] if made.recorder_id else []
    task = f"--dag-id {made.dag_id} --task-id read"
    return (
        "\nnext, with the file in Airflow's DAG folder:",
        "  airflow dags reserialize",
        *recorder,
        f"  airflow streams plan {task} --window START/END",
        f"  airflow streams read {task} --window START/END",
        f"  airflow dags unpause {made.dag_id}",
    )
