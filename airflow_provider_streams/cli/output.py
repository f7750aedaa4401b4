"""What `airflow streams ..` prints: on stdout the answer, and nothing else."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any, Final, TextIO

from airflow.cli.simple_table import AirflowConsole
from airflow.utils import yaml

_STDOUT, _STDERR = 1, 2
_WIDEST: Final = 1_000_000

_answers: list[TextIO] = []
"""Where answers go while something else may be printed."""


def answer(text: str) -> None:
    """Print a command's answer, or a part of it."""
    print(text, file=_file(), flush=True)


def drop_answers() -> None:
    """The program that read the answers has closed them: drop the rest without a failure."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, _file().fileno())
    os.close(sink)


def terminal_width() -> int | None:
    """How many cells a line of answers has; None: they do not go to a terminal."""
    file = _file()
    return os.get_terminal_size(file.fileno()).columns if file.isatty() else None


def for_people(output: str) -> bool:
    """Whether `--output` asks for text, and not for what a program reads."""
    return output in ("table", "plain")


def answer_data(data: object, output: str) -> None:
    """Print plain values for a program: as JSON, or as YAML."""
    text = json.dumps(data, indent=2, default=str)
    answer(yaml.dump(json.loads(text), sort_keys=False).rstrip() if output == "yaml" else text)


def answer_rows(rows: Sequence[Mapping[str, Any]], output: str, otherwise: str) -> None:
    """Print rows as Airflow's own commands do; of none, a sentence that says so."""
    if not for_people(output):
        answer_data(rows, output)
    elif not rows:
        answer(otherwise)
    else:
        _print_table([{name: "" if cell is None else str(cell) for name, cell in row.items()} for row in rows], output)


def _print_table(rows: list[dict[str, str]], output: str) -> None:
    file = _file()
    # a name like `pulsar:key:[a-z]` is neither an emoji nor markup
    console = AirflowConsole(file=file, markup=False, emoji=False)
    if not file.isatty():
        console.width = _WIDEST  # what is copied from there, or searched, is in one piece
    with redirect_stdout(file):
        console.print_as_plain_table(rows) if output == "plain" else console.print_as_table(rows)
    file.flush()


def _file() -> TextIO:
    return _answers[-1] if _answers else sys.stdout


@contextmanager
def stdout_for_answers() -> Iterator[None]:
    """Whatever else is written to stdout meanwhile, by loggers or by programs that are started, goes to stderr."""
    printed = sys.stdout
    if not _is_standard_output(printed):
        with _answering(printed):
            yield
        return
    printed.flush()
    kept = os.dup(_STDOUT)
    os.dup2(_STDERR, _STDOUT)
    try:
        with os.fdopen(os.dup(kept), "w", encoding=printed.encoding) as answers, _answering(answers):
            yield
    finally:
        printed.flush()  # what a logger that keeps it has left there
        os.dup2(kept, _STDOUT)
        os.close(kept)


@contextmanager
def _answering(file: TextIO) -> Iterator[None]:
    _answers.append(file)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _answers.pop()


def _is_standard_output(file: TextIO) -> bool:
    try:
        return file.fileno() == _STDOUT
    except OSError:  # a test's, or a notebook's
        return False
