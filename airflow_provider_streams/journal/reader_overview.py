"""What every reader has been doing, summed up by the database."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, case, func, select

from airflow_provider_streams.errors import InvalidWindow
from airflow_provider_streams.journal import landings
from airflow_provider_streams.journal.landings import StoredLanding
from airflow_provider_streams.journal.tables import pins, readers, runs, sources
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.model.window.window_schedule import Every, WindowSchedule, parse_schedule

RECENT = 48
"""So many of the last runs, in order of their windows, show what a reader does."""


@dataclass(frozen=True, slots=True)
class Activity:
    """The runs of one DAG for one reader."""

    runs: int
    running: int
    """Of them that have not ended, or were killed."""
    first_start: datetime
    """The earliest window's start."""
    last_end: datetime
    """The latest window's end."""
    covered_end: datetime | None
    """The end of the latest window that was covered under the reader's present landing."""


@dataclass(frozen=True, slots=True)
class ReaderOverview:
    """One reader of one source."""

    id: int
    source_key: str
    reader: str
    version: int = 0
    """Greater after each change of its windows."""
    landing: StoredLanding | None = None
    source: Mapping[str, Any] | None = None
    """The source as plain JSON values; None: so far only its key was given."""
    by_dag: dict[str, Activity] = field(default_factory=dict)

    def of_dags(self, readable: Iterable[str]) -> ReaderOverview:
        """Without the runs of any other DAG."""
        return replace(self, by_dag={name: self.by_dag[name] for name in sorted(readable) if name in self.by_dag})

    @property
    def covered_end(self) -> datetime | None:
        """The latest covered window's end."""
        return max((one.covered_end for one in self.by_dag.values() if one.covered_end), default=None)

    @property
    def first_start(self) -> datetime | None:
        """The earliest window's start."""
        return min((one.first_start for one in self.by_dag.values()), default=None)

    @property
    def last_end(self) -> datetime | None:
        """The latest window's end."""
        return max((one.last_end for one in self.by_dag.values()), default=None)

    @property
    def runs(self) -> int:
        """How many runs there were, whatever became of them."""
        return sum(one.runs for one in self.by_dag.values())

    @property
    def running(self) -> int:
        """Runs that have not ended, or were killed."""
        return sum(one.running for one in self.by_dag.values())


@dataclass(frozen=True, slots=True)
class ReadingTask:
    """A task that read for a reader."""

    dag_id: str
    task_id: str
    map_index: int = -1
    """-1: not a mapped task."""


Activities = Callable[[Connection, ReaderOverview], dict[str, Activity]]


def activities(connection: Connection, one: ReaderOverview) -> dict[str, Activity]:
    """What each DAG has been doing for a reader: one pass over its runs."""
    here = runs.c.landing_id.is_not_distinct_from(one.landing.id if one.landing else None)
    statement = (
        select(
            runs.c.dag_id,
            func.count(),
            func.sum(case((runs.c.state == "running", 1), else_=0)),
            func.min(runs.c.window_start),
            func.max(runs.c.window_end),
            func.max(case((and_(runs.c.state == "covered", here), runs.c.window_end))),
        )
        .where(runs.c.reader_id == one.id)
        .group_by(runs.c.dag_id)
    )
    return {
        dag_id: Activity(count, int(running), first, last, covered)
        for dag_id, count, running, first, last, covered in connection.execute(statement)
    }


def overviews(
    connection: Connection, reader_id: int | None = None, *, done: Activities = activities
) -> list[ReaderOverview]:
    """Every reader, or one, by source and name.

    Args:
        connection: the journal's.
        reader_id: only this one; None: all.
        done: gives what was done for a reader. It may keep its answers by the reader's `version`.
    """
    known = select(readers.c.id, sources.c.source_key, sources.c.source, readers.c.reader, readers.c.version)
    known = known.join(sources)
    if reader_id is not None:
        known = known.where(readers.c.id == reader_id)
    rows = connection.execute(known).all()
    kept = landings.all_current(connection)
    listed = [
        ReaderOverview(row.id, row.source_key, row.reader, row.version, kept.get(row.id), row.source) for row in rows
    ]
    found = [replace(one, by_dag=done(connection, one)) for one in listed]
    return sorted(found, key=lambda one: (one.source_key, one.reader))


def schedule_of(connection: Connection, one: ReaderOverview) -> WindowSchedule | None:
    """How the windows of a reader tile time: as its landing says, else as its last windows do; None: none was read."""
    try:
        if one.landing is not None and one.landing.window_schedule is not None:
            return parse_schedule(one.landing.window_schedule)
    except InvalidWindow:
        pass  # a cron expression that this release of Airflow refuses
    usual = rhythm(connection, one.id)
    return None if usual is None else Every.through(usual.length, usual.start)


def rhythm(connection: Connection, reader_id: int) -> Window | None:
    """The latest window of the length that most of the reader's last windows have.

    They follow it on one window schedule.
    """
    statement = (
        select(runs.c.window_start, runs.c.window_end)
        .where(runs.c.reader_id == reader_id)
        .order_by(runs.c.window_start.desc())
        .limit(RECENT)
    )
    recent = [Window(row.window_start, row.window_end) for row in connection.execute(statement)]
    if not recent:
        return None
    ((length, _),) = Counter(window.length for window in recent).most_common(1)
    return max(window for window in recent if window.length == length)


def basis_of(connection: Connection, one: ReaderOverview) -> str | None:
    """How times become cuts for a reader: as its landing says, else by its last plan; None: nothing was planned."""
    if one.landing is not None and one.landing.basis is not None:
        return one.landing.basis
    statement = select(pins.c.plan).where(pins.c.reader_id == one.id).order_by(pins.c.id.desc()).limit(1)
    plan = connection.execute(statement).scalar()
    return None if plan is None else str(json.loads(plan)["basis"])


def tasks_of(connection: Connection, one: ReaderOverview) -> list[ReadingTask]:
    """The tasks that read the last windows of a reader; first the one that did so last."""
    statement = (
        select(runs.c.id, runs.c.dag_id, runs.c.task_id, runs.c.map_index)
        .where(runs.c.reader_id == one.id)
        .order_by(runs.c.window_start.desc())
        .limit(RECENT)
    )
    recent = sorted(connection.execute(statement), key=lambda row: row.id, reverse=True)
    return list(dict.fromkeys(ReadingTask(row.dag_id, row.task_id, row.map_index) for row in recent))
