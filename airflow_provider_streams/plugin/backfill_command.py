"""The command that previews a backfill, ready for a shell, an option a line. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.journal.reader_overview import ReaderOverview, ReadingTask
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.backfill import Select
from airflow_provider_streams.model.window.window import Window, utc_text
from airflow_provider_streams.model.window.window_schedule import WindowSchedule
from airflow_provider_streams.systems.registry import declaration_of
from airflow_provider_streams.systems.source_json import decoded_source, payloads_of


@dataclass(frozen=True, slots=True)
class WantedBackfill:
    """What a command is to fill."""

    one: ReaderOverview
    span: Window
    select: Select
    window_schedule: WindowSchedule | None
    """How the reader's windows tile time, where the journal does not keep it."""
    basis: str | None = None


def of_task(wanted: WantedBackfill, task: ReadingTask) -> str:
    """The command that reads as a DAG's task does: its table, transform, columns and Spark settings are the task's."""
    lines = [["--dag-id", task.dag_id], ["--task-id", task.task_id]]
    if task.map_index >= 0:
        lines += [["--map-index", str(task.map_index)]]
    # the task may read something else by now
    lines += [["--source-key", wanted.one.source_key]]
    return _text([*lines, *_span(wanted)])


def of_source(wanted: WantedBackfill, source: Source) -> str | None:
    """The command that names the source. The journal knows where the rows go and how they are made.

    None: the reader has no table, or no command can name the source.
    """
    kept = wanted.one.landing
    if kept is None or kept.landing["sink"] is None or not _can_be_named(source):
        return None
    names, details = declaration_of(source.system).names_of(source)
    flags = ([f"--{name.replace('_', '-')}", value] for name, value in details.items())
    lines = [*filter(None, [names]), *flags, ["--conn-id", source.conn_id]]
    if wanted.basis is not None and kept.basis is None and wanted.basis != declaration_of(source.system).basis().name:
        lines += [["--basis", wanted.basis]]
    return _text([*lines, *_span(wanted)], source.system)


def of_quarantine(one: ReaderOverview, window: Window) -> str:
    """The command that shows a window's events that could not be decoded."""
    lines = [["--source", one.source_key], ["--reader", one.reader], ["--window", str(window)]]
    return _lines([["airflow", "streams", "quarantine", "show"], *lines])


def _can_be_named(source: Source) -> bool:
    """Whether the command line makes the same source of its names."""
    declared = declaration_of(source.system)
    names, details = declared.names_of(source)
    try:
        again = declared.source(names, source.conn_id, details)
        return source == decoded_source(again, {what: one for what, one in payloads_of(source).items() if one})
    except StreamsError:
        return False


def _span(wanted: WantedBackfill) -> Iterator[list[str]]:
    yield ["--reader", wanted.one.reader]
    yield ["--start", utc_text(wanted.span.start), "--end", utc_text(wanted.span.end)]
    kept = wanted.one.landing
    if wanted.window_schedule is not None and (kept is None or kept.window_schedule is None):
        yield ["--window-length", str(wanted.window_schedule)]
    yield ["--select", wanted.select]
    if wanted.select == "lost":
        yield ["--on-loss", "record"]
    yield ["--dry-run"]


def _text(lines: list[list[str]], *system: str) -> str:
    return _lines([["airflow", "streams", "backfill", *system], *lines])


def _lines(words: list[list[str]]) -> str:
    return " \\\n  ".join(map(shlex.join, words))
