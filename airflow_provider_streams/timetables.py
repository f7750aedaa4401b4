"""How Airflow's timetables tile time: a run's window reaches from its partition to the next one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from airflow_provider_streams.errors import InvalidWindow
from airflow_provider_streams.model.grid import Every, Grid
from airflow_provider_streams.windows.of_run import RunFacts

_SEARCH = 2
_LONGEST = timedelta(days=9 * 366)
"""Longer than that no cron expression waits for its next tick: a 29th of February on one weekday comes in 40 years."""


@dataclass(frozen=True)
class CronGrid(Grid):
    """Cells between two ticks of a cron expression in a time zone, computed by Airflow's own rule.

    Args:
        expression: five fields, or a preset like `@daily`.
        zone: the name of a time zone, or an offset as Airflow writes it (`+01:00`).

    Raises:
        InvalidWindow: not an expression, or no such zone.
    """

    expression: str
    zone: str = "UTC"

    def __post_init__(self) -> None:
        try:
            self._cron.validate()
        except Exception as error:
            raise InvalidWindow(f"cron {self.expression!r} in {self.zone} is no grid: {error}") from error

    def __str__(self) -> str:
        return f"cron {self.expression} {self.zone}"

    def before(self, moment: datetime) -> datetime:
        """See `Grid`. Found by going forward: where clocks change, Airflow's way back is not the way forth."""
        reach = max(self.after(moment) - moment, timedelta(minutes=1))
        while (tick := self.after(moment - reach)) > moment:
            reach *= _SEARCH
            if reach > _LONGEST:
                raise InvalidWindow(f"{self} has no tick before {moment.isoformat()}")
        while (following := self.after(tick)) <= moment:
            tick = following
        return tick

    def after(self, moment: datetime) -> datetime:
        """See `Grid`."""
        import pendulum  # noqa: PLC0415 - Airflow's own

        try:
            tick = self._cron._get_next(pendulum.instance(moment.astimezone(UTC)))  # noqa: SLF001 - it has no public name
            return datetime.fromtimestamp(tick.timestamp(), UTC)
        except (ValueError, OverflowError) as error:
            raise InvalidWindow(f"{self} has no tick after {moment.isoformat()}: {error}") from error

    @cached_property
    def _cron(self) -> Any:
        from airflow.timetables._cron import CronMixin  # noqa: PLC0415 - only where there is one

        return CronMixin(self.expression, self.zone)


def run_facts(context: Mapping[str, Any]) -> RunFacts:
    """What a run says about time, its DAG's timetable included."""
    run_type = str(getattr(context.get("dag_run"), "run_type", ""))
    is_manual = run_type.rpartition(".")[2].lower() == "manual"
    start = context.get("data_interval_start")
    timetable = getattr(context.get("dag"), "timetable", None)
    return RunFacts(
        context.get("partition_date"),
        start,
        context.get("data_interval_end"),
        # where a manual run's interval starts says nothing of the others'
        grid_of_timetable(timetable, None if is_manual else start),
        is_manual,
    )


def grid_of_timetable(timetable: Any, start: datetime | None = None) -> Grid | None:
    """How the runs of a timetable tile time; None: it does not tell.

    Args:
        timetable: a DAG's.
        start: where one of its data intervals starts: those of one length are counted from there.
    """
    expression, zone = getattr(timetable, "expression", None), getattr(timetable, "timezone", None)
    if isinstance(expression, str) and zone is not None:
        return CronGrid(expression, _zone_name(zone))
    delta = getattr(timetable, "delta", None)
    if isinstance(delta, timedelta) and start is not None and delta > timedelta(0):
        return Every.through(delta, start)
    return None


def _zone_name(zone: Any) -> str:
    return zone if isinstance(zone, str) else str(getattr(zone, "name", None) or getattr(zone, "key", None) or zone)
