"""The journal: where it is, whether this release can use it, and who else writes to it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from airflow_provider_streams.connections.journal import configured_journal, journal_url
from airflow_provider_streams.doctor.disk_space import SpaceNeed
from airflow_provider_streams.doctor.finding import Finding, Notes
from airflow_provider_streams.errors.databases import SQLITE_NEEDS
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.model.stream.source import Source

if TYPE_CHECKING:
    from airflow_provider_streams.journal.inspection import Inspection, Writer

_LATELY: Final = timedelta(days=1)
_SHOWN: Final = 3
_SPACE: Final = SpaceNeed(
    error_below=SQLITE_NEEDS,
    warning_below=16 * SQLITE_NEEDS,
    advice="Free some space, or name a database on another disk in the journal's connection",
)


def inspected() -> Inspection:
    """The configured journal as it is; nothing is made or migrated. Raises `StreamsError`."""
    from airflow_provider_streams.journal.inspection import inspect_journal  # noqa: PLC0415 - SQL when used

    return inspect_journal(journal_url(configured_journal()), datetime.now(UTC) - _LATELY)


def check_journal(source: Source | None, reader: str | None) -> list[Finding]:
    """Database, migration, other readers."""
    notes = Notes("journal")
    with notes.failing("database", _check_database()):
        judge(notes, inspected(), source, reader)
    if notes.failed("database"):
        notes.skipped("migration", "the database cannot be used")
        notes.skipped("other writers", "the database cannot be used")
    return notes.findings


def _check_database() -> str:
    name = configured_journal()
    return f"Do what the message says, or name another database: in connection {name}, or [streams] journal_conn_id"


def judge(notes: Notes, seen: Inspection, source: Source | None, reader: str | None) -> None:
    """The findings of an inspection. Pure."""
    if seen.free is not None:
        _SPACE.judge(notes, seen.name, seen.free)
    if seen.state == "absent":
        notes.ok("database", f"{seen.name} has no journal yet, and the first read makes one")
        notes.skipped("migration", "there is no journal yet")
        notes.skipped("other writers", "there is no journal yet")
        return
    only_here = ", for the processes of this machine alone" if seen.backend == "sqlite" else ""
    notes.ok("database", f"{seen.name} answers{only_here}")
    _judge_migration(notes, seen)
    if seen.state == "ready":
        _judge_writers(notes, seen.writers, source, reader)
    else:
        notes.skipped("other writers", "the journal is of another release")


def _judge_migration(notes: Notes, seen: Inspection) -> None:
    if seen.state == "ready":
        notes.ok("migration", f"its tables are at this release's revision {seen.revision}")
    elif seen.state == "older":
        notes.warning(
            "migration",
            f"its tables are at the older revision {seen.revision}, and the next use migrates them",
            "Update the package on every machine that uses this journal",
        )
    else:
        notes.error(
            "migration",
            f"a newer release has migrated it to revision {seen.revision}",
            "Install that release here as well",
        )


def _judge_writers(notes: Notes, writers: tuple[Writer, ...], source: Source | None, reader: str | None) -> None:
    others = [one for one in writers if source is None or (one.source_key, one.reader) != (source.key, reader)]
    if not others:
        notes.ok("other writers", f"no other reader has run within {_LATELY.days * 24} hours")
        return
    more = f"; and {len(others) - _SHOWN:,} more" if len(others) > _SHOWN else ""
    shown = "; ".join(map(_shown, others[:_SHOWN])) + more
    notes.ok("other writers", f"{counted(len(others), 'other reader')} ran within {_LATELY.days * 24} hours: {shown}")


def _shown(one: Writer) -> str:
    running = f", {one.running} running" if one.running else ""
    return f"{one.reader} of {one.source_key} at {one.last_started:%Y-%m-%d %H:%M} UTC{running}"
