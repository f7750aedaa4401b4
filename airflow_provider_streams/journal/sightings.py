"""What was seen of sources, and when: whether everything stored since is still there can then be told.

A source is seen often, and only now and then is that kept: the older, the more seldom.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select

from airflow_provider_streams.journal import names
from airflow_provider_streams.journal.database import Database
from airflow_provider_streams.journal.tables import sightings
from airflow_provider_streams.model.sighting import Sighting
from airflow_provider_streams.model.window import EPOCH

SPACING = timedelta(minutes=5)
"""A sighting is kept when the one kept before it is so much older."""

_THINNED = ((timedelta(days=30), timedelta(days=1)), (timedelta(days=2), timedelta(hours=1)))
"""Of those older than the first, one is kept in each stretch of the second."""


def note(database: Database, source_key: str, seen: Sighting) -> bool:
    """Keep a sighting, if none of the same shards was kept shortly before it or after it; whether it was kept."""
    source_id = names.ensure_source(database, source_key)
    with database.reading() as connection:
        near = connection.execute(select(sightings.c.sighting).where(*_about(source_id, seen.at))).scalars()
        if any(seen.tail.keys() <= Sighting.from_json(json.loads(one)).tail.keys() for one in near):
            return False
    written = json.dumps(seen.to_json(), separators=(",", ":"))
    kept = database.insert_once(insert(sightings).values(source_id=source_id, seen_at=seen.at, sighting=written))
    _thin(database, source_id, seen.at)
    return kept


def before(connection: Connection, source_key: str, moment: datetime) -> Sighting | None:
    """The newest sighting of a source that is not later than a moment; where there is none, the first of all."""
    of_source = sightings.c.source_id == names.find_source(connection, source_key)
    statement = select(sightings.c.sighting).where(of_source)
    earlier = statement.where(sightings.c.seen_at <= moment).order_by(sightings.c.seen_at.desc()).limit(1)
    written = connection.execute(earlier).scalar()
    if written is None:
        written = connection.execute(statement.order_by(sightings.c.seen_at).limit(1)).scalar()
    return None if written is None else Sighting.from_json(json.loads(written))


def around(connection: Connection, source_key: str, start: datetime, end: datetime) -> list[Sighting]:
    """The sighting of `before`, those up to `end`, and the first one behind it, in order.

    What nobody saw by then is younger than all that was stored before `end`.
    """
    first = before(connection, source_key, start)
    if first is None or first.at >= end:
        return [first] if first else []
    of_source = sightings.c.source_id == names.find_source(connection, source_key)
    statement = select(sightings.c.sighting).where(of_source, sightings.c.seen_at > first.at)
    statement = statement.order_by(sightings.c.seen_at)
    within = connection.execute(statement.where(sightings.c.seen_at < end)).scalars().all()
    behind = connection.execute(statement.where(sightings.c.seen_at >= end).limit(1)).scalars().all()
    return [first, *(Sighting.from_json(json.loads(one)) for one in (*within, *behind))]


def is_seen_about(connection: Connection, source_key: str, moment: datetime) -> bool:
    """Whether a sighting at this moment would not be kept."""
    source_id = names.find_source(connection, source_key)
    return source_id is not None and _is_seen_about(connection, source_id, moment)


def _is_seen_about(connection: Connection, source_id: int, moment: datetime) -> bool:
    return bool(connection.execute(select(func.count()).where(*_about(source_id, moment))).scalar())


def _about(source_id: int, moment: datetime) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return sightings.c.source_id == source_id, sightings.c.seen_at.between(moment - SPACING, moment + SPACING)


def _thin(database: Database, source_id: int, now: datetime) -> None:
    of_source = sightings.c.source_id == source_id
    with database.reading() as connection:
        kept = connection.execute(select(sightings.c.seen_at).where(of_source)).scalars().all()
    if gone := superfluous(kept, now):
        with database.writing() as connection:
            connection.execute(delete(sightings).where(of_source, sightings.c.seen_at.in_(gone)))


def superfluous(moments: Iterable[datetime], now: datetime) -> list[datetime]:
    """Those that need not be kept: all but the first of each stretch of time. The first of all always is. Pure."""
    gone, last = [], None
    for moment in sorted(moments):
        spacing = next((spacing for age, spacing in _THINNED if now - moment > age), None)
        stretch = None if spacing is None else (spacing, (moment - EPOCH) // spacing)
        if stretch is not None and stretch == last:
            gone.append(moment)
        last = stretch
    return gone
