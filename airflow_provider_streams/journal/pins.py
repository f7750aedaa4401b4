"""Pinned plans: the first plan of a window wins, a replan adds a generation, the newest generation counts."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import ColumnElement, Connection, Insert, RowMapping, Select, and_, exists, insert, or_, select, update

from airflow_provider_streams.errors import PlanMismatch
from airflow_provider_streams.journal.tables import landings, pins, runs
from airflow_provider_streams.model.plan import Plan, Terms
from airflow_provider_streams.model.window import Window

MOST_LOOKED_AT = 64
"""So many plans are looked at for one of a basis: a person's own cuts may have filled holes since."""

_WEIGHT: Final = (("covered",), ("running",), ("failed", "lost"))
"""How much the runs of a plan say of what is asked of its reader: most first. Without any it was a dry run's."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A pinned plan and its place in the window's history."""

    id: int
    generation: int
    fingerprint: str
    plan_json: str
    follows: int | None = None
    """Basis `chained`: the pin of the window before; None: the first of its chain, or another basis."""
    void: bool = False
    """It counts no more: a later window of its chain took its place."""

    @property
    def plan(self) -> Plan:
        """The plan, checked against its digests.

        Raises:
            PlanMismatch: another release's plan, or one that was changed in the database.
        """
        return Plan.from_json(json.loads(self.plan_json))


def newest(connection: Connection, reader_id: int | None, window: Window) -> Pin | None:
    """The pin of the greatest generation, void or not; None: the window was never planned."""
    statement = (
        select(pins)
        .where(pins.c.reader_id == reader_id, pins.c.window_start == window.start, pins.c.window_end == window.end)
        .order_by(pins.c.generation.desc())
        .limit(1)
    )
    row = connection.execute(statement).mappings().first()
    return None if row is None else _pin(row)


def counting(connection: Connection, reader_id: int | None, window: Window) -> Pin | None:
    """The pin that counts; None: the window was never planned, or its plan is void."""
    pin = newest(connection, reader_id, window)
    return None if pin is None or pin.void else pin


def read_by(connection: Connection, reader_id: int | None, window: Window, fingerprint: str) -> Pin | None:
    """The latest pin of a window with a plan of this fingerprint, whether it counts or not; None: there is none."""
    statement = (
        select(pins)
        .where(pins.c.reader_id == reader_id, pins.c.window_start == window.start, pins.c.window_end == window.end)
        .where(pins.c.fingerprint == fingerprint)
        .order_by(pins.c.generation.desc())
        .limit(1)
    )
    row = connection.execute(statement).mappings().first()
    return None if row is None else _pin(row)


def last_terms(connection: Connection, reader_id: int | None, basis: str) -> Terms | None:
    """What was asked when a plan of this basis was pinned last for a reader, of those that covered their window.

    While none has, of those that are being read, then of those that failed; never of those that nobody began to read.
    None: no such plan is among the latest ones, or it is of a release that did not note it.
    """
    for states in _WEIGHT:
        is_of = exists().where(runs.c.pin_id == pins.c.id, runs.c.state.in_(states))
        latest = select(pins.c.id).where(pins.c.reader_id == reader_id, is_of).order_by(pins.c.id.desc())
        for number in connection.execute(latest.limit(MOST_LOOKED_AT)).scalars().all():
            # one at a time: they may be megabytes each, and the first is nearly always of the reader's basis
            plan = json.loads(connection.execute(select(pins.c.plan).where(pins.c.id == number)).scalar_one())
            if plan["basis"] == basis:
                terms = plan.get("terms")
                return Terms.from_json(terms) if terms else None
    return None


def beside(connection: Connection, reader_id: int | None, window: Window) -> tuple[Pin | None, Pin | None]:
    """The counting pins of the windows that end where one begins, and begin where it ends; the latest of several."""
    of_reader = select(pins).where(pins.c.reader_id == reader_id, is_counting()).order_by(pins.c.id.desc()).limit(1)
    before, behind = pins.c.window_end == window.start, pins.c.window_start == window.end
    found = [connection.execute(of_reader.where(side)).mappings().first() for side in (before, behind)]
    return (_pin(found[0]) if found[0] else None, _pin(found[1]) if found[1] else None)


def redecode(connection: Connection, reader_id: int, plan: Plan) -> None:
    """Pin a plan in the place of one that reads the same positions; what goes on after that one, goes on after it.

    Does nothing if it is pinned. The caller holds the reader's lock.

    Raises:
        PlanMismatch: the window was planned anew, or its pin is void.
    """
    pin = counting(connection, reader_id, plan.window)
    if pin is not None and pin.fingerprint == plan.fingerprint:
        return
    if pin is None or replace(pin.plan, decoding=plan.decoding) != plan:
        raise PlanMismatch(
            f"window {plan.window} of reader {plan.reader!r} was planned anew, and is not read yet. Run its task "
            "first: it decodes all events as they are decoded now."
        )
    done = connection.execute(insertion(reader_id, plan, pin.generation + 1, pin.follows))
    (number,) = done.inserted_primary_key or (None,)
    connection.execute(update(pins).where(pins.c.follows_id == pin.id).values(follows_id=number))


def is_of_earlier_landing(connection: Connection, pin: Pin, landing_id: int) -> bool:
    """Whether a plan was pinned for another landing than this one of its reader: no run of this one has read it."""
    of_pin = runs.c.pin_id == pin.id
    is_read = exists().where(of_pin, runs.c.landing_id == landing_id)
    is_read_for_another = exists().where(of_pin, runs.c.landing_id != landing_id)
    is_older = exists().where(pins.c.id == pin.id, landings.c.id == landing_id, pins.c.pinned_at < landings.c.made_at)
    return bool(connection.execute(select(and_(~is_read, or_(is_read_for_another, is_older)))).scalar())


def insertion(reader_id: int, plan: Plan, generation: int, follows: int | None = None) -> Insert:
    """Pins a plan as this generation, unless another one already is."""
    return insert(pins).values(
        reader_id=reader_id,
        window_start=plan.window.start,
        window_end=plan.window.end,
        generation=generation,
        fingerprint=plan.fingerprint,
        pinned_at=datetime.now(UTC),
        plan=json.dumps(plan.to_json(), separators=(",", ":")),
        start_skew_ms=None if plan.skew_seconds is None else round(plan.skew_seconds[0] * 1000),
        end_skew_ms=None if plan.skew_seconds is None else round(plan.skew_seconds[1] * 1000),
        follows_id=follows,
    )


def last_covered(
    connection: Connection, reader_id: int, landing_id: int | None, before: datetime | None = None
) -> Pin | None:
    """The counting pin of the covered window with the greatest end, under a landing.

    Args:
        connection: the journal's.
        reader_id: the reader.
        landing_id: only what was covered under it counts.
        before: only windows that end at or before this time; None: all.
    """
    statement = select(pins).where(pins.c.reader_id == reader_id, is_counting(), is_covered(landing_id))
    if before is not None:
        statement = statement.where(pins.c.window_end <= before)
    statement = statement.order_by(pins.c.window_end.desc(), pins.c.window_start.desc()).limit(1)
    row = connection.execute(statement).mappings().first()
    return None if row is None else _pin(row)


def is_counting() -> ColumnElement[bool]:
    """Whether a row of `pins` counts: neither void nor replaced by a later generation."""
    newer = pins.alias()
    replaced = exists().where(
        newer.c.reader_id == pins.c.reader_id,
        newer.c.window_start == pins.c.window_start,
        newer.c.window_end == pins.c.window_end,
        newer.c.generation > pins.c.generation,
    )
    return and_(pins.c.void_at.is_(None), ~replaced)


def is_covered(landing_id: int | None) -> ColumnElement[bool]:
    """Whether a row of `pins` has a run that covered its window under a landing."""
    return exists().where(runs.c.pin_id == pins.c.id, runs.c.state == "covered", runs.c.landing_id == landing_id)


def make_void(connection: Connection, reader_id: int, windows: list[Window]) -> None:
    """Pins of these windows count no more."""
    for window in windows:
        same = (pins.c.reader_id == reader_id, pins.c.window_start == window.start, pins.c.window_end == window.end)
        connection.execute(update(pins).where(*same, pins.c.void_at.is_(None)).values(void_at=datetime.now(UTC)))


def of_reader(reader_id: int) -> Select[tuple[object, ...]]:
    """All columns but the plan, which may be megabytes."""
    return select(*(column for column in pins.c if column.name != "plan")).where(pins.c.reader_id == reader_id)


def _pin(row: RowMapping) -> Pin:
    return Pin(
        row["id"], row["generation"], row["fingerprint"], row["plan"], row["follows_id"], row["void_at"] is not None
    )
