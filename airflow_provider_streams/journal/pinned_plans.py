"""Pinned plans: the first plan of a window wins, a replan adds a generation, the newest generation counts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Insert, and_, exists, insert, or_, select, update

from airflow_provider_streams.errors import PlanMismatch
from airflow_provider_streams.journal import landings as stored_landings
from airflow_provider_streams.journal import row_ids
from airflow_provider_streams.journal.row_ids import JournalPart
from airflow_provider_streams.journal.tables import is_window, landings, pins, runs
from airflow_provider_streams.model.plan.plan import Plan, Terms
from airflow_provider_streams.model.schema.change_rows import ChangeFormat
from airflow_provider_streams.model.window.window import Window

MOST_LOOKED_AT = 64
"""So many plans are looked at for one of a basis: a person's own cuts may have filled holes since."""

_WEIGHT: Final = (("covered",), ("running",), ("failed", "lost"))
"""How much the runs of a plan say of what its reader is asked for, most first. A plan without runs is a dry run's."""


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
    """It no longer counts: a later window of its chain took its place."""

    @property
    def plan(self) -> Plan:
        """The plan, checked against its digests.

        Raises:
            PlanMismatch: another release's plan, or one that was changed in the database.
        """
        return Plan.from_json(json.loads(self.plan_json))


_PIN: Final = (
    pins.c.id,
    pins.c.generation,
    pins.c.fingerprint,
    pins.c.plan,
    pins.c.follows_id,
    pins.c.void_at.is_not(None),
)


class PinnedPlans(JournalPart):
    """The plan of each window.

    Methods that return plans raise `PlanMismatch` for one of another release, or one that was changed in the database.
    """

    def pin(self, source_key: str, plan: Plan) -> Plan:
        """The plan that every run of this window reads: this one if it is the first, else the one pinned before."""
        return self._pin(source_key, plan, is_replan=False)

    def replan(self, source_key: str, plan: Plan) -> Plan:
        """Replace the pin by a new generation; the window is no longer covered until a run of it is.

        Of replans at the same moment one wins, and all return it. Earlier plans and runs stay as history.
        """
        return self._pin(source_key, plan, is_replan=True)

    def _pin(self, source_key: str, plan: Plan, *, is_replan: bool) -> Plan:
        plan.check()
        reader_id = row_ids.ensure_reader(self._database, source_key, plan.reader)
        with self._database.reading() as connection:
            before = newest(connection, reader_id, plan.window)
        if before is not None and not before.void and not is_replan:
            return before.plan
        generation = before.generation + 1 if before else 1

        def pinned(connection: Connection) -> Pin | None:
            pin = newest(connection, reader_id, plan.window)
            return pin if pin and pin.generation >= generation else None

        inserted = insertion(reader_id, plan, generation)
        return self._database.winner(pinned, lambda: inserted, change=row_ids.change(reader_id)).plan

    def pinned(self, source_key: str, reader: str, window: Window) -> Plan | None:
        """The plan that counts for this window; None: it was never planned, or a later window took its place."""
        with self._reading(source_key, reader) as (connection, reader_id):
            pin = counting(connection, reader_id, window)
        return pin.plan if pin else None

    def plan_read(self, source_key: str, reader: str, window: Window, fingerprint: str) -> Plan | None:
        """A plan that is or was pinned for a window, by its fingerprint; None: there is none, or it was pruned."""
        with self._reading(source_key, reader) as (connection, reader_id):
            same = (is_window(pins, reader_id, window), pins.c.fingerprint == fingerprint)
            pin = _first(connection, *same, order=(pins.c.generation.desc(),))
        return pin.plan if pin else None

    def neighbors(self, source_key: str, reader: str, window: Window) -> tuple[Plan | None, Plan | None]:
        """The plans that count for the windows that end where this one begins, and begin where it ends.

        Of several, the latest.
        """
        with self._reading(source_key, reader) as (connection, reader_id):
            touching = (pins.c.window_end == window.start, pins.c.window_start == window.end)
            of_reader = (pins.c.reader_id == reader_id, is_counting())
            before, after = (_first(connection, *of_reader, side, order=(pins.c.id.desc(),)) for side in touching)
        return before.plan if before else None, after.plan if after else None

    def last_covered(self, source_key: str, reader: str, *, before: datetime | None = None) -> Plan | None:
        """The plan of the covered window with the greatest end, or with the greatest that is not after a time."""
        with self._reading(source_key, reader) as (connection, reader_id):
            kept = stored_landings.current(connection, reader_id)
            pin = last_covered(connection, reader_id, kept.id if kept else None, before)
        return pin.plan if pin else None

    def last_terms(self, source_key: str, reader: str, basis: str) -> Terms | None:
        """The terms of the plan of this basis that was pinned last for a reader, of those that covered their window.

        While none has, of those that are being read; then of those that failed. Dry runs do not count.
        None: no such plan is among the latest ones.
        """
        with self._reading(source_key, reader) as (connection, reader_id):
            for states in _WEIGHT:
                is_of = exists().where(runs.c.pin_id == pins.c.id, runs.c.state.in_(states))
                latest = select(pins.c.id).where(pins.c.reader_id == reader_id, is_of).order_by(pins.c.id.desc())
                for number in connection.execute(latest.limit(MOST_LOOKED_AT)).scalars().all():
                    # one at a time: they may be megabytes each, and the first is nearly always of the reader's basis
                    plan = json.loads(connection.execute(select(pins.c.plan).where(pins.c.id == number)).scalar_one())
                    if plan["basis"] == basis:
                        return Terms.from_json(plan["terms"]) if plan["terms"] else None
        return None

    def last_names(self, source_key: str, reader: str) -> tuple[str, ...]:
        """The topics or streams of the plan that was pinned last for a reader; empty: there is none."""
        with self._reading(source_key, reader) as (connection, reader_id):
            pin = _first(connection, pins.c.reader_id == reader_id, order=(pins.c.id.desc(),))
        return tuple(json.loads(pin.plan_json)["source"]["names"]) if pin else ()

    def last_changes(self, source_key: str, reader: str) -> ChangeFormat | None:
        """How the plan that was pinned last for a reader decodes database changes; None: it decodes none."""
        with self._reading(source_key, reader) as (connection, reader_id):
            pin = _first(connection, pins.c.reader_id == reader_id, order=(pins.c.id.desc(),))
        decoding = json.loads(pin.plan_json).get("decoding") if pin else None
        return ChangeFormat.from_json(decoding["changes"]) if decoding and "changes" in decoding else None

    def is_of_earlier_landing(self, source_key: str, plan: Plan) -> bool:
        """Whether a plan was pinned for an earlier landing of its reader, and no run of the present one has read it."""
        with self._reading(source_key, plan.reader) as (connection, reader_id):
            kept, pin = stored_landings.current(connection, reader_id), counting(connection, reader_id, plan.window)
            if kept is None or pin is None or pin.fingerprint != plan.fingerprint:
                return False
            of_pin = runs.c.pin_id == pin.id
            is_read = exists().where(of_pin, runs.c.landing_id == kept.id)
            is_read_for_another = exists().where(of_pin, runs.c.landing_id != kept.id)
            earlier = (pins.c.id == pin.id, landings.c.id == kept.id, pins.c.pinned_at < landings.c.made_at)
            is_earlier = and_(~is_read, or_(is_read_for_another, exists().where(*earlier)))
            return bool(connection.execute(select(is_earlier)).scalar())

    def later_columns(self, source_key: str, plan: Plan) -> tuple[str, ...]:
        """The columns that its reader's table got after a pinned plan was pinned."""
        with self._reading(source_key, plan.reader) as (connection, reader_id):
            kept, pin = stored_landings.current(connection, reader_id), counting(connection, reader_id, plan.window)
            return () if kept is None or pin is None else stored_landings.columns_since(connection, kept.id, pin.id)

    def decode_pinned(self, source_key: str, plan: Plan) -> Plan:
        """Pin a plan in place of one of the same positions whose payloads become columns in another way.

        The window is no longer covered until a run of it is.

        Raises:
            PlanMismatch: the window was planned again meanwhile.
        """
        plan.check()
        with self._beginning(source_key, plan.reader) as (connection, reader_id):
            _redecode(connection, reader_id, plan)
        return plan

    def decode_as(self, source_key: str, reader: str, landing_id: int, payloads: Mapping[str, Any]) -> None:
        """From now on, decode what a reader lands in this way; pinned plans stay as they are.

        Args:
            source_key: the source.
            reader: whose landing.
            landing_id: its landing as the caller knows it.
            payloads: its new `value` and `key`, as JSON.

        Raises:
            PlanMismatch: the reader has another landing by now.
        """
        with self._changing(source_key, reader) as (connection, reader_id):
            _redecode_landing(connection, reader_id, landing_id, payloads, f"reader {reader!r} of {source_key}")

    def redecode(self, source_key: str, plan: Plan, landing_id: int, payloads: Mapping[str, Any]) -> None:
        """Both `decode_pinned` and `decode_as`, or neither of them."""
        plan.check()
        with self._beginning(source_key, plan.reader) as (connection, reader_id):
            _redecode_landing(connection, reader_id, landing_id, payloads, f"reader {plan.reader!r} of {source_key}")
            _redecode(connection, reader_id, plan)


def newest(connection: Connection, reader_id: int | None, window: Window) -> Pin | None:
    """The pin of the greatest generation, void or not; None: the window was never planned."""
    return _first(connection, is_window(pins, reader_id, window), order=(pins.c.generation.desc(),))


def counting(connection: Connection, reader_id: int | None, window: Window) -> Pin | None:
    """The pin that counts; None: the window was never planned, or its plan is void."""
    pin = newest(connection, reader_id, window)
    return None if pin is None or pin.void else pin


def last_covered(
    connection: Connection, reader_id: int | None, landing_id: int | None, before: datetime | None
) -> Pin | None:
    """The counting pin of the last window that is covered under a landing, and ends at or before a time, if given."""
    covered = [pins.c.reader_id == reader_id, is_counting(), is_covered(landing_id)]
    if before is not None:
        covered.append(pins.c.window_end <= before)
    return _first(connection, *covered, order=(pins.c.window_end.desc(), pins.c.window_start.desc()))


def _first(connection: Connection, *rules: ColumnElement[bool], order: tuple[ColumnElement[Any], ...]) -> Pin | None:
    row = connection.execute(select(*_PIN).where(*rules).order_by(*order).limit(1)).first()
    return None if row is None else Pin(*row)


def _redecode(connection: Connection, reader_id: int, plan: Plan) -> None:
    """Pin a plan in place of one that reads the same positions; what goes on after that one, goes on after it."""
    pin = counting(connection, reader_id, plan.window)
    if pin is not None and pin.fingerprint == plan.fingerprint:
        return
    if pin is None or replace(pin.plan, decoding=plan.decoding) != plan:
        raise PlanMismatch(
            f"window {plan.window} of reader {plan.reader!r} was planned again, and is not read yet. Run its task "
            "first: it decodes all events as they are decoded now."
        )
    done = connection.execute(insertion(reader_id, plan, pin.generation + 1, pin.follows))
    (number,) = done.inserted_primary_key or (None,)
    connection.execute(update(pins).where(pins.c.follows_id == pin.id).values(follows_id=number))


def _redecode_landing(
    connection: Connection, reader_id: int | None, landing_id: int, payloads: Mapping[str, Any], whose: str
) -> None:
    kept = stored_landings.current(connection, reader_id)
    if kept is None or kept.id != landing_id:
        raise PlanMismatch(f"{whose} lands something else since a moment ago")
    stored_landings.redecode(connection, kept, payloads)


def insertion(reader_id: int, plan: Plan, generation: int, follows: int | None = None) -> Insert:
    """Pins a plan as this generation, unless another one already is."""
    skews = [round(skew * 1000) for skew in plan.skew_seconds or ()] or (None, None)
    return insert(pins).values(
        reader_id=reader_id,
        window_start=plan.window.start,
        window_end=plan.window.end,
        generation=generation,
        fingerprint=plan.fingerprint,
        pinned_at=datetime.now(UTC),
        plan=json.dumps(plan.to_json(), separators=(",", ":")),
        start_skew_ms=skews[0],
        end_skew_ms=skews[1],
        follows_id=follows,
    )


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
