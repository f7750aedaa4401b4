"""Recorded cuts: what the tails of a source were, and when they were sampled. For the basis `append`.

The entries of a source form one line: each was sampled later than the one before it, and is not before it in any
shard. So the first entry at or after a time stays the first. Two recorders whose samplings overlap cannot leave cuts
that cross.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Select, and_, delete, func, insert, select

from airflow_provider_streams.errors import InvalidRequest, NoCutNearby
from airflow_provider_streams.journal.row_ids import JournalPart, ensure_source, find_source
from airflow_provider_streams.journal.tables import cuts, edges, sources
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.tail_observation import Incarnation

GoOn = Callable[[Cut, Cut], Cut | None]
"""The cut to store after an earlier one, given a sampled one; None: it is before the earlier one."""


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
    incarnation: Incarnation = ()
    """Which incarnation of the source it is a cut of; empty: not known."""

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


class Cuts(JournalPart):
    """The recorded cuts of each source."""

    def record_cut(
        self,
        source_key: str,
        cut: Cut,
        *,
        sampled_from: datetime,
        sampled_to: datetime,
        recorder: str,
        incarnation: Incarnation = (),
        go_on: GoOn | None = Cut.extend,
    ) -> int | None:
        """Store a sampled tail as the source's next entry; its number, from 1.

        None: another recorder was quicker, so this entry is not needed.

        Args:
            source_key: the source.
            cut: its tail.
            sampled_from: a time before the first shard was read.
            sampled_to: a time after the last shard had answered.
            recorder: the name of the recorder.
            incarnation: which incarnation of the source it is a cut of.
            go_on: the source's rule of order, its system's `go_on`; None: take it whatever came before, as the first
                of a stream made again.

        Raises:
            InvalidRequest: sampling ended before it began, a naive time, or a tail before one that was sampled earlier.
        """
        if sampled_from.tzinfo is None or sampled_to.tzinfo is None or sampled_to < sampled_from:
            raise InvalidRequest(f"a cut is sampled between two aware times, got {sampled_from} and {sampled_to}")
        source_id = ensure_source(self._database, source_key)
        while True:
            with self._database.reading() as connection:
                before = _first(connection, _of(source_id).order_by(cuts.c.sequence.desc()))
            following = cut if before is None else _following(source_key, before, cut, sampled_from, go_on)
            if following is None:
                return None
            sequence = before.sequence + 1 if before else 1
            statement = insert(cuts).values(
                source_id=source_id,
                sampled_from=sampled_from,
                sampled_to=sampled_to,
                recorder=recorder,
                cut=following.to_json(),
                sequence=sequence,
                incarnation=_incarnation(incarnation, cut, before, following) or None,
            )
            if self._database.insert_once(statement):
                return sequence

    def cut_at(self, source_key: str, moment: datetime) -> RecordedCut | None:
        """The first recorded cut whose sampling began at or after `moment`; None: not recorded yet.

        A moment always gets the same cut, so adjacent windows share it. The caller judges its `skew`: a recorder that
        did not run leaves a cut much later than the moment.

        Raises:
            NoCutNearby: a nearer entry may have been pruned.
        """
        with self._database.reading() as connection:
            source_id = find_source(connection, source_key)
            if source_id is None:
                return None
            if given := _given(connection, source_id, moment):
                return given
            since = _of(source_id).where(cuts.c.sampled_from >= moment)
            first = _first(connection, since.order_by(cuts.c.sampled_from, cuts.c.sequence))
            if first is None:
                return None
            if not _is_certain(connection, source_id, first, moment):
                raise NoCutNearby(
                    source_key,
                    moment.isoformat(),
                    f"entries before {first.sampled_from.isoformat()} were pruned, and may have been nearer",
                )
        self._database.insert_once(insert(edges).values(source_id=source_id, moment=moment, cut_id=first.id))
        with self._database.reading() as connection:
            return _given(connection, source_id, moment)

    def cut_before(self, source_key: str, moment: datetime) -> RecordedCut | None:
        """The last recorded cut whose sampling had ended at `moment`: what is stored later is after it.

        None: there is none, or it was pruned.
        """
        with self._database.reading() as connection:
            until = _of(find_source(connection, source_key)).where(cuts.c.sampled_to <= moment)
            return _first(connection, until.order_by(cuts.c.sequence.desc()))

    def recorded_cuts(self, source_key: str, limit: int) -> list[RecordedCut]:
        """The last cuts recorded of a source, oldest first."""
        with self._database.reading() as connection:
            newest = _of(find_source(connection, source_key)).order_by(cuts.c.sequence.desc()).limit(limit)
            return [_recorded(row) for row in reversed(connection.execute(newest).all())]

    def cut_histories(self) -> list[CutHistory]:
        """Every source with recorded cuts, by name."""
        span = (func.count(cuts.c.id), func.min(cuts.c.sampled_from), func.max(cuts.c.sampled_from))
        counted = select(sources.c.source_key, *span).join(cuts, cuts.c.source_id == sources.c.id)
        with self._database.reading() as connection:
            found = connection.execute(counted.group_by(sources.c.id, sources.c.source_key))
            return sorted((CutHistory(*row) for row in found), key=lambda one: one.source_key)

    def prune_cuts(self, before: datetime, source_key: str | None = None) -> int:
        """Forget cuts sampled before this time, of one source or of all; how many.

        Choose it before the oldest window still to be read. The last cut of a source always stays, whatever its age:
        the next one is compared with it.
        """
        counted = select(cuts.c.source_id, func.max(cuts.c.sequence).label("last")).group_by(cuts.c.source_id)
        with self._database.writing() as connection:
            if source_key is not None:
                counted = counted.where(cuts.c.source_id == find_source(connection, source_key))
            pruned = 0
            for source_id, last in connection.execute(counted).all():
                old = and_(cuts.c.source_id == source_id, cuts.c.sampled_from < before, cuts.c.sequence < last)
                connection.execute(delete(edges).where(edges.c.cut_id.in_(select(cuts.c.id).where(old))))
                pruned += connection.execute(delete(cuts).where(old)).rowcount
        return pruned


def _following(
    source_key: str, before: RecordedCut, cut: Cut, sampled_from: datetime, go_on: GoOn | None
) -> Cut | None:
    """The cut to store after an entry; None: the entry's recorder was quicker.

    Raises:
        InvalidRequest: it is before the entry, although it was sampled after it.
    """
    if sampled_from <= before.sampled_from:
        return None
    following = cut if go_on is None else go_on(before.cut, cut)
    if following is None and sampled_from >= before.sampled_to:
        raise InvalidRequest(
            f"{source_key}: its tail is now before the one recorded at {before.sampled_from.isoformat()} by "
            f"{before.recorder!r}. If it was deleted and made again, record its first cut with "
            "`airflow streams cuts record .. --start-over`; otherwise check the recorders' clocks"
        )
    return following


def _incarnation(incarnation: Incarnation, cut: Cut, before: RecordedCut | None, following: Cut) -> dict[str, str]:
    """By shard: one that was not sampled keeps its place, and so its incarnation."""
    kept = before.incarnation if before else ()
    return {**{shard: one for shard, one in kept if shard in following and shard not in cut}, **dict(incarnation)}


def _of(source_id: int | None) -> Select[Any]:
    return select(cuts).where(cuts.c.source_id == source_id)


def _first(connection: Connection, statement: Select[Any]) -> RecordedCut | None:
    row = connection.execute(statement.limit(1)).first()
    return None if row is None else _recorded(row)


def _given(connection: Connection, source_id: int, moment: datetime) -> RecordedCut | None:
    """The cut that a moment has got before."""
    given = _of(source_id).join(edges, edges.c.cut_id == cuts.c.id)
    return _first(connection, given.where(edges.c.source_id == source_id, edges.c.moment == moment))


def _is_certain(connection: Connection, source_id: int, first: RecordedCut, moment: datetime) -> bool:
    """Whether no pruned entry was nearer: the one before is there (and so began earlier), or never was one."""
    if first.sequence == 1 or first.sampled_from == moment:
        return True
    return _first(connection, _of(source_id).where(cuts.c.sequence == first.sequence - 1)) is not None


def _recorded(row: Any) -> RecordedCut:
    incarnation = tuple((row.incarnation or {}).items())
    cut = Cut.from_json(row.cut)
    return RecordedCut(row.id, cut, row.sampled_from, row.sampled_to, row.recorder, row.sequence, incarnation)
