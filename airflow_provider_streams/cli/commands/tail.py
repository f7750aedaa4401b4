"""What `airflow streams tail` does: show the last events of a source, and follow it."""

from __future__ import annotations

import json
import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from airflow_provider_streams.cli.action import command
from airflow_provider_streams.cli.arguments import source_of_args
from airflow_provider_streams.cli.event_lines import EventLines, printable
from airflow_provider_streams.cli.option_names import as_options
from airflow_provider_streams.cli.output import answer, drop_answers, terminal_width
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.errors import InvalidRequest, SourceNotFound, StreamsError
from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.systems.conditions import condition_from_json
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.systems.system_pool import SystemPool
from airflow_provider_streams.windows.tail.row_condition import RowCondition
from airflow_provider_streams.windows.tail.tail import Tail, known_places

if TYPE_CHECKING:
    from airflow_provider_streams.hooks.base import StreamHook
    from airflow_provider_streams.model.plan.plan import Plan
    from airflow_provider_streams.model.stream.source import Source
    from airflow_provider_streams.windows.tail.event import Event
    from airflow_provider_streams.windows.tail.shard_tail import Places
    from airflow_provider_streams.windows.tail.tail import Seen


@command
def tail(args: Namespace) -> None:
    """Show the last events, and with `--follow` those that come."""
    _check(args)
    source = source_of_args(args)
    hook = hook_for(source)
    try:
        with closing(SystemPool(hook.system)) as systems:
            condition = RowCondition(args.where) if args.where else None
            found = Tail(systems, source, condition, args.max_bytes, partial(_places, source))
            show = _as_json if args.json else _as_line
            seen = found.last(args.number)
            _show(seen, show, args)
            if args.follow:
                _follow(found, seen, show, args, lambda: _has_ended(hook, source))
            elif not seen.events and not seen.notes:  # a note may say that some cannot be shown
                _note(f"{source} holds no {'such event' if args.where else 'event'}", args)
    except KeyboardInterrupt:
        pass  # how a person ends it
    except BrokenPipeError:
        drop_answers()  # `| head` has enough


def _places(source: Source, plan: Plan) -> Places:
    """The recorded cuts, if the system needs them."""
    if declaration_of(source.system).starts_at_units:
        return {}
    with open_journal() as journal:
        return known_places(journal, source, plan)


def _check(args: Namespace) -> None:
    if args.number < (0 if args.follow else 1) or args.max_bytes < 1:
        raise InvalidRequest("-n and --max-bytes must be positive")
    if not args.interval > 0:
        raise InvalidRequest(f"--interval must be a positive number of seconds, got {args.interval}")


def _follow(
    found: Tail, seen: Seen, show: Callable[[Event], str], args: Namespace, has_ended: Callable[[], bool]
) -> None:
    """Show what comes, until the source ends or is deleted."""
    told = set(seen.notes)
    while not seen.is_gone:
        if not seen.events and has_ended():
            _note("the stream has ended: no more events can come", args)
            return
        time.sleep(args.interval)
        try:
            seen = found.since(seen.plan, max(args.number, 1))
        except SourceNotFound:
            break
        except StreamsError as error:
            if not error.retryable:
                raise
            seen = replace(seen, events=(), notes=(f"{type(error).__name__}: {error}",))
        _show(replace(seen, notes=tuple(note for note in seen.notes if note not in told)), show, args)
        told.update(seen.notes)
    _note("the stream was deleted", args)


def _show(seen: Seen, show: Callable[[Event], str], args: Namespace) -> None:
    for event in seen.events:
        answer(show(event))
    for note in seen.notes:
        _note(note, args)


def _note(text: str, args: Namespace) -> None:
    """On stderr: another program may read the answer on stdout."""
    print(printable(as_options(text, args)), file=sys.stderr, flush=True)


def _as_json(event: Event) -> str:
    return json.dumps(event.to_json(), default=str)


def _as_line(event: Event) -> str:
    # asked each time: a terminal's window may change
    return EventLines(terminal_width(), "NO_COLOR" not in os.environ).line(event)


def _has_ended(hook: StreamHook, source: Source) -> bool:
    """Whether nothing can come any more, as far as the system can tell."""
    kind = declaration_of(source.system).ended
    if kind is None:
        return False
    try:
        return hook.check(source, condition_from_json(source.system, {"kind": kind})).ready
    except StreamsError:  # several streams; or it cannot be asked now
        return False
