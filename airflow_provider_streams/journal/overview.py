"""What every reader has been doing, summed up by the database: for those who look at many readers at once."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import Connection, case, func, select

from airflow_provider_streams.journal.tables import pins, readers, runs, sources
from airflow_provider_streams.model.window import Window

_RECENT = 48


@dataclass(frozen=True, slots=True)
class Activity:
    """The runs of one DAG for one reader."""

    last_run: int
    """The greatest number of a run."""
    runs: int
    running: int
    last_finished: datetime | None
    first_start: datetime
    """The earliest window's start."""
    last_end: datetime
    """The latest window's end."""
    covered_end: datetime | None
    """The latest covered window's end."""
    late_rows: int = 0
    """Rows that appeared after their windows were read, as far as somebody counted."""


@dataclass(frozen=True, slots=True)
class ReaderOverview:
    """One reader of one source."""

    id: int
    source_key: str
    reader: str
    by_dag: dict[str, Activity] = field(default_factory=dict)
    last_pin: int | None = None
    """The greatest number of a pin; None: nothing was ever planned."""

    def of_dags(self, readable: Iterable[str]) -> ReaderOverview:
        """Without the runs of any other DAG."""
        kept = {dag_id: self.by_dag[dag_id] for dag_id in sorted(readable) if dag_id in self.by_dag}
        return ReaderOverview(self.id, self.source_key, self.reader, kept, self.last_pin)

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
    def running(self) -> int:
        """Runs that have not ended, or were killed."""
        return sum(one.running for one in self.by_dag.values())


def overviews(connection: Connection, reader_id: int | None = None) -> list[ReaderOverview]:
    """Every reader, or one, by source and name."""
    known = select(readers.c.id, sources.c.source_key, readers.c.reader).join(sources)
    if reader_id is not None:
        known = known.where(readers.c.id == reader_id)
    activities = _activities(connection, reader_id)
    last_pins = _last_pins(connection, reader_id)
    found = [
        ReaderOverview(row.id, row.source_key, row.reader, activities[row.id], last_pins.get(row.id))
        for row in connection.execute(known)
    ]
    return sorted(found, key=lambda one: (one.source_key, one.reader))


def rhythm(connection: Connection, reader_id: int) -> Window | None:
    """The latest window of the length that most of the reader's last windows have: they follow it on one grid."""
    statement = (
        select(runs.c.window_start, runs.c.window_end)
        .where(runs.c.reader_id == reader_id)
        .order_by(runs.c.window_start.desc())
        .limit(_RECENT)
    )
    recent = [Window(row.window_start, row.window_end) for row in connection.execute(statement)]
    if not recent:
        return None
    length = _most_common([window.length for window in recent])
    return max(window for window in recent if window.length == length)


def last_basis(connection: Connection, reader_id: int) -> str | None:
    """The basis of the plan that was pinned last; None: nothing was ever planned."""
    statement = select(pins.c.plan).where(pins.c.reader_id == reader_id).order_by(pins.c.id.desc()).limit(1)
    plan = connection.execute(statement).scalar()
    return None if plan is None else str(json.loads(plan)["basis"])


def _most_common(lengths: list[timedelta]) -> timedelta:
    return Counter(lengths).most_common(1)[0][0]


def _activities(connection: Connection, reader_id: int | None) -> dict[int, dict[str, Activity]]:
    statement = select(
        runs.c.reader_id,
        runs.c.dag_id,
        func.max(runs.c.id),
        func.count(),
        func.sum(case((runs.c.state == "running", 1), else_=0)),
        func.max(runs.c.finished_at),
        func.min(runs.c.window_start),
        func.max(runs.c.window_end),
        func.max(case((runs.c.state == "covered", runs.c.window_end))),
        func.sum(runs.c.late_rows),
    ).group_by(runs.c.reader_id, runs.c.dag_id)
    if reader_id is not None:
        statement = statement.where(runs.c.reader_id == reader_id)
    found: dict[int, dict[str, Activity]] = defaultdict(dict)
    for reader, dag_id, last_run, count, running, finished, first, last, covered, late in connection.execute(statement):
        found[reader][dag_id] = Activity(
            last_run, count, int(running), finished, first, last, covered_end=covered, late_rows=int(late or 0)
        )
    return found


def _last_pins(connection: Connection, reader_id: int | None) -> dict[int, int]:
    statement = select(pins.c.reader_id, func.max(pins.c.id)).group_by(pins.c.reader_id)
    if reader_id is not None:
        statement = statement.where(pins.c.reader_id == reader_id)
    return {row[0]: row[1] for row in connection.execute(statement)}
