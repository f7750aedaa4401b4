"""Chained windows: each goes on where the one before it ended, so their order is kept in the database.

Of one chain, pins are made one after the other, each behind a covered one: then they tile, whenever each is read again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, exists, or_, select

from airflow_provider_streams.errors import PlanMismatch
from airflow_provider_streams.journal import pins as pinned
from airflow_provider_streams.journal.pins import Pin
from airflow_provider_streams.journal.tables import pins, runs
from airflow_provider_streams.model.coverage import State
from airflow_provider_streams.model.plan import Plan
from airflow_provider_streams.model.window import Window


@dataclass(frozen=True, slots=True)
class Chain:
    """What lies around one window of a chain."""

    before: Pin | None
    """Of the covered window where it goes on; None: it is the first."""
    open: tuple[Window, ...]
    """Windows behind that one that were planned and are not covered: what they hold is not in the table yet."""
    running: tuple[Window, ...]
    """Those of the open ones that somebody reads."""
    later: Window | None
    """A window at or after it that was planned already; None: it is the last."""


def around(connection: Connection, reader_id: int, window: Window) -> Chain:
    """The neighbours of a window in its reader's chain."""
    earlier = _planned(reader_id).where(pins.c.window_end <= window.start).order_by(pins.c.window_end.desc())
    before = connection.execute(earlier.where(_has_run("covered")).limit(1)).first()
    left = earlier.where(~_has_run("covered"))
    if before is not None:
        left = left.where(pins.c.window_end > before.window_end)
    later = (
        _planned(reader_id)
        .where(
            pins.c.window_end > window.start,
            or_(pins.c.window_start != window.start, pins.c.window_end != window.end),
        )
        .order_by(pins.c.window_start)
        .limit(1)
    )
    following = connection.execute(later).first()
    return Chain(
        None if before is None else pinned.newest(connection, reader_id, _window(before)),
        _windows(connection, left),
        _windows(connection, left.where(_has_run("running"))),
        None if following is None else _window(following),
    )


def check_link(connection: Connection, pin: Pin, plan: Plan) -> None:
    """A chained plan may be read while the plan where it goes on still counts.

    Raises:
        PlanMismatch: that one was replaced since, so the two leave something out or hold it twice.
    """
    if plan.basis != "chained" or pin.follows is None:
        return
    statement = select(pins.c.window_start, pins.c.window_end).where(pins.c.id == pin.follows, pinned.is_counting())
    if connection.execute(statement).first() is None:
        raise PlanMismatch(
            f"window {plan.window} of reader {plan.reader!r} goes on where the window before it ended, and that one "
            "was planned anew since: plan this one anew too (replan=True)"
        )


def _windows(connection: Connection, statement: Select[Any]) -> tuple[Window, ...]:
    return tuple(sorted(_window(row) for row in connection.execute(statement)))


def _window(row: Row[Any]) -> Window:
    return Window(row.window_start, row.window_end)


def _planned(reader_id: int) -> Select[Any]:
    columns = (pins.c.window_start, pins.c.window_end)
    return select(*columns).where(pins.c.reader_id == reader_id, pinned.is_counting())


def _has_run(state: State) -> ColumnElement[bool]:
    """Under whatever landing: once its plan was read, the next one goes on behind it."""
    return exists().where(runs.c.pin_id == pins.c.id, runs.c.state == state)
