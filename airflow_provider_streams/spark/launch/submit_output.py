"""What the output of spark-submit says of why it failed. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from airflow_provider_streams.errors import as_clause

_FAILED: Final = re.compile(r'^(?:Exception in thread "main" |Caused by: )(?:[\w.$]+\.)?(\w+: .+)')
"""Of Java: what ended it, and causes of that."""
_REFUSED: Final = re.compile(r"^(?:Invalid|Unrecognized|Unsupported|Conflicting|Error:) ?.+")
"""Of a JVM that does not start, and of spark-submit's own checks."""
_NO_JVM: Final = "Error: Could not create the Java Virtual Machine."
"""Follows the option that a JVM refuses; it may also follow `Error occurred ..`, of too little memory."""
_FATAL: Final = re.compile(r"^(?:\d\S* \S+ )?(?:ERROR|FATAL) (?:\S+: )?(.+)")
"""Of the log of a Spark that gave up."""
_MOST_LETTERS: Final = 500


class Reason(NamedTuple):
    """Why a program of Spark ended."""

    text: str
    """As its output has it; empty: it does not say."""
    is_final: bool
    """Whether it refused what it was given, so that it would end in the same way again."""


def reason_in(lines: Iterable[str]) -> Reason:
    """What the output of a program of Spark says of its end."""
    refused: list[str] = []
    failed: list[str] = []
    fatal = ""
    is_final = False
    for line in map(str.strip, lines):
        if line.startswith("Exception in thread"):
            failed = []
        if found := _FAILED.match(line):
            failed.append(found[1])
        elif _REFUSED.match(line):
            is_final |= bool(refused) and line == _NO_JVM and not refused[-1].startswith("Error")
            refused.append(line)
        elif found := _FATAL.match(line):
            fatal = found[1]
    said = [failed[0], failed[-1]] if failed else refused[:1] or [fatal]
    return Reason(as_clause("; ".join(dict.fromkeys(said))[:_MOST_LETTERS]), is_final)
