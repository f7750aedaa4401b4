"""What `airflow streams doctor` does: it examines a set-up before a reader runs. It reads and lands nothing."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
import threading
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from airflow.providers.common.compat.sdk import AirflowNotFoundException
from airflow.sdk import BaseHook

from airflow_provider_streams.cli.action import command
from airflow_provider_streams.cli.arguments import reader_of, source_of_args, spark_of
from airflow_provider_streams.cli.option_names import as_options
from airflow_provider_streams.cli.output import answer
from airflow_provider_streams.cli.sink_arguments import sink_of
from airflow_provider_streams.doctor.examination import Progress, examine
from airflow_provider_streams.doctor.finding import Area, Finding, Report, report_of
from airflow_provider_streams.doctor.known_reader import with_known
from airflow_provider_streams.doctor.setup import HOURLY, Setup
from airflow_provider_streams.errors import StreamsError, as_clause
from airflow_provider_streams.model.sinks.landing import Landing
from airflow_provider_streams.model.window.basis import SLACK
from airflow_provider_streams.model.window.window import length_of_seconds, parse_length
from airflow_provider_streams.model.window.window_schedule import schedule_of
from airflow_provider_streams.systems.registry import declaration_of, known

_PATIENCE: Final = 2.0
"""Seconds before a line says what is examined."""
_ARROW: Final = "-> "
_SINK_STEP: Final = "Correct --sink or --path, and --sink-option"


@command
def doctor(args: Namespace) -> None:
    """Examine, show, and exit by what was found."""
    refused: list[Finding] = []
    try:
        setup = setup_of(args, refused)
    except _Refused as one:  # nothing can be examined
        report = report_of("", [*refused, one.finding])
    else:
        with _progress() as progress:
            report = _with_refused(examine(setup, progress), refused)
    report = _as_options(report, args)
    status = report.exit_status(strict=args.strict)
    if args.json:
        answer(json.dumps({**report.to_json(), "exit_status": status}, indent=2))
    else:
        answer(table(report, _width()))
    raise SystemExit(status)


class _Refused(Exception):
    """An argument without which nothing can be examined."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        super().__init__(finding.says)


@contextmanager
def _argument(area: Area, name: str, next_step: str = "") -> Iterator[None]:
    """Raise an error of an argument as a finding of the area that needs it."""
    try:
        yield
    except StreamsError as error:
        says = f"{type(error).__name__}: {as_clause(error)}"
        raise _Refused(Finding(area, name, "error", says, next_step or f"Correct --{name}")) from error


def setup_of(args: Namespace, refused: list[Finding]) -> Setup:
    """The set-up that the arguments name.

    Args:
        args: of the command.
        refused: gets what is wrong with arguments that only one area needs; the others are examined.

    Raises:
        _Refused: an argument is wrong that all areas need.
    """
    if args.dag_id or args.task_id:
        with _argument("connection", "task", "Correct --dag-id, --task-id and what goes with them"):
            setup = _of_task(args)
    else:
        setup = _of_arguments(args, refused)
    with _argument("sink", "sink", _SINK_STEP):
        setup = replace(setup, write=args.write)
    if args.slack is not None:
        with _argument("clock", "slack"):
            setup = replace(setup, slack=length_of_seconds("--slack", args.slack))
    return replace(setup, **_schedule(args, refused))


def _of_arguments(args: Namespace, refused: list[Finding]) -> Setup:
    asked = bool(args.source[1:] or args.topic or args.pattern or args.scope)
    with _argument("connection", "source", "Correct the name of the source, and its options"):
        system = args.source[0] if args.source else _system_of(args.conn_id)
        source = source_of_args(Namespace(**{**vars(args), "source": args.source or [system]})) if asked else None
        setup = Setup(system, args.conn_id or f"{system}_default", source, args.reader)
    with _argument("spark", "settings", "Correct --spark or --conf"):
        setup = replace(setup, spark_conn_id=args.spark_conn_id, spark=spark_of(args))
    with _argument("sink", "sink", _SINK_STEP):
        setup = replace(setup, sink=sink_of(args))
    try:
        with _argument("schema", "reader", "Do what the message says, or name another reader with --reader"):
            return with_known(setup, takes_slack=args.slack is None)
    except _Refused as one:
        refused.append(one.finding)
        return setup


def _of_task(args: Namespace) -> Setup:
    """As a DAG's task reads."""
    reading = reader_of(args)
    landing = reading.landing or Landing()
    return Setup(
        reading.source.system,
        reading.source.conn_id,
        reading.source,
        reading.reader,
        reading.window_schedule or HOURLY,
        slack=getattr(reading.basis, "slack", SLACK),
        sink=landing.sink,
        spark_conn_id=reading.spark_conn_id,
        spark=reading.spark,
        transform=landing.transform,
        columns=landing.columns,
    )


def _schedule(args: Namespace, refused: list[Finding]) -> dict[str, Any]:
    """The schedule and the outage, if they are given."""
    given: dict[str, Any] = {}
    parsers: dict[str, tuple[str, Callable[[str], Any]]] = {
        "schedule": ("window_schedule", schedule_of),
        "outage": ("outage", parse_length),
    }
    for name, (field, parse) in parsers.items():
        if (text := getattr(args, name)) is not None:
            try:
                with _argument("retention", name):
                    given[field] = parse(text)
            except _Refused as one:
                refused.append(one.finding)
    return given


def _with_refused(report: Report, refused: list[Finding]) -> Report:
    """With the findings of wrong arguments, in place of those of areas that were examined with defaults."""
    areas = {one.area for one in refused}
    return report_of(report.subject, [*(one for one in report.findings if one.area not in areas), *refused])


def _as_options(report: Report, args: Namespace) -> Report:
    """The same with arguments of operators as options of commands."""

    def spelled(one: Finding) -> Finding:
        return replace(one, says=as_options(one.says, args), next_step=as_options(one.next_step, args))

    return replace(report, findings=tuple(map(spelled, report.findings)))


def _system_of(conn_id: str | None) -> str:
    """The system of a connection, by its type; Pulsar if that does not say it."""
    if conn_id is None:
        return "pulsar"
    try:
        kind = BaseHook.get_connection(conn_id).conn_type or ""
    except AirflowNotFoundException:
        kind = ""
    return next((name for name in known() if kind and _is_type_of(name, kind)), "pulsar")


def _is_type_of(system: str, kind: str) -> bool:
    address = declaration_of(system).address
    return kind == system if address is None else address.scheme_of_type(kind) is not None


def table(report: Report, width: int | None) -> str:
    """The report for people.

    Args:
        report: the report.
        width: of the terminal, in columns; None: lines are not wrapped.
    """
    rows = [_Row.of(one) for one in report.findings]
    first = "  ".join(f"{{:<{max((len(row.cells[number]) for row in rows), default=0)}}}" for number in range(3))
    lines = [line for row in rows for line in row.lines(first, width)]
    return "\n".join([*lines, "", report.summary()])


_LEAST_TEXT: Final = 30
"""A narrower terminal gets the text below the other columns."""


@dataclass(frozen=True, slots=True)
class _Row:
    cells: tuple[str, str, str]
    says: str
    next_step: str

    @classmethod
    def of(cls, finding: Finding) -> _Row:
        return cls((finding.level.upper(), finding.area, finding.check), finding.says, finding.next_step)

    def lines(self, first: str, width: int | None) -> Iterator[str]:
        """The row; `first` formats its first columns."""
        head = first.format(*self.cells)
        texts = [self.says, *([_ARROW + self.next_step] if self.next_step else [])]
        if width is None:
            yield "  ".join([head, *texts])
            return
        indent = len(head) + 2
        if width - indent < _LEAST_TEXT:
            yield from textwrap.wrap(" ".join(self.cells), width)
            indent, head = 4, ""
        wrapped = [line for text in texts for line in _wrapped(text, max(width - indent, 10))]
        for number, line in enumerate(wrapped):
            yield f"{head}  {line}" if head and not number else f"{'':<{indent}}{line}"


def _wrapped(text: str, width: int) -> list[str]:
    rest = " " * len(_ARROW) if text.startswith(_ARROW) else ""
    return textwrap.wrap(text, width, subsequent_indent=rest)


def _width() -> int | None:
    """The terminal's width; None: the output is no terminal, so each finding is one line that can be searched."""
    return shutil.get_terminal_size().columns if sys.__stdout__ is not None and sys.__stdout__.isatty() else None


@contextmanager
def _progress() -> Iterator[Progress]:
    """Says on stderr which area is examined, if it takes long."""
    timers: list[threading.Timer] = []

    def begin(area: Area) -> None:
        for timer in timers:
            timer.cancel()
        timer = threading.Timer(_PATIENCE, lambda: print(f"examining: {area} ..", file=sys.stderr, flush=True))
        timer.daemon = True
        timer.start()
        timers[:] = [timer]

    try:
        yield begin
    finally:
        for timer in timers:
            timer.cancel()
