"""How a window is named where Airflow names partitions."""

from __future__ import annotations

from datetime import UTC

from airflow_provider_streams.errors import InvalidWindow
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.model.window.window_schedule import WindowSchedule, zone_of

KEY_FORMAT = "%Y-%m-%dT%H:%M:%S"
"""Of partition keys, as Airflow's `CronPartitionTimetable` and its mappers write and read them by default."""


def partition_key(window: Window, window_schedule: WindowSchedule | None, key_format: str = KEY_FORMAT) -> str:
    """A window's start as Airflow writes the partition's key: in the time zone of its timetable."""
    try:
        zone = zone_of(getattr(window_schedule, "zone", "UTC"))
    except InvalidWindow:
        zone = UTC
    return window.start.astimezone(zone).strftime(key_format)
