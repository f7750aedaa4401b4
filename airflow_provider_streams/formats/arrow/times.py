"""Numbers that mean times: which of them are times, and the columns' numbers for them.

Dates and moments are of the years 1 to 9999, as in Spark, SQL and Python. Times of day are of one day. What is finer
than a column's unit is cut off (towards the past).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Final, Self

from airflow_provider_streams.model.schema.type_table import Unit
from airflow_provider_streams.model.schema.types import Simple

if TYPE_CHECKING:  # planning uses this module, and loads no numpy
    from airflow_provider_streams.formats.arrow.arrays import Flags, Ints

OUTSIDE: Final = "is no time of the years 1 to 9999, or of a day"

FIRST_DAY, LAST_DAY = -719_162, 2_932_896
DAY_NANOS: Final = 86_400_000_000_000
DAY_MICROS: Final = DAY_NANOS // 1000
NANOS: Final[dict[Unit, int]] = {"d": DAY_NANOS, "s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}

_COLUMN_NANOS: Final = {"date": DAY_NANOS, "time": 1, "timestamp": 1_000, "timestamp_ntz": 1_000}
"""Nanoseconds of the column's unit."""

_MOST: Final = {
    "date": (FIRST_DAY, LAST_DAY),
    "time": (0, DAY_NANOS - 1),
    "timestamp": (FIRST_DAY * DAY_MICROS, (LAST_DAY + 1) * DAY_MICROS - 1),
    "timestamp_ntz": (FIRST_DAY * DAY_MICROS, (LAST_DAY + 1) * DAY_MICROS - 1),
}
"""The least and greatest of the column's numbers."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Turns a unit's numbers from `low` to `high` into a column's: times `up`, or divided by `down`."""

    up: int
    down: int
    low: int
    high: int

    @classmethod
    def of(cls, word: str, unit: Unit) -> Self:
        """The scale of a column type (`timestamp`, ..) for numbers of a unit."""
        from_nanos, to_nanos = NANOS[unit], _COLUMN_NANOS[word]
        low, high = _MOST[word]
        if from_nanos >= to_nanos:
            up = from_nanos // to_nanos
            return cls(up, 1, -(-low // up), high // up)
        down = to_nanos // from_nanos
        return cls(1, down, max(low * down, -(1 << 63)), min(high * down + down - 1, (1 << 63) - 1))

    def outside(self, values: Ints) -> Flags:
        """Which numbers are no such times."""
        found: Flags = (values < self.low) | (values > self.high)
        return found

    def column(self, values: Ints) -> Ints:
        """The column's numbers, which mean nothing for values outside."""
        scaled = values * self.up if self.up > 1 else values
        return scaled // self.down if self.down > 1 else scaled

    def one(self, value: int) -> int | None:
        """The column's number of one value; None: it is no such time."""
        return value * self.up // self.down if self.low <= value <= self.high else None


def scale_of(type_: Simple) -> Scale:
    """The scale of a time that a format writes as numbers."""
    return Scale.of(type_.word, type_.unit or _OWN_UNIT[type_.word])


def instants(seconds: Ints, nanos: Ints, word: str = "timestamp", unit: Unit = "s") -> tuple[Ints, Flags]:
    """Microseconds of seconds and nanoseconds, or of days and nanoseconds, cut; and which of them are no times."""
    outside: Flags = Scale.of(word, unit).outside(seconds) | (nanos < 0) | (nanos >= NANOS[unit])
    counts: Ints = seconds * (~outside) * (NANOS[unit] // 1000) + nanos // 1000
    return counts, outside


_OWN_UNIT: Final[dict[str, Unit]] = {"date": "d", "time": "ns", "timestamp": "us", "timestamp_ntz": "us"}


def as_text(word: str, value: int) -> str:
    """A column's number as ISO 8601 writes the time: a moment with `Z`, a local time without zone."""
    if word == "date":
        return str(_DAY_ZERO + timedelta(days=value))
    if word == "time":
        seconds, nanos = divmod(value, 1_000_000_000)
        return f"{_MIDNIGHT + timedelta(seconds=seconds):%H:%M:%S}.{nanos:09d}"
    moment = (_MIDNIGHT + timedelta(microseconds=value)).isoformat(timespec="microseconds")
    return f"{moment}Z" if word == "timestamp" else moment


_DAY_ZERO: Final = date(1970, 1, 1)
_MIDNIGHT: Final = datetime(1970, 1, 1)  # noqa: DTZ001  # arithmetic only
