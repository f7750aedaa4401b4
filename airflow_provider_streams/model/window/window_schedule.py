"""A window schedule: how the windows of a reader tile time. Pure.

A calendar day is not 24 hours: where clocks change, one has 23 and one 25. So a window schedule says where each edge
is, and its cells may differ in length.

| text | cells |
|---|---|
| `90s`, `15m`, `1h`, `36h` | of one length, counted from 1970 (UTC) |
| `1h +15m` | the same, shifted |
| `1d`, `1w`, `1mo`, `1y`, `2d Europe/Berlin` | of the calendar, from midnight in a zone (or UTC); weeks from Monday |
| `1h Asia/Kolkata` | hours by a zone's clock: one that comes twice is one cell |
| `cron 0 6 * * * Europe/Berlin` | between two ticks of a cron expression |
"""

from __future__ import annotations

import importlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import Literal, get_args
from zoneinfo import ZoneInfo, available_timezones

from airflow_provider_streams.errors import InvalidWindow
from airflow_provider_streams.model.name_suggestion import nearest_name
from airflow_provider_streams.model.window.window import EPOCH, Window, in_utc, parse_length

Unit = Literal["h", "d", "w", "mo", "y"]

CRON = "airflow_provider_streams.timetables.cron_schedule:CronSchedule"
"""It computes ticks as Airflow does. `model` does not import Airflow, so it is loaded when it is used."""

_LENGTH = re.compile(r"(?P<length>[\d.]+[smh])(?: *\+(?P<shift>[\d.]+[smh]))?")
_CALENDAR = re.compile(r"(?P<count>\d+)(?P<unit>h|d|w|mo|y)(?: +(?P<zone>[A-Za-z0-9_+/-]+))?")
_MONTHS = {"mo": 1, "y": 12}
_HOURS = {"h": 1, "d": 24, "w": 7 * 24}
_MONDAY = date(1970, 1, 5)
_CRON_FIELDS = 5
_NEAR = 0.8
"""How alike a mistyped zone and a known one are."""


class WindowSchedule(ABC):
    """Edges in time; two neighboring ones are a cell. `str` gives the text that `parse_schedule` takes."""

    @abstractmethod
    def before(self, moment: datetime) -> datetime:
        """The last edge at or before a time.

        Raises:
            InvalidWindow: the window schedule does not reach so far.
        """

    @abstractmethod
    def after(self, moment: datetime) -> datetime:
        """The first edge after a time.

        Raises:
            InvalidWindow: the window schedule does not reach so far.
        """

    def start_of_partition(self, date: datetime) -> datetime:
        """Where the cell starts that a partition of this date is, if the date is one of these cells'."""
        return in_utc(date)

    def cell(self, moment: datetime) -> Window:
        """The cell that holds a time."""
        return Window(self.before(moment), self.after(moment))

    def last_full_cell(self, moment: datetime) -> Window:
        """The last cell that ends at or before a time."""
        end = self.before(moment)
        return self.cell(end - timedelta(microseconds=1))

    def is_cell(self, window: Window) -> bool:
        """Whether a window is exactly one cell."""
        return self.cell(window.start) == window

    def cells(self, start: datetime, end: datetime) -> Iterator[Window]:
        """The cells that are wholly in `[start, end)`, in order of time."""
        left = self.before(start)
        left = left if left == start else self.after(start)
        while left < end and (right := self.after(left)) <= end:
            yield Window(left, right)
            left = right

    def around(self, span: Window) -> Window:
        """The smallest stretch of whole cells that holds a span."""
        last = self.before(span.end)
        return Window(self.before(span.start), last if last == span.end else self.after(span.end))


@dataclass(frozen=True, slots=True)
class Every(WindowSchedule):
    """Cells of one length, counted from 1970 (UTC) plus a shift that is less than the length.

    Raises:
        InvalidWindow: a length that is not positive.
    """

    length: timedelta
    shift: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        if self.length <= timedelta(0):
            raise InvalidWindow(f"a window's length must be positive, got {self.length}")
        object.__setattr__(self, "shift", self.shift % self.length)

    def __str__(self) -> str:
        shift = f" +{_duration(self.shift)}" if self.shift else ""
        return f"{_duration(self.length)}{shift}"

    @classmethod
    def through(cls, length: timedelta, edge: datetime) -> Every:
        """The window schedule of a length that has an edge at a time."""
        if length <= timedelta(0):
            raise InvalidWindow(f"a window's length must be positive, got {length}")
        return cls(length, (in_utc(edge) - EPOCH) % length)

    def before(self, moment: datetime) -> datetime:
        """See `WindowSchedule`."""
        begin = EPOCH + self.shift
        return _moment(begin, (in_utc(moment) - begin) // self.length, self.length)

    def after(self, moment: datetime) -> datetime:
        """See `WindowSchedule`."""
        return _moment(self.before(moment), 1, self.length)


@dataclass(frozen=True, slots=True)
class Calendar(WindowSchedule):
    """Cells of so many hours, days, weeks (from Monday), months or years, by the clock of a time zone.

    Where clocks skip midnight, a cell starts at the moment of the change. An hour that comes twice is one cell, because
    its name is one partition; so is a day whose midnight comes twice. Each starts with the first of the two.

    Raises:
        InvalidWindow: a count that is not positive, an unknown unit or zone.
    """

    count: int
    unit: Unit
    zone: str = "UTC"

    def __post_init__(self) -> None:
        if self.count <= 0 or self.unit not in get_args(Unit):
            raise InvalidWindow(f"a calendar length is like 1d, 1w, 1mo or 1y, got {self.count}{self.unit}")
        zone_of(self.zone)

    def __str__(self) -> str:
        # a plain 1h is of one length
        zone = "" if self.zone == "UTC" and self.unit != "h" else f" {self.zone}"
        return f"{self.count}{self.unit}{zone}"

    def before(self, moment: datetime) -> datetime:
        """See `WindowSchedule`."""
        return self._edge(self._next(moment) - 1)

    def after(self, moment: datetime) -> datetime:
        """See `WindowSchedule`. A day that was skipped shares its edge with the next one."""
        return self._edge(self._next(moment))

    def start_of_partition(self, date: datetime) -> datetime:
        """See `WindowSchedule`. Of two moments that the clock shows alike, Airflow's date is the second."""
        return self._local_time(date).replace(fold=0).astimezone(UTC)

    def _next(self, moment: datetime) -> int:
        """The number of the first edge after a time."""
        number = self._number(moment)
        while self._edge(number) <= moment:
            number += 1
        while self._edge(number - 1) > moment:
            number -= 1
        return number

    def _number(self, moment: datetime) -> int:
        """The number of the cell of a local date, since 1970; slightly off where dates were skipped."""
        local = self._local_time(moment)
        if self.unit in _MONTHS:
            return ((local.year - 1970) * 12 + local.month - 1) // (self.count * _MONTHS[self.unit])
        hours = (local.date() - self._first_day).days * 24 + local.hour
        return hours // (self.count * _HOURS[self.unit])

    def _local_time(self, moment: datetime) -> datetime:
        try:
            return moment.astimezone(zone_of(self.zone))
        except (OverflowError, ValueError) as error:
            raise _too_far(error) from error

    def _edge(self, number: int) -> datetime:
        try:
            return self._local(number * self.count).replace(tzinfo=zone_of(self.zone)).astimezone(UTC)
        except (OverflowError, ValueError) as error:
            raise _too_far(error) from error

    def _local(self, units: int) -> datetime:
        """What the zone's clock shows so many units after the first day."""
        if self.unit in _MONTHS:
            years, months = divmod(units * _MONTHS[self.unit], 12)
            return datetime.combine(date(1970 + years, 1 + months, 1), time())
        return datetime.combine(self._first_day, time()) + timedelta(hours=units * _HOURS[self.unit])

    @property
    def _first_day(self) -> date:
        return _MONDAY if self.unit == "w" else EPOCH.date()


def parse_schedule(given: str | timedelta | WindowSchedule) -> WindowSchedule:
    """A window schedule from its text, or from a length.

    Raises:
        InvalidWindow: it is none.
    """
    if isinstance(given, WindowSchedule):
        return given
    if isinstance(given, timedelta):
        return Every(given)
    text = " ".join(given.split())
    if text.startswith("cron "):
        return _cron(text)
    if found := _LENGTH.fullmatch(text):
        return Every(parse_length(found["length"]), parse_length(found["shift"] or "0s"))
    if found := _CALENDAR.fullmatch(text):
        return Calendar(int(found["count"]), found["unit"], found["zone"] or "UTC")  # type: ignore[arg-type]  # matched
    raise InvalidWindow(
        f"{given!r} is not a length of windows: write it like 15m, 1h, 1d, 1mo or '1d Europe/Berlin'. Or write a cron "
        "expression, like 'cron 0 6 * * *'"
    )


def schedule_of(text: str, timezone: str = "") -> WindowSchedule:
    """A window schedule as people write it: a cron expression, a preset like `@hourly`, seconds, or a length.

    A time zone may follow a cron expression or a preset. It has a letter, and a sixth field has none.

    Args:
        text: what is written.
        timezone: of a cron expression without one of its own; empty: UTC.

    Raises:
        InvalidWindow: it is none of them, never comes, or names another time zone.
    """
    words = text.split()
    fields = words[1:] if words[:1] == ["cron"] else words
    if len(words) == 1 and words[0].isdecimal():
        text = f"{words[0]}s"
    elif fields and (fields[0].startswith("@") or len(fields) >= _CRON_FIELDS):
        more = fields[1 if fields[0].startswith("@") else _CRON_FIELDS :]
        names_zone = bool(more) and any(one.isalpha() for one in more[-1])
        text = " ".join(["cron", *fields, *([] if names_zone else [timezone or "UTC"])])
    found = parse_schedule(text)
    if timezone and timezone != getattr(found, "zone", "UTC"):
        raise InvalidWindow(
            f"windows of {found} are not of the time zone {timezone!r}: give the zone once, in the text"
        )
    found.cell(datetime.now(UTC))  # a cron expression may name a day that never comes
    return found


def schedule_through(given: str | timedelta | WindowSchedule, edge: datetime) -> WindowSchedule:
    """As `parse_schedule`; a plain length is shifted so that it has an edge at a time."""
    window_schedule = parse_schedule(given)
    return (
        Every.through(window_schedule.length, edge)
        if isinstance(window_schedule, Every) and not window_schedule.shift
        else window_schedule
    )


def zone_of(name: str) -> tzinfo:
    """A time zone by its name, or by an offset in seconds, as Airflow writes those without a name.

    Raises:
        InvalidWindow: there is none of that name.
    """
    try:
        if name.removeprefix("-").isdecimal():
            return timezone(timedelta(seconds=int(name)))
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError, OverflowError) as error:
        raise no_zone(name) from error


def no_zone(name: str) -> InvalidWindow:
    """The refusal of a time zone that there is not."""
    near = nearest_name(name, available_timezones(), likeness=_NEAR)
    hint = f"did you mean {near!r}?" if near else "write one like Europe/Berlin"
    return InvalidWindow(f"there is no time zone {name!r}: {hint}")


def _cron(text: str) -> WindowSchedule:
    """`cron <five fields> [<zone>]`."""
    words = text.removeprefix("cron ").split(" ")
    fields = 1 if words[0].startswith("@") else _CRON_FIELDS
    zone = words.pop() if len(words) > fields else "UTC"
    module, _, name = CRON.partition(":")
    window_schedule: WindowSchedule = getattr(importlib.import_module(module), name)(" ".join(words), zone)
    return window_schedule


def _duration(length: timedelta) -> str:
    """`90s`, `15m`, `1h`."""
    for unit, seconds in (("h", 3600), ("m", 60), ("s", 1)):
        if not length % timedelta(seconds=seconds):
            return f"{length // timedelta(seconds=seconds)}{unit}"
    return f"{length.total_seconds():.6f}s"


def _moment(begin: datetime, cells: int, length: timedelta) -> datetime:
    try:
        return begin + cells * length
    except OverflowError as error:
        raise _too_far(error) from error


def _too_far(error: Exception) -> InvalidWindow:
    return InvalidWindow(f"windows cannot reach so far: times lie between the years 1 and 9999 ({error})")
