"""Which window a run reads: one rule, stated once, over typed facts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from airflow_provider_streams.errors import InvalidWindow
from airflow_provider_streams.model.grid import Grid, grid_through
from airflow_provider_streams.model.window import Window

WindowRule = Literal["window", "partition", "data_interval"]


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What an Airflow run says about time; each may be missing."""

    partition_date: datetime | None = None
    data_interval_start: datetime | None = None
    data_interval_end: datetime | None = None
    grid: Grid | None = None
    """How the DAG's own timetable tiles time."""
    is_manual: bool = False
    """Somebody started it by hand: its data interval may lie anywhere."""


@dataclass(frozen=True, slots=True)
class ResolvedWindow:
    """A window and the rule it came from."""

    window: Window
    rule: WindowRule
    grid: Grid | None = None
    """How the windows of these runs tile time; None: the run does not tell."""


def resolve_window(
    window: Window | str | None, window_length: timedelta | str | None, facts: RunFacts
) -> ResolvedWindow:
    """The window of a run: the explicit one; else from the run's partition to the next one; else its data interval.

    Args:
        window: an explicit window, or its text `start/end`.
        window_length: the length of the run's partition, where the DAG's timetable does not tell where the next one
            starts: a time, or its text (`1h`, `1d Europe/Berlin`, see `model.grid`).
        facts: what the run says.

    Raises:
        InvalidWindow: none of the three gives a window, or two contradict each other; the message says what to change.
    """
    if window is not None:
        return ResolvedWindow(window if isinstance(window, Window) else Window.parse(window), "window")
    if facts.partition_date is not None:
        return _partition(facts.partition_date, window_length, facts.grid)
    return _data_interval(facts)


def _partition(start: datetime, length: timedelta | str | None, own: Grid | None) -> ResolvedWindow:
    """A calendar day is not 24 hours: the next partition starts where the DAG's timetable says."""
    asked = None if length is None else grid_through(length, start)
    grid = own or asked
    if grid is None:
        raise InvalidWindow(
            f"the run's partition starts at {start.isoformat()}, and its DAG's timetable does not tell where the next "
            "one does: add window_length=timedelta(..), or a text like '1d Europe/Berlin'"
        )
    window = Window(start, grid.after(start))
    if not grid.is_cell(window):
        raise InvalidWindow(
            f"the run's partition starts at {start.isoformat()}, which is none of its DAG's: the one there is "
            f"{grid.cell(start)}. Was its key given by hand?"
        )
    if asked is not None and asked.after(start) != window.end:
        raise InvalidWindow(
            f"window_length={length!s} ends the partition of {start.isoformat()} at {asked.after(start).isoformat()}, "
            f"but the DAG's next one starts at {window.end.isoformat()}: what lies between would be read twice, or "
            "never. Leave window_length out"
        )
    return ResolvedWindow(window, "partition", grid)


def _data_interval(facts: RunFacts) -> ResolvedWindow:
    start, end = facts.data_interval_start, facts.data_interval_end
    if start is None or end is None:
        raise InvalidWindow(
            "this run has neither a partition nor a data interval: give window='start/end', "
            "or schedule the DAG with CronPartitionTimetable(.., run_offset=-1)"
        )
    if start == end:
        raise InvalidWindow(
            f"this run's data interval is empty ({start.isoformat()}), as cron schedules give it in Airflow 3: "
            "schedule the DAG with CronPartitionTimetable(.., run_offset=-1), "
            "or with CronDataIntervalTimetable, or give window='start/end'; "
            "if it has such partitions, and was started by hand, start it with the key of one"
        )
    window = Window(start, end)
    is_cell = facts.grid is not None and facts.grid.is_cell(window)
    if facts.is_manual and facts.grid is not None and not is_cell:
        raise InvalidWindow(
            f"this run was started by hand, and its data interval {window} is none of its DAG's, which are like "
            f"{facts.grid.cell(window.start)}: give window='start/end', or run the DAG for a date of its schedule"
        )
    return ResolvedWindow(window, "data_interval", facts.grid if is_cell else None)
