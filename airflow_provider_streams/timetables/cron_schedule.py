"""How the ticks of a cron expression tile time, by Airflow's own rule."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, UTC, datetime, timedelta
from functools import cache, cached_property, lru_cache
from typing import Any, NamedTuple

from airflow_provider_streams.errors import InvalidWindow
from airflow_provider_streams.model.window.window import in_utc
from airflow_provider_streams.model.window.window_schedule import WindowSchedule, no_zone

_NO_WINDOWS = ("@once", "@continuous")
"""Presets of Airflow without ticks."""
_RANDOM = re.compile(r"(?<![a-z])r(?![a-z])", re.IGNORECASE)
"""A field whose value croniter chooses at random; other letters are of names, like FRI."""
_SEARCH = 2
_LONGEST = timedelta(days=9 * 366)
"""Longer than that no cron expression waits for its next tick: a 29th of February on one weekday comes in 40 years."""
_MOMENT = timedelta(microseconds=1)
_MOST_TICKS = 5_000
"""So many ticks of a window schedule are remembered: three days of minutes."""


@dataclass(frozen=True)
class CronSchedule(WindowSchedule):
    """Cells between two ticks of a cron expression in a time zone, computed by Airflow's own rule.

    Args:
        expression: five fields, or a preset like `@daily`.
        zone: the name of a time zone, or an offset in seconds, as Airflow writes them.

    Raises:
        InvalidWindow: not an expression, or no such zone.
    """

    expression: str
    zone: str = "UTC"

    def __post_init__(self) -> None:
        if self.expression in _NO_WINDOWS:
            raise InvalidWindow(f"{self.expression!r} makes no windows: write '@hourly', or a length like '15m'")
        if _RANDOM.search(self.expression):
            raise InvalidWindow(f"cron {self.expression!r} makes no windows: each look at it gives R another value")
        try:
            _clock_of(self.zone)
        except Exception as error:
            raise no_zone(self.zone) from error
        try:
            self._timetable.validate()
        except Exception as error:
            raise InvalidWindow(f"cron {self.expression!r} in {self.zone} is no window schedule: {error}") from error

    def __str__(self) -> str:
        return f"cron {self.expression} {self.zone}"

    def before(self, moment: datetime) -> datetime:
        """See `WindowSchedule`."""
        return _walk_of(self).before(in_utc(moment))

    def after(self, moment: datetime) -> datetime:
        """See `WindowSchedule`."""
        return _walk_of(self).after(in_utc(moment))

    def _before(self, moment: datetime) -> datetime:
        ticks = self._settling(moment)
        return ticks[bisect_right(ticks, moment) - 1] if ticks else self._last(moment)

    def _after(self, moment: datetime) -> datetime:
        ticks = self._settling(moment)
        return ticks[bisect_right(ticks, moment)] if ticks else self._next(moment)

    def _settling(self, moment: datetime) -> Sequence[datetime]:
        """The ticks over a change of clocks, if the moment is among those that only going from tick to tick finds."""
        for begin, end, change in _unsettled(self, moment.year):
            if begin <= moment < end and moment < (ticks := _ticks_over(self, change))[-1]:
                return ticks
        return ()

    def _last(self, moment: datetime) -> datetime:
        """Found by going forward: where clocks change, Airflow's way back is not the way forth."""
        reach = max(self._next(moment) - moment, timedelta(minutes=1))
        while (tick := self._after(self._back(moment, reach))) > moment:
            reach *= _SEARCH
            if reach > _LONGEST:
                raise InvalidWindow(f"{self} has no tick before {moment.isoformat()}")
        while (following := self._next(tick)) <= moment:
            tick = following
        return tick

    def _back(self, moment: datetime, reach: timedelta) -> datetime:
        try:
            return moment - reach
        except OverflowError as error:
            raise InvalidWindow(f"{self} has no tick before {moment.isoformat()}: time starts in year 1") from error

    def _next(self, moment: datetime) -> datetime:
        """When a scheduler that ran at this moment would run next."""
        import pendulum  # noqa: PLC0415 - Airflow's own
        from airflow.timetables.base import DataInterval, TimeRestriction  # noqa: PLC0415 - only where there is one

        try:
            last = DataInterval.exact(pendulum.instance(moment.astimezone(UTC)))
            catch_up = TimeRestriction(None, None, catchup=True)
            following = self._timetable.next_dagrun_info(last_automated_data_interval=last, restriction=catch_up)
        except (ValueError, OverflowError) as error:
            raise InvalidWindow(f"{self} has no tick after {moment.isoformat()}: {error}") from error
        if following is None:
            raise InvalidWindow(f"{self} has no tick after {moment.isoformat()}")
        return datetime.fromtimestamp(following.run_after.timestamp(), UTC)

    @cached_property
    def _timetable(self) -> Any:
        from airflow.timetables.trigger import CronTriggerTimetable  # noqa: PLC0415 - only where there is one

        return CronTriggerTimetable(self.expression, timezone=_clock_of(self.zone))


class _Walk:
    """The ticks of a window schedule that were computed last, each from the one before.

    Who goes on asks Airflow once for each.

    Args:
        window_schedule: whose cells are the same from wherever they are asked for.
    """

    def __init__(self, window_schedule: CronSchedule) -> None:
        self._schedule = window_schedule
        self._ticks: tuple[datetime, ...] = ()
        """In a row. Replaced as a whole: threads that go different ways ask more often, and nothing else."""

    def before(self, moment: datetime) -> datetime:
        """As `WindowSchedule.before`."""
        ticks = self._around(moment)
        if not ticks:
            self._ticks = ticks = (self._schedule._before(moment), self._schedule._after(moment))  # noqa: SLF001 - its own module's
        return ticks[bisect_right(ticks, moment) - 1]

    def after(self, moment: datetime) -> datetime:
        """As `WindowSchedule.after`."""
        ticks = self._around(moment)
        if not ticks or moment == ticks[-1]:
            self._ticks = ticks = (*ticks[1 - _MOST_TICKS :], self._schedule._after(moment))  # noqa: SLF001 - as above
        return ticks[bisect_right(ticks, moment)]

    def _around(self, moment: datetime) -> tuple[datetime, ...]:
        """Those that are known, if the moment is among them."""
        ticks = self._ticks
        return ticks if ticks and ticks[0] <= moment <= ticks[-1] else ()


@lru_cache(maxsize=16)
def _walk_of(window_schedule: CronSchedule) -> _Walk:
    return _Walk(window_schedule)


@cache
def _clock_of(zone: str) -> Any:
    """The zone as Airflow has it, which takes an offset for one only once that is made one."""
    import pendulum  # noqa: PLC0415 - Airflow's own

    return pendulum.timezone(int(zone) if zone.lstrip("-").isdigit() else zone)


class Change(NamedTuple):
    """A change of clocks."""

    at: datetime
    jump: timedelta
    """How far, in either direction."""


@lru_cache(maxsize=256)
def _changes_of(zone: str, year: int) -> Sequence[Change]:
    if not MINYEAR < year < MAXYEAR:  # no room to look around
        return []
    clock, found = _clock_of(zone), []

    def offset(moment: datetime) -> timedelta:
        return moment.astimezone(clock).utcoffset() or timedelta(0)

    begin = datetime(year, 1, 1, tzinfo=UTC)
    for day in range(366):
        before, after = begin + timedelta(days=day), begin + timedelta(days=day + 1)
        jump = abs(offset(after) - offset(before))
        if jump:
            while after - before > timedelta(seconds=1):
                middle = before + (after - before) // 2
                before, after = (before, middle) if offset(middle) != offset(before) else (middle, after)
            found.append(Change(after.replace(microsecond=0), jump))
    return found


@lru_cache(maxsize=256)
def _unsettled(window_schedule: CronSchedule, year: int) -> Sequence[tuple[datetime, datetime, Change]]:
    """Where Airflow's next tick may hang on where it is asked from, in that year: from where, to where, and why."""
    found = []
    for change in (one for near in (year - 1, year, year + 1) for one in _changes_of(window_schedule.zone, near)):
        following = window_schedule._next(change.at + change.jump)  # noqa: SLF001 - its own module's
        found.append((change.at - change.jump, following + change.jump, change))
    return found


@lru_cache(maxsize=256)
def _ticks_over(window_schedule: CronSchedule, change: Change) -> Sequence[datetime]:
    """What a scheduler ticks over a change, from the last one on before any time that comes twice or not at all."""
    ticks = [window_schedule._before(change.at - change.jump - _MOMENT)]  # noqa: SLF001 - its own module's
    while ticks[-1] <= change.at + change.jump:
        ticks.append(window_schedule._next(ticks[-1]))  # noqa: SLF001 - its own module's
    return ticks
