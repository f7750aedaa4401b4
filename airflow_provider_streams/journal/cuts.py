"""Recorded cuts: what the tails of a source were, and when they were sampled. For the basis `append`.

The entries of a source form one line: each was sampled later than the one before it, and lies at or behind it in
every shard. So the answer to "the first entry at or after a time" never changes once there is one, and two recorders
whose samplings overlap cannot leave cuts that cross.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, RowMapping, and_, delete, func, insert, select

from airflow_provider_streams.errors import InvalidRequest, NoCutNearby
from airflow_provider_streams.journal import names
from airflow_provider_streams.journal.database import Database
from airflow_provider_streams.journal.tables import cuts, edges, sources
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.sighting import Identity

GoOn = Callable[[Cut, Cut], Cut | None]
"""The cut to store after an earlier one, given a sampled one; None: it does not lie behind the earlier one."""


@dataclass(frozen=True, slots=True)
class RecordedCut:
    """The tail of a source, sampled shard by shard between two times."""

    id: int
    cut: Cut
    sampled_from: datetime
    sampled_to: datetime
    recorder: str
    sequence: int
    """Its number among the source's entries, from 1."""
    identity: Identity = ()
    """Which life of the source it is a cut of; empty: not known."""

    def skew(self, moment: datetime) -> timedelta:
        """How much later than `moment` its sampling ended: the edge is off by at most this much."""
        return self.sampled_to - moment


@dataclass(frozen=True, slots=True)
class CutHistory:
    """The recorded cuts of one source, in short."""

    source_key: str
    count: int
    first: datetime
    """When the oldest one still held was sampled."""
    last: datetime


def record(
    database: Database,
    source_key: str,
    cut: Cut,
    *,
    sampled_from: datetime,
    sampled_to: datetime,
    recorder: str,
    identity: Identity = (),
    go_on: GoOn | None = Cut.extend,
) -> int | None:
    """Store a sampled tail as the source's next entry; its number.

    None: it was not taken, as another recorder has been quicker. That costs nothing: the other's entry is there.

    Args:
        database: the journal's.
        source_key: the source.
        cut: its tail.
        sampled_from: before the first shard was asked.
        sampled_to: after the last shard had answered.
        recorder: who sampled it.
        identity: which life of the source it is a cut of.
        go_on: the source's rule of order; None: take it whatever came before, as the first of a stream made again.

    Raises:
        InvalidRequest: sampling ended before it began, a naive time, or a tail before one that was sampled earlier.
    """
    if sampled_from.tzinfo is None or sampled_to.tzinfo is None or sampled_to < sampled_from:
        raise InvalidRequest(f"a cut is sampled between two aware times, got {sampled_from} and {sampled_to}")
    source_id = names.ensure_source(database, source_key)
    while True:
        with database.reading() as connection:
            before = newest(connection, source_id)
        following = cut if before is None else _following(source_key, before, cut, sampled_from, go_on)
        if following is None:
            return None
        sequence = before.sequence + 1 if before else 1
        statement = insert(cuts).values(
            source_id=source_id,
            sampled_from=sampled_from,
            sampled_to=sampled_to,
            recorder=recorder,
            cut=json.dumps(following.to_json(), separators=(",", ":")),
            sequence=sequence,
            identity=_life(identity, cut, before, following),
        )
        if database.insert_once(statement):
            return sequence


def _following(
    source_key: str, before: RecordedCut, cut: Cut, sampled_from: datetime, go_on: GoOn | None
) -> Cut | None:
    """The cut to store after an entry; None: the entry's recorder has been quicker.

    Raises:
        InvalidRequest: it lies before the entry, although it was sampled after it.
    """
    if sampled_from <= before.sampled_from:
        return None
    following = cut if go_on is None else go_on(before.cut, cut)
    if following is None and sampled_from >= before.sampled_to:
        raise InvalidRequest(
            f"{source_key}: its tail now lies before the one recorded at {before.sampled_from.isoformat()} by "
            f"{before.recorder!r}. If it was deleted and made again, record its first cut with "
            "`airflow streams cuts record .. --anew`; otherwise look at the recorders' clocks"
        )
    return following


def _life(identity: Identity, cut: Cut, before: RecordedCut | None, following: Cut) -> str | None:
    """As a row holds it; a shard that was not sampled keeps its place, and so its life."""
    kept = {shard: life for shard, life in before.identity if shard in following} if before else {}
    lives = {**{shard: life for shard, life in kept.items() if shard not in cut}, **dict(identity)}
    return json.dumps(lives, separators=(",", ":")) if lives else None


def newest(connection: Connection, source_id: int) -> RecordedCut | None:
    """The source's last entry."""
    statement = select(cuts).where(cuts.c.source_id == source_id).order_by(cuts.c.sequence.desc()).limit(1)
    row = connection.execute(statement).mappings().first()
    return None if row is None else _recorded(row)


def cut_at(database: Database, source_key: str, moment: datetime) -> RecordedCut | None:
    """The first cut whose sampling began at or after `moment`; the same one for everyone who ever asks for it.

    Raises:
        NoCutNearby: the entry may have been pruned: what is left does not tell.
    """
    with database.reading() as connection:
        source_id = names.find_source(connection, source_key)
        if source_id is None:
            return None
        kept = _kept(connection, source_id, moment)
        first = None if kept else _first(connection, source_id, moment)
        if first is not None and not _is_certain(connection, source_id, first, moment):
            raise NoCutNearby(
                source_key,
                moment.isoformat(),
                f"entries before {first.sampled_from.isoformat()} were pruned, and may have been nearer",
            )
    if kept or first is None:
        return kept
    database.insert_once(insert(edges).values(source_id=source_id, moment=moment, cut_id=first.id))
    with database.reading() as connection:
        return _kept(connection, source_id, moment)


def cut_before(database: Database, source_key: str, moment: datetime) -> RecordedCut | None:
    """The last cut whose sampling had ended at `moment`; None: there is none, or none any more."""
    with database.reading() as connection:
        source_id = names.find_source(connection, source_key)
        statement = (
            select(cuts)
            .where(cuts.c.source_id == source_id, cuts.c.sampled_to <= moment)
            .order_by(cuts.c.sequence.desc())
            .limit(1)
        )
        row = connection.execute(statement).mappings().first()
    return None if row is None else _recorded(row)


def prune(database: Database, before: datetime, source_key: str | None = None) -> int:
    """Forget cuts sampled before `before`, and which moments they were given to; how many.

    The last entry of each source stays, whatever its age: the next one is compared with it.
    """
    counted = select(cuts.c.source_id, func.max(cuts.c.sequence).label("last")).group_by(cuts.c.source_id)
    with database.writing() as connection:
        if source_key is not None:
            counted = counted.where(cuts.c.source_id == names.find_source(connection, source_key))
        pruned = 0
        for source_id, last in connection.execute(counted).all():
            old = and_(cuts.c.source_id == source_id, cuts.c.sampled_from < before, cuts.c.sequence < last)
            connection.execute(delete(edges).where(edges.c.cut_id.in_(select(cuts.c.id).where(old))))
            pruned += connection.execute(delete(cuts).where(old)).rowcount
    return pruned


def recorded(connection: Connection, source_key: str, limit: int) -> list[RecordedCut]:
    """The last entries of a source, oldest first."""
    source_id = names.find_source(connection, source_key)
    statement = select(cuts).where(cuts.c.source_id == source_id).order_by(cuts.c.sequence.desc()).limit(limit)
    return [_recorded(row) for row in reversed(connection.execute(statement).mappings().all())]


def histories(connection: Connection) -> list[CutHistory]:
    """Every source with recorded cuts, by name."""
    span = (func.count(cuts.c.id), func.min(cuts.c.sampled_from), func.max(cuts.c.sampled_from))
    statement = (
        select(sources.c.source_key, *span)
        .join(cuts, cuts.c.source_id == sources.c.id)
        .group_by(sources.c.id, sources.c.source_key)
    )
    return sorted((CutHistory(*row) for row in connection.execute(statement)), key=lambda one: one.source_key)


def _kept(connection: Connection, source_id: int, moment: datetime) -> RecordedCut | None:
    statement = (
        select(cuts)
        .join(edges, edges.c.cut_id == cuts.c.id)
        .where(edges.c.source_id == source_id, edges.c.moment == moment)
    )
    row = connection.execute(statement).mappings().first()
    return None if row is None else _recorded(row)


def _first(connection: Connection, source_id: int, moment: datetime) -> RecordedCut | None:
    statement = (
        select(cuts)
        .where(cuts.c.source_id == source_id, cuts.c.sampled_from >= moment)
        .order_by(cuts.c.sampled_from, cuts.c.sequence)
        .limit(1)
    )
    row = connection.execute(statement).mappings().first()
    return None if row is None else _recorded(row)


def _is_certain(connection: Connection, source_id: int, first: RecordedCut, moment: datetime) -> bool:
    """Whether no pruned entry was nearer: the one before is there (and so began earlier), or never was one."""
    if first.sequence == 1 or first.sampled_from == moment:
        return True
    statement = select(cuts.c.id).where(cuts.c.source_id == source_id, cuts.c.sequence == first.sequence - 1)
    return connection.execute(statement).first() is not None


def _recorded(row: RowMapping) -> RecordedCut:
    return RecordedCut(
        id=row["id"],
        cut=Cut.from_json(json.loads(row["cut"])),
        sampled_from=row["sampled_from"],
        sampled_to=row["sampled_to"],
        recorder=row["recorder"],
        sequence=row["sequence"],
        identity=tuple(json.loads(row["identity"]).items()) if row["identity"] else (),
    )
