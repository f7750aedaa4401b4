"""Chained windows: each goes on where the one before it ended, so the database keeps their order.

The pins of one chain are made one after the other, each after a covered one. So they tile, whenever each is read again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, exists, select, update

from airflow_provider_streams.errors import PlanMismatch
from airflow_provider_streams.journal import pinned_plans as pinned
from airflow_provider_streams.journal.pinned_plans import Pin
from airflow_provider_streams.journal.row_ids import JournalPart
from airflow_provider_streams.journal.tables import is_window, pins, runs
from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.model.window.coverage import State
from airflow_provider_streams.model.window.window import Window


@dataclass(frozen=True, slots=True)
class Chain:
    """The neighbors of one window of a chain."""

    before: Pin | None
    """Of the covered window where it goes on; None: it is the first."""
    open: tuple[Window, ...]
    """Later ones that were planned and are not covered: the table does not have their rows yet."""
    running: tuple[Window, ...]
    """The open ones that a run is reading."""
    later: Window | None
    """A window at or after it that was planned already; None: it is the last."""


class ChainedWindows(JournalPart):
    """Plans of the basis `chained`."""

    def chain(self, source_key: str, reader: str, window: Window) -> Chain:
        """The neighbors of a window in its reader's chain."""
        with self._reading(source_key, reader) as (connection, reader_id):
            return _around(connection, reader_id, window)

    def pin_chained(self, source_key: str, plan: Plan, seen: Chain, *, replan: bool = False) -> Plan | None:
        """Pin a window of a chain, if its neighbors are those for which it was planned; None: they are others.

        Args:
            source_key: the source.
            plan: starts where the window before it ends.
            seen: from `chain`; without a later window.
            replan: in place of its pin, and of the open windows before it, whose plans become void.

        Raises:
            PlanMismatch: the plan pinned meanwhile is of another release.
        """
        plan.check()
        with self._beginning(source_key, plan.reader) as (connection, reader_id):
            if _around(connection, reader_id, plan.window) != seen:
                return None
            pin = pinned.newest(connection, reader_id, plan.window)
            if pin is not None and not pin.void and not replan:
                return pin.plan
            for window in seen.open if replan else ():
                counts = (is_window(pins, reader_id, window), pins.c.void_at.is_(None))
                connection.execute(update(pins).where(*counts).values(void_at=datetime.now(UTC)))
            follows = seen.before.id if seen.before else None
            generation = pin.generation + 1 if pin else 1
            connection.execute(pinned.insertion(reader_id, plan, generation, follows))
        return plan


def check_link(connection: Connection, pin: Pin, plan: Plan) -> None:
    """A chained plan may be read while the plan where it goes on still counts.

    Raises:
        PlanMismatch: that plan was replaced, so the two leave something out or hold it twice.
    """
    if plan.basis != "chained" or pin.follows is None:
        return
    statement = select(pins.c.id).where(pins.c.id == pin.follows, pinned.is_counting())
    if connection.execute(statement).first() is None:
        raise PlanMismatch(
            f"window {plan.window} of reader {plan.reader!r} goes on where the window before it ended, and that one "
            "was planned again since. Plan this one again as well (replan=True)."
        )


def _around(connection: Connection, reader_id: int | None, window: Window) -> Chain:
    planned = select(pins.c.window_start, pins.c.window_end).where(pins.c.reader_id == reader_id, pinned.is_counting())
    earlier = planned.where(pins.c.window_end <= window.start).order_by(pins.c.window_end.desc())
    before = connection.execute(earlier.where(_has_run("covered")).limit(1)).first()
    left = earlier.where(~_has_run("covered"))
    if before is not None:
        left = left.where(pins.c.window_end > before.window_end)
    later = planned.where(pins.c.window_end > window.start, ~is_window(pins, reader_id, window))
    following = connection.execute(later.order_by(pins.c.window_start).limit(1)).first()
    return Chain(
        None if before is None else pinned.newest(connection, reader_id, _window(before)),
        _windows(connection, left),
        _windows(connection, left.where(_has_run("running"))),
        None if following is None else _window(following),
    )


def _windows(connection: Connection, statement: Select[Any]) -> tuple[Window, ...]:
    return tuple(sorted(_window(row) for row in connection.execute(statement)))


def _window(row: Any) -> Window:
    return Window(row.window_start, row.window_end)


def _has_run(state: State) -> ColumnElement[bool]:
    """Under any landing: once its plan was read, the next one goes on after it."""
    return exists().where(runs.c.pin_id == pins.c.id, runs.c.state == state)
