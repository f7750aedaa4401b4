"""Where sources ended at some moments: this tells whether everything stored since is still there.

A source is observed often, and few observations are kept: the first of each five minutes, later of each hour, then of
each day. These begin at full minutes, hours and days, as windows mostly do: an observation that was made in a window is
not left out because of one that was made just before it. One that says more than those before it is always kept: it may
be the only one that saw a stream that came and went.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, delete, insert, select

from airflow_provider_streams.journal.row_ids import JournalPart, ensure_source, find_source
from airflow_provider_streams.journal.tables import tail_observations as kept
from airflow_provider_streams.model.stream.tail_observation import TailObservation
from airflow_provider_streams.model.window.window import EPOCH

SPACING = timedelta(minutes=5)
"""In each stretch of it, the first tail observation is kept, and those that add something to it."""

_THINNED = ((timedelta(days=30), timedelta(days=1)), (timedelta(days=2), timedelta(hours=1)))
"""Of those older than the first, the same holds for each stretch of the second."""


class TailObservations(JournalPart):
    """Where each source ended at some moments."""

    def note_tail_observation(self, source_key: str, seen: TailObservation) -> bool:
        """Keep where a source ended, unless a kept observation at about that time says as much; whether it was kept."""
        source_id = ensure_source(self._database, source_key)
        with self._database.reading() as connection:
            near = _found(connection, select(kept.c.tail_observation).where(_is_about(source_id, seen.at)))
        nearest = min(near, key=lambda one: abs(one.at - seen.at), default=None)
        if nearest is not None and not seen.adds_to(nearest):
            return False
        statement = insert(kept).values(source_id=source_id, seen_at=seen.at, tail_observation=seen.to_json())
        is_kept = self._database.insert_once(statement)
        self._thin(source_id, seen.at)
        return is_kept

    def _thin(self, source_id: int, now: datetime) -> None:
        of_source = kept.c.source_id == source_id
        with self._database.reading() as connection:
            moments = connection.execute(select(kept.c.seen_at).where(of_source)).scalars().all()
            crowds = [
                _found(connection, _of(source_id).where(kept.c.seen_at.in_(one))) for one in crowded(moments, now)
            ]
        if gone := [moment for crowd in crowds for moment in superfluous(crowd)]:
            with self._database.writing() as connection:
                connection.execute(delete(kept).where(of_source, kept.c.seen_at.in_(gone)))

    def is_observed_about(self, source_key: str, moment: datetime) -> bool:
        """Whether a tail observation at this moment would not be kept, and need not be made."""
        with self._database.reading() as connection:
            about = _is_about(find_source(connection, source_key), moment)
            return connection.execute(select(kept.c.id).where(about).limit(1)).first() is not None

    def tail_observation(self, source_key: str, before: datetime) -> TailObservation | None:
        """The newest tail observation of a source that is not later; where there is none, the first.

        None: the source was never observed.
        """
        with self._database.reading() as connection:
            return _before(connection, find_source(connection, source_key), before)

    def tail_observations_around(self, source_key: str, start: datetime, end: datetime) -> list[TailObservation]:
        """The `tail_observation` of `start`, those between it and `end`, and the first one at or after `end`, in order.

        What the last one does not show was stored after `end`.
        """
        with self._database.reading() as connection:
            source_id = find_source(connection, source_key)
            first = _before(connection, source_id, start)
            if first is None or first.at >= end:
                return [first] if first else []
            later = _of(source_id).where(kept.c.seen_at > first.at).order_by(kept.c.seen_at)
            within = _found(connection, later.where(kept.c.seen_at < end))
            return [first, *within, *_found(connection, later.where(kept.c.seen_at >= end).limit(1))]


def crowded(moments: Iterable[datetime], now: datetime) -> list[list[datetime]]:
    """Moments that share a stretch of time of which one is enough, in order. Pure."""
    stretches: dict[tuple[timedelta, int], list[datetime]] = {}
    for moment in sorted(moments):
        if spacing := next((spacing for age, spacing in _THINNED if now - moment > age), None):
            stretches.setdefault((spacing, _stretch(moment, spacing)), []).append(moment)
    return [stretch for stretch in stretches.values() if len(stretch) > 1]


def superfluous(crowd: Iterable[TailObservation]) -> list[datetime]:
    """Of the tail observations of a stretch: when those were made that add nothing to the last one that stays. Pure."""
    gone: list[datetime] = []
    last: TailObservation | None = None
    for one in sorted(crowd, key=lambda one: one.at):
        if last is None or one.adds_to(last):
            last = one
        else:
            gone.append(one.at)
    return gone


def _before(connection: Connection, source_id: int | None, moment: datetime) -> TailObservation | None:
    newest = _of(source_id).where(kept.c.seen_at <= moment).order_by(kept.c.seen_at.desc())
    first = _of(source_id).order_by(kept.c.seen_at)
    found = _found(connection, newest.limit(1)) or _found(connection, first.limit(1))
    return found[0] if found else None


def _of(source_id: int | None) -> Select[Any]:
    return select(kept.c.tail_observation).where(kept.c.source_id == source_id)


def _found(connection: Connection, statement: Select[Any]) -> list[TailObservation]:
    return [TailObservation.from_json(one) for one in connection.execute(statement).scalars()]


def _is_about(source_id: int | None, moment: datetime) -> ColumnElement[bool]:
    start = EPOCH + _stretch(moment, SPACING) * SPACING
    return and_(kept.c.source_id == source_id, kept.c.seen_at >= start, kept.c.seen_at < start + SPACING)


def _stretch(moment: datetime, spacing: timedelta) -> int:
    return (moment - EPOCH) // spacing
