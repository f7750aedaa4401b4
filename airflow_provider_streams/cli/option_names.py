"""What errors and logs say of operators' arguments, as the command line's options."""

from __future__ import annotations

import logging
import re
import shlex
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Final

from airflow_provider_streams.model.schema.payload_options import (
    ARGUMENT_IN_TEXT,
    FIRST_IN_TEXT,
    PAYLOAD_FLAGS,
    PAYLOAD_IN_TEXT,
)

_OF_VALUES: Final = ("type", "types", "version", "placeholder", *PAYLOAD_FLAGS)
"""Arguments of payloads that have an option of values."""
_OWN: Final = {
    "value": "--value-format",
    "key": "--key-format",
    "overlap": "--replace-overlaps",
    "widen": "--sink-option widen=true",
    "write": "--write",
    **{name: f"--value-{name.replace('_', '-')}" for name in _OF_VALUES},
}
"""Arguments whose option has another name."""
_ALONE: Final = (
    *("on_loss", "on_unproven", "on_decode_error", "max_decode_error_rate", "max_skew", "allowed_lateness"),
    *("window_length", "allow_fewer_rows", "max_bytes", "max_windows"),
)
"""Arguments that are no names of anything else, like columns and settings of sinks are."""
_PART: Final = re.compile(r"""(?<![\w.'"-])((?:value|key)_[a-z_]+)(?:=(\w+))?(?![\w'"(-])""")
"""A payload's part, as options of data sources spell it."""
_NAME: Final = re.compile(rf"(?<![\w.'\"-])({'|'.join(_ALONE)})(?![\w.='\"(-])")


_OF_DAGS: Final = ("value_", "key_", "sink_option", "columns")
"""How options begin that a command does not take with `--dag-id`: the DAG says it."""
_OURS: Final = "airflow_provider_streams"


def as_options(text: str, args: Namespace | None = None) -> str:
    """A text in which each argument that is also an option is written as one.

    `full_refresh=True` becomes `--full-refresh`, `on_loss='record'` `--on-loss record`, and `max_skew` `--max-skew`. An
    option that the running command does not take is written with a command that does. With `--dag-id`, arguments that
    only the DAG may set stay as DAGs write them.

    Args:
        text: an error, a log message or a remark.
        args: of the running command; None: it takes every option.
    """
    text = PAYLOAD_IN_TEXT.sub(partial(_payload, args), text)
    text = ARGUMENT_IN_TEXT.sub(partial(_option, args), text)
    text = _PART.sub(partial(_part, args), text)
    return _NAME.sub(lambda found: _written(_flag(found[1]), args) or found[0], text)


@contextmanager
def logs_as_options(args: Namespace) -> Iterator[None]:
    """Meanwhile, this package's log messages are written as `as_options` writes texts."""

    def spell(record: logging.LogRecord) -> bool:
        if record.name.partition(".")[0] == _OURS:
            record.msg, record.args = as_options(record.getMessage(), args), ()
        return True

    handlers = list(logging.getLogger().handlers)
    for handler in handlers:
        handler.addFilter(spell)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(spell)


def _payload(args: Namespace | None, found: re.Match[str]) -> str:
    flag = _OWN[found[1]]
    if _is_of_dag(flag, args):
        return found[0]
    if found[2] == "Registry" and args is not None and hasattr(args, "registry"):
        return "--registry CONN_ID"  # commands of schemas name the registry alone
    inside = [_option(args, one) for one in ARGUMENT_IN_TEXT.finditer(found[3]) if one[1] in _OF_VALUES]
    if schema := FIRST_IN_TEXT.match(found[3]):
        inside = [f"--{found[1]}-schema {shlex.quote(schema[1])}", *inside]
    return " ".join([f"{flag} {found[2].lower()}", *inside])


def _part(args: Namespace | None, found: re.Match[str]) -> str:
    flag = _flag(found[1])
    return _written(flag and (f"{flag} {found[2]}" if found[2] else flag), args) or found[0]


def _option(args: Namespace | None, found: re.Match[str]) -> str:
    name, value = found[1], found[2]
    flag = _OWN.get(name) or _flag(name)
    has_value = value != "True" and name != "overlap"
    word = value if value == ".." else shlex.quote(value[1:-1])
    return _written(flag and (f"{flag} {word}" if has_value else flag), args) or found[0]


def _written(option: str | None, args: Namespace | None) -> str | None:
    """An option as a person can use it next to the running command; None: it stays as it is."""
    if option is None or _is_of_dag(option, args):
        return None
    if args is None or hasattr(args, _dest(option)):
        return option
    return f"`airflow streams {_taking(option)} .. {option}`"


def _is_of_dag(option: str, args: Namespace | None) -> bool:
    return bool(getattr(args, "dag_id", None)) and _dest(option).startswith(_OF_DAGS)


def _dest(option: str) -> str:
    return option.split(maxsplit=1)[0].removeprefix("--").replace("-", "_")


def _flag(name: str) -> str | None:
    flag = f"--{name.replace('_', '-')}"
    return flag if flag in _flags("backfill") else None


def _taking(option: str) -> str:
    return "read" if option.split(maxsplit=1)[0] in _flags("read") else "backfill"


@cache
def _flags(name: str) -> frozenset[str]:
    """The options of a command; `backfill` has the most."""
    from airflow_provider_streams.cli.parser import BACKFILL, READ  # noqa: PLC0415 - when an error is shown

    command = {"read": READ, "backfill": BACKFILL}[name]
    return frozenset(flag for arg in command.args for flag in arg.flags)
