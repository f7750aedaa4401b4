"""Recorded cuts: what the tails of a source were, and when they were sampled. For the basis `append`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, RowMapping, delete, insert, select

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.journal import names
from airflow_provider_streams.journal.database import Database
from airflow_provider_streams.journal.tables import cuts, edges
from airflow_provider_streams.model.cut import Cut


@dataclass(frozen=True, slots=True)
class RecordedCut:
    """The tail of a source, sampled shard by shard between two times."""

    id: int
    cut: Cut
    sampled_from: datetime
    sampled_to: datetime
    recorder: str

    def skew(self, moment: datetime) -> timedelta:
        """How much later than `moment` its sampling ended: the edge is off by at most this much."""
        return self.sampled_to - moment


def record(
    database: Database, source_key: str, cut: Cut, *, sampled_from: datetime, sampled_to: datetime, recorder: str
) -> int:
    """Store a sampled tail; its number.

    Raises:
        InvalidRequest: it ended before it began, or a naive time.
    """
    if sampled_from.tzinfo is None or sampled_to.tzinfo is None or sampled_to < sampled_from:
        raise InvalidRequest(f"a cut is sampled between two aware times, got {sampled_from} and {sampled_to}")
    source_id = names.ensure_source(database, source_key)
    statement = insert(cuts).values(
        source_id=source_id,
        sampled_from=sampled_from,
        sampled_to=sampled_to,
        recorder=recorder,
        cut=json.dumps(cut.to_json(), separators=(",", ":")),
    )
    with database.writing() as connection:
        key = connection.execute(statement).inserted_primary_key
    return int(key[0]) if key else 0


def cut_at(database: Database, source_key: str, moment: datetime) -> RecordedCut | None:
    """The first cut whose sampling began at or after `moment`; the same one for everyone who ever asks for it.

    A slow recorder may store a cut after a quicker one that began later. The windows before and after `moment`
    must not get different cuts for that: the first answer is kept.
    """
    with database.reading() as connection:
        source_id = names.find_source(connection, source_key)
        if source_id is None:
            return None
        kept = _kept(connection, source_id, moment)
        first = None if kept else _first(connection, source_id, moment)
    if kept or first is None:
        return kept
    database.insert_once(insert(edges).values(source_id=source_id, moment=moment, cut_id=first))
    with database.reading() as connection:
        return _kept(connection, source_id, moment)


def prune(database: Database, before: datetime) -> int:
    """Forget cuts sampled before `before`, and which moments they were given to; how many."""
    old = cuts.c.sampled_to < before
    with database.writing() as connection:
        connection.execute(delete(edges).where(edges.c.cut_id.in_(select(cuts.c.id).where(old))))
        return connection.execute(delete(cuts).where(old)).rowcount


def _kept(connection: Connection, source_id: int, moment: datetime) -> RecordedCut | None:
    statement = (
        select(cuts)
        .join(edges, edges.c.cut_id == cuts.c.id)
        .where(edges.c.source_id == source_id, edges.c.moment == moment)
    )
    row = connection.execute(statement).mappings().first()
    return None if row is None else _recorded(row)


def _first(connection: Connection, source_id: int, moment: datetime) -> int | None:
    statement = (
        select(cuts.c.id)
        .where(cuts.c.source_id == source_id, cuts.c.sampled_from >= moment)
        .order_by(cuts.c.sampled_from, cuts.c.id)
        .limit(1)
    )
    return connection.execute(statement).scalar()


def _recorded(row: RowMapping) -> RecordedCut:
    return RecordedCut(
        id=row["id"],
        cut=Cut.from_json(json.loads(row["cut"])),
        sampled_from=row["sampled_from"],
        sampled_to=row["sampled_to"],
        recorder=row["recorder"],
    )
