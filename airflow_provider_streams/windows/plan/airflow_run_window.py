"""Which window a run reads: one rule, stated once, over typed facts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from airflow_provider_streams.errors import InvalidWindow
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.model.window.window_schedule import WindowSchedule, schedule_through

WindowRule = Literal["window", "partition", "data_interval", "schedule"]


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What an Airflow run says about time; each fact may be missing."""

    partition_date: datetime | None = None
    data_interval_start: datetime | None = None
    data_interval_end: datetime | None = None
    window_schedule: WindowSchedule | None = None
    """How the DAG's own timetable tiles time."""
    is_manual: bool = False
    """A user started it by hand, or a task of another DAG: its data interval may be anywhere."""
    is_partitioned: bool = False
    """The DAG's scheduled runs have partitions; those by hand may have none."""
    partition_key: str | None = None
    """The run's own."""
    key_example: str | None = None
    """A key as the DAG's timetable writes it."""
    logical_date: datetime | None = None
    run_after: datetime | None = None
    """When it may start. Of a run by hand, this is the present moment, whatever its logical date."""


@dataclass(frozen=True, slots=True)
class ResolvedWindow:
    """A window and the rule it came from."""

    window: Window
    rule: WindowRule
    window_schedule: WindowSchedule | None = None
    """How the windows of these runs tile time; None: not known."""


def resolve_window(
    window: Window | str | None, window_length: timedelta | str | None, facts: RunFacts
) -> ResolvedWindow:
    """The window of a run: the explicit one; else from the run's partition to the next one; else its data interval.

    A run by hand reads the last full window before its logical date, as Airflow's `CronDataIntervalTimetable` infers
    it. Airflow's API gives it the interval before its logical date, but `airflow dags trigger -l` and
    `TriggerDagRunOperator` give it the one before the present moment; in a partitioned DAG the interval is empty.

    Args:
        window: an explicit window, or its text `start/end`.
        window_length: the length of the run's partition, where the DAG's timetable does not tell where the next one
            starts: a time, or its text (`1h`, `1d Europe/Berlin`, see `parse_schedule`).
        facts: what the run says.

    Raises:
        InvalidWindow: none of the three gives a window, or two contradict each other; the message says what to change.
    """
    if window is not None:
        return ResolvedWindow(window if isinstance(window, Window) else Window.parse(window), "window")
    if facts.partition_date is not None:
        return _partition(facts.partition_date, window_length, facts.window_schedule)
    return _data_interval(facts)


def _partition(date: datetime, length: timedelta | str | None, own: WindowSchedule | None) -> ResolvedWindow:
    """A calendar day is not 24 hours: the next partition starts where the DAG's timetable says."""
    asked = None if length is None else schedule_through(length, date)
    window_schedule = own or asked
    if window_schedule is None:
        raise InvalidWindow(
            f"the run's partition starts at {date.isoformat()}, and its DAG's timetable does not tell when the next "
            "one starts: add window_length='1h', or '1d Europe/Berlin'"
        )
    start = window_schedule.start_of_partition(date)
    window = Window(start, window_schedule.after(start))
    if not window_schedule.is_cell(window):
        raise InvalidWindow(
            f"the run's partition starts at {date.isoformat()}, which is none of its DAG's: the one there is "
            f"{window_schedule.cell(start)}. Was its key given by hand?"
        )
    if asked is not None and (end := asked.after(asked.start_of_partition(date))) != window.end:
        raise InvalidWindow(
            f"window_length={length!s} ends the partition of {date.isoformat()} at {end.isoformat()}, "
            f"but the DAG's next one starts at {window.end.isoformat()}: the time between would be read twice, or "
            "never. Leave window_length out"
        )
    return ResolvedWindow(window, "partition", window_schedule)


def _data_interval(facts: RunFacts) -> ResolvedWindow:
    start, end = facts.data_interval_start, facts.data_interval_end
    if start is None or end is None:
        raise _no_time(facts)
    date, schedule = facts.logical_date or start, facts.window_schedule
    if start == end and facts.is_manual and facts.is_partitioned and schedule is not None:
        return ResolvedWindow(schedule.last_full_cell(date), "schedule", schedule)
    if start == end:
        raise InvalidWindow(
            f"this run's data interval is empty ({start.isoformat()}), as schedules of cron or of a timedelta give it "
            "in Airflow 3: schedule the DAG with window_timetable('@hourly') or window_timetable('15m'), or "
            "give window='start/end'"
        )
    window = Window(start, end)
    if facts.is_manual and _is_of_the_present(window, facts):
        if schedule is None:
            raise InvalidWindow(
                f"this run was started for {date.isoformat()}, but Airflow gave it the data interval {window}, which "
                "ends at the present moment: give window='start/end', or start it through Airflow's UI or API"
            )
        return ResolvedWindow(schedule.last_full_cell(date), "schedule", schedule)
    is_cell = facts.window_schedule is not None and facts.window_schedule.is_cell(window)
    if facts.is_manual and facts.window_schedule is not None and not is_cell:
        raise InvalidWindow(
            f"this run was started by hand or by another DAG, and its data interval {window} is none of its DAG's, "
            f"which are like {facts.window_schedule.cell(window.start)}: give window='start/end', or run the DAG for a "
            "date of its schedule"
        )
    return ResolvedWindow(window, "data_interval", facts.window_schedule if is_cell else None)


def _is_of_the_present(window: Window, facts: RunFacts) -> bool:
    """Whether Airflow inferred a data interval from the present moment, for a run of another date."""
    date, now, schedule = facts.logical_date, facts.run_after, facts.window_schedule
    if date is None or now is None:
        return False
    if schedule is None:
        return window.end == now != date
    return window == schedule.last_full_cell(now) != schedule.last_full_cell(date)


def _no_time(facts: RunFacts) -> InvalidWindow:
    """Of a run that tells no time at all."""
    if facts.partition_key is not None:
        return InvalidWindow(
            f"this run's partition key {facts.partition_key!r} names no time that its DAG's timetable can read"
            f"{_like(facts)}: start the run with such a key, or give window='start/end'"
        )
    if facts.is_partitioned and facts.is_manual:
        return InvalidWindow(
            "this run of a partitioned DAG was started by hand or by another DAG, with neither a partition key nor a "
            f"logical date: start it with the key of a window{_like(facts)}; or with a logical date, to read the last "
            "full window before it; or give window='start/end'"
        )
    if facts.is_partitioned:
        return InvalidWindow(
            "this run of a partitioned DAG has no partition yet: its DAG chooses partitions while it runs. Give "
            "window='start/end', which may be a template"
        )
    return InvalidWindow(
        "this run tells neither its partition's date nor a data interval: give window='start/end', "
        "or schedule the DAG with window_timetable('@hourly')"
    )


def _like(facts: RunFacts) -> str:
    return "" if facts.key_example is None else f", like {facts.key_example!r}"
