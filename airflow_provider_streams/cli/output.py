"""What `airflow streams ..` prints: on stdout the answer, and nothing else."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO

_STDOUT, _STDERR = 1, 2

_answers: list[TextIO] = []
"""Where answers go while something else may be printed."""


def answer(text: str) -> None:
    """Print a command's answer, or a part of it."""
    print(text, file=_answers[-1] if _answers else sys.stdout, flush=True)


@contextmanager
def answers_alone() -> Iterator[None]:
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
