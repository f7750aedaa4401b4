"""How a window is named where Airflow names partitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class PartitionKeys:
    """The keys of the windows that a run announces. The run's key names the run's own window and no other.

    Args:
        own: the window of the run's partition, or the one that a run without a partition reads; None: not known.
        own_key: the run's key, as Airflow has it; None: the run has none.
        timetable: the key of a window that is a partition of the DAG's own timetable; None: it is none of them, or
            the timetable does not tell.
        key_format: of all other windows; None: they have no keys.
    """

    own: Window | None = None
    own_key: str | None = None
    timetable: Callable[[Window], str | None] = lambda _: None
    key_format: str | None = KEY_FORMAT

    def key(self, window: Window, window_schedule: WindowSchedule | None) -> str | None:
        """The key of a window; None: it has none, or the run's own key is written by a rule that is not known.

        Args:
            window: one that the run announces.
            window_schedule: how the reader's windows tile time; None: it is not known.
        """
        if window == self.own:
            return self.own_key

        def formatted(one: Window) -> str | None:
            if self.key_format is None:
                return None
            is_cell = window_schedule is None or window_schedule.is_cell(one)
            return partition_key(one, window_schedule, self.key_format) if is_cell or one == window else None

        rules = (rule for rule in (self.timetable, formatted) if self._gives_own_key(rule))
        found = next((key for rule in rules if (key := rule(window)) is not None), None)
        return None if found == self.own_key else found

    def _gives_own_key(self, rule: Callable[[Window], str | None]) -> bool:
        """Whether a rule names the run's own partition as Airflow did, or says nothing of it."""
        return self.own is None or self.own_key is None or rule(self.own) in (None, self.own_key)
