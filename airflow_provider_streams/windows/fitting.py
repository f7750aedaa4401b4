"""Whether a reader's table can take the rows of a plan, seen before the plan is pinned."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from airflow_provider_streams.errors import InvalidRequest, LandingMismatch, TableUnavailable
from airflow_provider_streams.model.landing import Landing, Schema, TableTerms
from airflow_provider_streams.windows.redecoding import plan_of_nothing

if TYPE_CHECKING:
    from airflow_provider_streams.model.plan import Plan
    from airflow_provider_streams.model.window import Window
    from airflow_provider_streams.systems.base import StreamSystem
    from airflow_provider_streams.windows.ask import Ask


class Outgrown(Exception):
    """The table cannot take the rows of a plan, and the user lets it be set aside."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        super().__init__(str(plan.window))


@dataclass(frozen=True, slots=True)
class Fitting:
    """What rows must have that are to land."""

    landing: Landing
    columns: Schema | None = None
    """Of the reader's table; None: it takes any, or nobody knows."""
    may_give_way: bool = False
    """Whether a table that cannot take them is set aside."""

    def check(self, system: StreamSystem, plan: Plan, later: Collection[str] = ()) -> None:
        """See that the table takes a plan's rows. Which columns a transform's have, only the job can see.

        Args:
            system: knows its columns.
            plan: by which rows are read.
            later: see `missing_columns`; of a plan that is pinned already.

        Raises:
            LandingMismatch: they lack columns that the table has, or have them with other types.
            Outgrown: the same, and it may give way.
            SinkError: the same, and the table keeps columns that these cannot go into, whatever is set aside.
        """
        from airflow_provider_streams.spark.fitting import check_anew, check_fit, columns_of  # noqa: PLC0415 - Arrow

        if self.columns is None or self.landing.transform is not None:
            return
        try:
            check_fit(plan, self.columns, columns_of(system, plan, self.landing.columns), later, hint=_NOT_PINNED)
        except LandingMismatch:
            if self.may_give_way:
                check_anew(system, plan, self.landing)  # before the reader is left with a landing that never begins
                raise Outgrown(plan) from None
            raise

    def is_met(self, system: StreamSystem, plan: Plan, later: Collection[str]) -> bool:
        """Whether `check` would pass."""
        try:
            self.check(system, plan, later)
        except LandingMismatch:
            return False
        return True


def check_room(system: StreamSystem, ask: Ask, window: Window) -> None:
    """See that rows of now can take the place of all that a table holds, before its reader lands otherwise.

    Which columns a transform's have, only the job can see.

    Args:
        system: knows its columns.
        ask: what is to be landed.
        window: the first one, or the span of all.

    Raises:
        SinkError: the table keeps columns that these cannot go into; or it cannot be looked at.
        StreamsError: the system does not tell how payloads become columns.
    """
    from airflow_provider_streams.spark.fitting import check_anew  # noqa: PLC0415 - Arrow
    from airflow_provider_streams.spark.sinks import keeps_columns  # noqa: PLC0415 - where a table is

    landing = ask.landing
    if landing.sink is not None and landing.transform is None and keeps_columns(landing.sink):
        check_anew(system, plan_of_nothing(system, ask.source, ask.reader, window), landing)


def check_rows(system: StreamSystem, plan: Plan, landing: Landing, terms: TableTerms | None) -> None:
    """See that a plan's rows may land, before a job does. Which columns a transform's have, only that can see.

    Args:
        system: knows their columns.
        plan: by which they are read.
        landing: where they are to go.
        terms: see `ForeseeingWriter`.

    Raises:
        InvalidRequest: an unknown column is asked for.
        SinkError: no such table takes them, or the one that is there.
    """
    from airflow_provider_streams.spark import sinks  # noqa: PLC0415 - where a table is
    from airflow_provider_streams.spark.split_reading import schema_of  # noqa: PLC0415 - Arrow

    rows = schema_of(system, plan, landing.columns)
    if landing.sink is None or landing.transform is not None:
        return
    with suppress(TableUnavailable, InvalidRequest):  # it cannot be asked from here: who lands there says why
        sinks.check_rows(landing.sink, rows, terms)


_NOT_PINNED: Final = "see that its events are decoded to all of these (its window was not planned, and is what it was)"
