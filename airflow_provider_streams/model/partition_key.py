"""How a window is named where Airflow names partitions."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from airflow_provider_streams.model.grid import Grid
from airflow_provider_streams.model.window import Window

KEY_FORMAT = "%Y-%m-%dT%H:%M:%S"
"""Of partition keys, as Airflow's `CronPartitionTimetable` and its mappers write and read them by default."""


def partition_key(window: Window, grid: Grid | None, key_format: str = KEY_FORMAT) -> str:
    """A window's start as Airflow writes the partition's key: in the time zone of its timetable."""
    return window.start.astimezone(_zone(getattr(grid, "zone", "UTC"))).strftime(key_format)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return ZoneInfo("UTC")
