"""What `airflow streams quarantine ..` does: look at events that could not be decoded, and decode them again."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from airflow_provider_streams.airflow_runtime.window_context import open_context
from airflow_provider_streams.cli.action import command, task_instance_key
from airflow_provider_streams.cli.arguments import Reading, reader_of
from airflow_provider_streams.cli.option_names import as_options
from airflow_provider_streams.cli.output import answer, answer_data, answer_rows, for_people
from airflow_provider_streams.cli.reader_arguments import readers_of
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.errors import InvalidRequest, SinkError
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.window import Window, utc_moment
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.systems.source_json import decoded_source, payloads_of
from airflow_provider_streams.windows.after_landing.quarantine_replay import (
    Replayed,
    Replayer,
    quarantine_of,
    quarantined_windows,
    receipt_of,
)
from airflow_provider_streams.windows.claim.landing_defaults import stored_landing

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.model.window.coverage import WindowState

_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
SHOWN_BYTES: Final = 32
"""So many of a payload's first bytes are shown."""


@command
def list_(args: Namespace) -> None:
    """Show which windows have events that could not be decoded, and why."""
    with open_journal() as journal:
        found = readers_of(journal, args)
        rows = [
            row
            for one in found
            for item in quarantined_windows(journal, *one, _span(args))
            for row in _rows(journal, *one, item)
        ]
    answer_rows(rows, args.output, "no window that the journal knows has events that could not be decoded")


def _rows(journal: Journal, key: str, reader: str, item: WindowState) -> Iterator[dict[str, Any]]:
    """A window's events by cause; without causes where its table cannot be looked at."""
    about = {"source": key, "reader": reader, "window": str(item.window)}
    unseen = {**about, "events": item.quarantined, "version": ""}
    try:
        seen = quarantine_of(journal, key, reader, item.window)
    except (SinkError, InvalidRequest) as error:
        yield {**unseen, "cause": f"not seen from here: {as_options(str(error))}"}
        return
    if seen is None:
        yield {**unseen, "cause": "not seen from here: the table does not hold the window, or is not mounted"}
        return
    causes = seen.causes()
    for (cause, version), events in sorted(causes.items(), key=lambda one: -one[1]):
        yield {**about, "events": events, "version": version, "cause": cause}


@command
def show(args: Namespace) -> None:
    """Show the first quarantined events of a window: where each is, why, and how its payload begins."""
    window = Window.parse(args.window)
    with open_journal() as journal:
        key, reader = _one_reader(journal, args)
        seen = quarantine_of(journal, key, reader, window)
        receipt = receipt_of(journal, key, reader, seen, window) if seen else None
        plan = journal.plan_read(key, reader, window, seen.fingerprint) if seen else None
        if seen is None or plan is None:
            raise InvalidRequest(f"reader {reader!r} of {key} has not landed {window} here")
        shards = {one.quarantine_file: plan.splits[one.index].shard for one in receipt.splits} if receipt else {}
        events = [
            _event(plan.source.system, shards.get(file.name, ""), event) for file, event in seen.first(args.limit)
        ]
    answer_rows(events, args.output, f"no event of {window} is in quarantine")


def _event(system: str, shard: str, event: dict[str, Any]) -> dict[str, Any]:
    """What is shown of one."""
    from airflow_provider_streams.spark.quarantine.quarantine_files import CAUSE, VERSION  # noqa: PLC0415 - where a table is

    payload = declaration_of(system).payload_columns
    position = ":".join(str(event[name]) for name in payload.position) if payload else ""
    value = event[payload.value] if payload else None
    begin = (value or b"")[:SHOWN_BYTES]
    return {
        "shard": shard,
        "position": position,
        "cause": event[CAUSE],
        "version": event[VERSION] or "",
        "bytes": None if value is None else len(value),
        "hex": begin.hex(" "),
        "text": "".join(char if char.isprintable() else "." for char in begin.decode("utf-8", "replace")),
    }


@command
def replay(args: Namespace) -> None:
    """Decode quarantined events again, and add those that can be decoded now to the rows of their windows."""
    say, reading = for_people(args.output), reader_of(args)
    done: list[Replayed] = []
    with open_journal() as journal:
        source = _decoded(reading, journal, own=bool(args.dag_id))  # which decides the connections that are used
    with open_context(source) as window_context:
        replayer = Replayer(
            window_context, source, reading.reader, task_instance_key("replay"), lasting=bool(args.dag_id)
        )
        span = Window.parse(args.window) if args.window else _span(args)
        for item in quarantined_windows(window_context.journal, source.key, reading.reader, span):
            done.append(replayer.replay(item.window))
            if say:
                answer(as_options(str(done[-1]), args))
    if not say:
        answer_data([one.to_json() for one in done], args.output)
    elif not done:
        answer("no window has events that could not be decoded")


def _decoded(reading: Reading, journal: Journal, *, own: bool) -> Source:
    """The source, with what is asked of its values and keys; what is not asked is as it was, unless a DAG says it."""
    kept = None if own else stored_landing(journal, reading.source.key, reading.reader)
    if kept is None:
        return reading.source
    asked = {what: one for what, one in payloads_of(reading.source).items() if one}
    before = {what: one for what, one in (("value", kept.value), ("key", kept.key)) if one}
    return decoded_source(reading.source, {**before, **asked})


def _one_reader(journal: Journal, args: Namespace) -> tuple[str, str]:
    """The reader that is meant.

    Raises:
        InvalidRequest: there is none, or there are several.
    """
    found = readers_of(journal, args)
    if len(found) != 1:
        names = "; ".join(f"--source {key} --reader {reader}" for key, reader in found) or "none"
        raise InvalidRequest(f"name one reader with --source and --reader; the journal knows of these: {names}")
    return found[0]


def _span(args: Namespace) -> Window:
    return Window(utc_moment(args.start) if args.start else _FIRST, utc_moment(args.end) if args.end else _LAST)
