"""What `airflow streams doctor` does: it examines a set-up before a reader runs. It reads and lands nothing."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
import threading
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from airflow.providers.common.compat.sdk import AirflowNotFoundException
from airflow.sdk import BaseHook

from airflow_provider_streams.cli.action import command
from airflow_provider_streams.cli.arguments import reader_of, source_of_args, spark_of
from airflow_provider_streams.cli.output import answer
from airflow_provider_streams.cli.sink_arguments import sink_of
from airflow_provider_streams.doctor.examination import Progress, examine
from airflow_provider_streams.doctor.finding import ERRORS, Area, Finding, Report
from airflow_provider_streams.doctor.known_reader import with_known
from airflow_provider_streams.doctor.setup import HOURLY, Setup, schedule_of
from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.model.sinks.landing import Landing
from airflow_provider_streams.model.window.basis import SLACK
from airflow_provider_streams.model.window.window import length_of_seconds, parse_length
from airflow_provider_streams.systems.registry import declaration_of, known

_PATIENCE: Final = 2.0
"""Seconds before a line says what is examined."""
_ARROW: Final = "-> "


@command
def doctor(args: Namespace) -> None:
    """Examine, show, and exit by what was found."""
    try:
        setup = setup_of(args)
    except StreamsError as error:
        # exit code 1 means warnings here
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        if args.json:
            refused = Report((Finding("connection", "arguments", "error", str(error)),))
            answer(json.dumps(refused.to_json(), indent=2))
        raise SystemExit(ERRORS) from error
    with _progress() as progress:
        report = examine(setup, progress)
    status = report.exit_status(strict=args.strict)
    if args.json:
        answer(json.dumps({**report.to_json(), "exit_status": status}, indent=2))
    else:
        answer(table(report, _width()))
    raise SystemExit(status)


def setup_of(args: Namespace) -> Setup:
    """The set-up that the arguments name.

    Raises:
        InvalidRequest: they contradict each other.
    """
    if args.dag_id or args.task_id:
        return replace(_of_task(args), **_given(args))
    asked = bool(args.source[1:] or args.topic or args.pattern or args.scope)
    system = args.source[0] if args.source else _system_of(args.conn_id)
    source = source_of_args(Namespace(**{**vars(args), "source": args.source or [system]})) if asked else None
    setup = Setup(
        system,
        args.conn_id or f"{system}_default",
        source,
        args.reader,
        sink=sink_of(args),
        spark_conn_id=args.spark_conn_id,
        spark=spark_of(args),
    )
    return replace(with_known(setup, takes_slack=args.slack is None), **_given(args))


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


def _given(args: Namespace) -> dict[str, Any]:
    """What only arguments say."""
    given: dict[str, Any] = {"write": args.write}
    if args.schedule is not None:
        given["window_schedule"] = schedule_of(args.schedule)
    if args.outage is not None:
        given["outage"] = parse_length(args.outage)
    if args.slack is not None:
        given["slack"] = length_of_seconds("--slack", args.slack)
    return given


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
