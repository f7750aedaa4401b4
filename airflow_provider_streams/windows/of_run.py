"""Which window a run reads: one rule, stated once, over typed facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Self

from airflow_provider_streams.errors import InvalidWindow
from airflow_provider_streams.model.grid import Grid
from airflow_provider_streams.model.window import Window

WindowRule = Literal["window", "partition", "data_interval"]


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What an Airflow run says about time; each may be missing."""

    partition_date: datetime | None = None
    data_interval_start: datetime | None = None
    data_interval_end: datetime | None = None

    @classmethod
    def of(cls, context: Mapping[str, Any]) -> Self:
        """From a task's context."""
        return cls(context.get("partition_date"), context.get("data_interval_start"), context.get("data_interval_end"))


@dataclass(frozen=True, slots=True)
class ResolvedWindow:
    """A window and the rule it came from."""

    window: Window
    rule: WindowRule
    grid: Grid | None = None
    """How the windows of these runs tile time; None: the run does not tell."""


def resolve_window(window: Window | str | None, window_length: timedelta | None, facts: RunFacts) -> ResolvedWindow:
    """The window of a run: the explicit one; else the run's partition; else its data interval.

    Args:
        window: an explicit window, or its text `start/end`.
        window_length: the length of the run's partition. Airflow stores only where a partition starts.
        facts: what the run says.

    Raises:
        InvalidWindow: none of the three gives a window; the message says what to change.
    """
    if window is not None:
        return ResolvedWindow(window if isinstance(window, Window) else Window.parse(window), "window")
    if facts.partition_date is not None:
        return ResolvedWindow(_partition(facts.partition_date, window_length), "partition")
    return ResolvedWindow(_data_interval(facts), "data_interval")


def _partition(start: datetime, length: timedelta | None) -> Window:
    if length is None:
        raise InvalidWindow(
            f"the run's partition starts at {start.isoformat()}, but its length is stored nowhere in Airflow: "
            "add window_length=timedelta(..), the time between two partitions"
        )
    if length <= timedelta(0):
        raise InvalidWindow(f"window_length must be positive, got {length}")
    return Window(start, start + length)


def _data_interval(facts: RunFacts) -> Window:
    start, end = facts.data_interval_start, facts.data_interval_end
    if start is None or end is None:
        raise InvalidWindow(
            "this run has neither a partition nor a data interval: give window='start/end', "
            "or schedule the DAG with CronPartitionTimetable(.., run_offset=-1) and add window_length=timedelta(..)"
        )
    if start == end:
        raise InvalidWindow(
            f"this run's data interval is empty ({start.isoformat()}), as cron schedules give it in Airflow 3: "
            "schedule the DAG with CronPartitionTimetable(.., run_offset=-1) and add window_length=timedelta(..), "
            "or with CronDataIntervalTimetable, or give window='start/end'"
        )
    return Window(start, end)
