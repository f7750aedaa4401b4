"""Schedules of DAGs whose runs read windows, and how the timetables of Airflow tile time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow_provider_streams.airflow_features import Feature, has
from airflow_provider_streams.errors import InvalidWindow
from airflow_provider_streams.model.window.window import EPOCH
from airflow_provider_streams.model.window.window_schedule import parse_schedule
from airflow_provider_streams.timetables.cron_schedule import CronSchedule

_CRON_FIELDS = (5, 6)


def window_timetable(windows: str | timedelta, timezone: str = "UTC") -> Any:
    """A DAG's `schedule=` whose runs each read one window: the next starts where one ends, also after a pause.

    A run starts when its window has ended: the one from 10:00 to 11:00 at 11:00.

    Args:
        windows: a cron expression, from one tick to the next one: a preset such as `@hourly`, five fields, or six, of
            which Airflow reads the last one as seconds. Or a length, or a window schedule's text as `parse_schedule`
            takes it: `15m`, `1h +7m`, `1d Europe/Berlin`, `cron 0 6 * * * Europe/Berlin`.
        timezone: of a cron expression: its name, such as `Europe/Berlin`. The other texts name their own.

    Returns:
        Of a cron expression a `CronPartitionTimetable`, whose runs are backfilled by partition date; before Airflow 3.3
        a `CronDataIntervalTimetable`, whose runs are backfilled by logical date. Both give the same windows. Of other
        windows a timetable with data intervals, whose runs are backfilled by logical date.

    Raises:
        InvalidWindow: it is neither, or makes no windows, such as `@once`, `@continuous` and a cron expression with
            years.
    """
    if not isinstance(windows, str | timedelta):
        raise InvalidWindow(f"windows are a cron expression like '@hourly', or a length like '15m', not {windows!r}")
    text = str(windows) if isinstance(windows, timedelta) else " ".join(windows.split())
    if isinstance(windows, str) and _is_cron(text):
        return _cron_timetable(text, str(timezone))
    if timezone != "UTC":
        raise InvalidWindow(f"the zone of windows like {text!r} is a part of the text, like '1d {timezone}'")
    window_schedule = parse_schedule(windows)
    if isinstance(window_schedule, CronSchedule):
        return _cron_timetable(window_schedule.expression, window_schedule.zone)
    return _schedule_timetable(str(window_schedule))


def _is_cron(text: str) -> bool:
    return text.startswith("@") or (len(text.split()) >= min(_CRON_FIELDS) and not text.startswith("cron "))


def _cron_timetable(expression: str, zone: str) -> Any:
    fields = len(expression.split())
    if not expression.startswith("@") and fields not in _CRON_FIELDS:
        raise InvalidWindow(
            f"cron {expression!r} has {fields} fields, but windows are between the ticks of minute, hour, day, month, "
            "weekday and, at will, second. Give a zone as timezone="
        )
    CronSchedule(expression, zone).after(EPOCH)  # refuses one that never ticks
    if not has(Feature.PARTITIONED_RUNS):
        from airflow.timetables.interval import CronDataIntervalTimetable  # noqa: PLC0415 - only where there is one

        return CronDataIntervalTimetable(expression, timezone=zone)
    from airflow.sdk import CronPartitionTimetable  # noqa: PLC0415 - only where there is one

    return CronPartitionTimetable(expression, timezone=zone, run_offset=-1)


def _schedule_timetable(text: str) -> Any:
    from airflow_provider_streams.timetables.window_schedule_timetable import WindowScheduleTimetable  # noqa: PLC0415 - Airflow's core

    return WindowScheduleTimetable(text)
