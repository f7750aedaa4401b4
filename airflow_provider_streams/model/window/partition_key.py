"""How a window is named where Airflow names partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Final, NamedTuple

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


class KeyRule(NamedTuple):
    """How a DAG's timetable writes the keys of its partitions."""

    key_format: str
    zone: str

    def key(self, window: Window) -> str:
        """The key of a window."""
        return window.start.astimezone(zone_of(self.zone)).strftime(self.key_format)


class Known(NamedTuple):
    """What the journal knows of the keys of a reader's windows."""

    rule: KeyRule | None = None
    """Of the DAG that reads them; None: its timetable has not told."""
    keys: Mapping[Window, str] = {}
    """Under which ones windows were announced."""
    taken: Mapping[str, Window] = {}
    """Which window was announced under a key."""


NOTHING: Final = Known()


@dataclass(frozen=True, slots=True)
class PartitionKeys:
    """The keys of the windows that a run announces. The run's key names the run's own window and no other.

    Args:
        own: the window of the run's partition, or the one that a run without a partition reads; None: not known.
        own_key: the run's key, as Airflow has it; None: the run has none.
        timetable: the key of a window that is a partition of the DAG's own timetable; None: it is none of them, or
            the timetable does not tell.
        key_format: of all other windows; None: they have no keys.
        rule: how the DAG's own timetable writes keys; None: it does not tell.
    """

    own: Window | None = None
    own_key: str | None = None
    timetable: Callable[[Window], str | None] = lambda _: None
    key_format: str | None = KEY_FORMAT
    rule: KeyRule | None = None

    def key(self, window: Window, window_schedule: WindowSchedule | None, known: Known = NOTHING) -> str | None:
        """The key of a window; None: it has none, or the rules do not tell one that is not the run's own.

        Args:
            window: one that the run announces.
            window_schedule: how the reader's windows tile time; None: it is not known.
            known: the rule of the DAG that reads these windows counts more than `key_format`, and so does the key
                that the window had before.
        """
        if window == self.own:
            return self.own_key
        found = self._ruled(window, window_schedule, known)
        return None if found == self.own_key else found

    def shares_own_key(self, window: Window, window_schedule: WindowSchedule | None, known: Known = NOTHING) -> bool:
        """Whether the run's own key is also the key of this other window, as of an hour that starts with its day."""
        is_other = self.own_key is not None and window != self.own
        return is_other and self._ruled(window, window_schedule, known) == self.own_key

    def _ruled(self, window: Window, window_schedule: WindowSchedule | None, known: Known) -> str | None:
        """The key by the first rule that names the window, among those that name the run's own as Airflow did."""

        def formatted(one: Window) -> str | None:
            if self.key_format is None:
                return None
            if one != window and window_schedule is not None and not window_schedule.is_cell(one):
                return None
            if known.rule is not None:
                return known.rule.key(one)
            earlier = known.keys.get(one) if one == window else None
            return earlier or partition_key(one, window_schedule, self.key_format)

        rules = (rule for rule in (self.timetable, formatted) if self._gives_own_key(rule))
        return next((key for rule in rules if (key := rule(window)) is not None), None)

    def writes(self, keys: Mapping[Window, str | None]) -> bool:
        """Whether these are windows of the DAG's own timetable, and its rule gives their keys."""
        return self.rule is not None and all(self.timetable(one) == self.rule.key(one) for one in keys)

    def _gives_own_key(self, rule: Callable[[Window], str | None]) -> bool:
        """Whether a rule names the run's own partition as Airflow did, or says nothing of it."""
        return self.own is None or self.own_key is None or rule(self.own) in (None, self.own_key)
