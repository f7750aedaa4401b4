"""Pinned plans: the first plan of a window wins, a replan adds a generation, the newest generation counts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, Insert, RowMapping, Select, exists, insert, select

from airflow_provider_streams.journal.tables import pins, runs
from airflow_provider_streams.model.plan import Plan
from airflow_provider_streams.model.window import Window


@dataclass(frozen=True, slots=True)
class Pin:
    """A pinned plan and its place in the window's history."""

    id: int
    generation: int
    fingerprint: str
    plan_json: str

    @property
    def plan(self) -> Plan:
        """The plan, checked against its fingerprint.

        Raises:
            PlanMismatch: another release's plan, or one that was changed in the database.
        """
        return Plan.from_json(json.loads(self.plan_json))


def newest(connection: Connection, reader_id: int | None, window: Window) -> Pin | None:
    """The pin that counts; None: the window was never planned."""
    statement = _of_window(reader_id, window).order_by(pins.c.generation.desc()).limit(1)
    row = connection.execute(statement).mappings().first()
    return None if row is None else _pin(row)


def insertion(reader_id: int, plan: Plan, generation: int) -> Insert:
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
    )


def last_covered(connection: Connection, reader_id: int, before: datetime | None) -> Pin | None:
    """The newest generation's pin of the covered window with the greatest end."""
    newer = pins.alias()
    covered = exists().where(runs.c.pin_id == pins.c.id, runs.c.state == "covered")
    replaced = exists().where(
        newer.c.reader_id == pins.c.reader_id,
        newer.c.window_start == pins.c.window_start,
        newer.c.window_end == pins.c.window_end,
        newer.c.generation > pins.c.generation,
    )
    statement = select(pins).where(pins.c.reader_id == reader_id, covered, ~replaced)
    if before is not None:
        statement = statement.where(pins.c.window_end <= before)
    statement = statement.order_by(pins.c.window_end.desc(), pins.c.window_start.desc()).limit(1)
    row = connection.execute(statement).mappings().first()
    return None if row is None else _pin(row)


def _of_window(reader_id: int | None, window: Window) -> Select[tuple[object, ...]]:
    return select(pins).where(
        pins.c.reader_id == reader_id, pins.c.window_start == window.start, pins.c.window_end == window.end
    )


def _pin(row: RowMapping) -> Pin:
    return Pin(row["id"], row["generation"], row["fingerprint"], row["plan"])
