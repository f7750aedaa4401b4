"""Which runs and plans no longer decide anything, and may be forgotten.

These stay, however old they are, so that every answer about a window stays the same:

| what stays | what it decides |
|---|---|
| of each window and landing the last run, the last without a plan, and the last that covered | what is covered |
| of each window's newest plan the last covered run that counted late rows | the late rows of its next run |
| runs that have not ended, and covered ones whose asset event Airflow may not have | what is to be done |
| the last runs in order of their windows | which tasks read, and how their windows tile time |
| of each window the newest plan | what a retry reads |
| plans of runs that stay, and those where a chain's plan goes on | what a table holds, how a chain tiles |

So pruning deletes runs that a later one of their window made irrelevant, and plans that were replaced. Recorded cuts
are not history: `Journal.prune_cuts` forgets those.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, delete, or_, select, update

from airflow_provider_streams.errors import InvalidRequest, JournalError
from airflow_provider_streams.journal import row_ids
from airflow_provider_streams.journal.database import Database
from airflow_provider_streams.journal.reader_overview import RECENT
from airflow_provider_streams.journal.tables import pins, readers, runs, sources
from airflow_provider_streams.model.window.window import EPOCH

LEAST_AGE: Final = timedelta(days=1)
"""A run that looks dead may still end."""
EVERY: Final = timedelta(days=1)
"""How often a reader's history is pruned."""

_AT_ONCE = 500
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pruned:
    """How much of a reader's history was forgotten, or would be."""

    source_key: str
    reader: str
    runs: int
    plans: int


def check_age(keep: timedelta) -> timedelta:
    """The age itself.

    Raises:
        InvalidRequest: a run of that age may still be reading.
    """
    if keep < LEAST_AGE:
        raise InvalidRequest(f"runs and plans are kept for a day at least (1d), not for {keep}")
    return keep


def prune(database: Database, keep: timedelta, *, dry_run: bool) -> list[Pruned]:
    """Prune every reader; see `Journal.prune`."""
    before = _since(check_age(keep))
    known = select(readers.c.id, sources.c.source_key, readers.c.reader).join(sources)
    with database.reading() as connection:
        rows = connection.execute(known.order_by(sources.c.source_key, readers.c.reader)).all()
    counted = [Pruned(key, reader, *_prune_reader(database, number, before, dry_run)) for number, key, reader in rows]
    return [one for one in counted if one.runs or one.plans]


def prune_once_a_day(database: Database, reader_id: int, keep: timedelta) -> None:
    """Prune a reader, unless that was done today. A failed attempt is made again another day."""
    try:
        with database.reading() as connection:
            is_due = connection.execute(select(readers.c.id).where(*_due(reader_id))).first() is not None
        if not is_due:
            return
        with database.writing() as connection:
            mine = update(readers).where(*_due(reader_id)).values(pruned_at=datetime.now(UTC))
            is_due = connection.execute(mine).rowcount == 1  # otherwise another task was quicker
        if is_due:
            _prune_reader(database, reader_id, _since(keep))
    except JournalError as error:
        _log.warning("the journal was not pruned: %s", error)


def _since(keep: timedelta) -> datetime:
    """What is older may be forgotten."""
    now = datetime.now(UTC)
    return now - min(keep, now - EPOCH)  # a calendar does not reach as far back as a length of time


def _prune_reader(database: Database, reader_id: int, before: datetime, dry_run: bool = False) -> tuple[int, int]:  # noqa: FBT001, FBT002 - handed on
    """How many runs and plans went."""
    with database.reading() as connection:
        old_runs, old_plans = superfluous(connection, reader_id, before)
    if (old_runs or old_plans) and not dry_run:
        with database.writing() as connection:
            connection.execute(row_ids.change(reader_id))  # no run begins or ends meanwhile
            old_runs, old_plans = superfluous(connection, reader_id, before)
            for table, numbers in ((runs, old_runs), (pins, old_plans)):  # runs point to their plans
                for at in range(0, len(numbers), _AT_ONCE):
                    connection.execute(delete(table).where(table.c.id.in_(numbers[at : at + _AT_ONCE])))
    return len(old_runs), len(old_plans)


def _due(reader_id: int) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    pruned_at = readers.c.pruned_at
    return readers.c.id == reader_id, or_(pruned_at.is_(None), pruned_at < datetime.now(UTC) - EVERY)


def superfluous(connection: Connection, reader_id: int, before: datetime) -> tuple[list[int], list[int]]:
    """The runs and the plans of a reader that ended, or were pinned, before a time and decide nothing."""
    planned = (pins.c.id, pins.c.window_start, pins.c.window_end, pins.c.pinned_at, pins.c.follows_id)
    of_reader = select(*planned).where(pins.c.reader_id == reader_id)
    plans = connection.execute(of_reader.order_by(pins.c.generation, pins.c.id)).all()
    newest = {(row.window_start, row.window_end): row.id for row in plans}
    columns = (column for column in runs.c if column.name not in ("receipt", "error_message"))
    tries = connection.execute(select(*columns).where(runs.c.reader_id == reader_id).order_by(runs.c.id)).all()
    kept = _kept_runs(tries, newest, before)
    read = {row.pin_id for row in tries if row.id in kept}
    needed = _kept_plans(plans, {*newest.values(), *read}, before)
    return [row.id for row in tries if row.id not in kept], [row.id for row in plans if row.id not in needed]


def _kept_runs(tries: Sequence[Row[Any]], newest: dict[tuple[datetime, datetime], int], before: datetime) -> set[int]:
    """Numbers of the runs that stay, of all runs of a reader in order."""
    last: dict[tuple[Any, ...], Row[Any]] = {}
    for row in tries:
        window = (row.window_start, row.window_end)
        last["tried", *window, row.landing_id] = row
        if row.pin_id is None:  # decides, while no run has begun with the newest plan
            last["unplanned", *window, row.landing_id] = row
        if row.state == "covered":
            last["covered", *window, row.landing_id] = row
            ended = ("ended", *window, row.landing_id)
            last[ended] = max(last.get(ended, row), row, key=lambda one: (one.finished_at, one.id))
            if row.late_rows is not None and row.pin_id == newest.get(window):
                last["late", *window] = row
    recent = sorted(tries, key=lambda row: row.window_start, reverse=True)[:RECENT]
    needed = [row for row in tries if _is_open(row) or (row.finished_at or row.started_at) >= before]
    return {row.id for row in (*last.values(), *recent, *needed)}


def _is_open(row: Row[Any]) -> bool:
    return row.state == "running" or (row.state == "covered" and not _is_announced(row))


def _is_announced(row: Row[Any]) -> bool:
    return row.announced_at is not None and row.announced_by is None


def _kept_plans(plans: Sequence[Any], counting: set[int], before: datetime) -> set[int]:
    """Numbers of the plans that stay, of all plans of a reader."""
    kept = counting | {row.id for row in plans if row.pinned_at >= before}
    for row in sorted(plans, key=lambda row: row.id, reverse=True):  # a plan goes on where an earlier one ends
        if row.id in kept and row.follows_id is not None:
            kept.add(row.follows_id)
    return kept
