"""The times of a split's events, piece by piece: kept with its receipt, for the plans of later windows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from airflow_provider_streams.model.plan.plan import Span


@dataclass(frozen=True, slots=True)
class TimeStatistics:
    """Stored units that were all read, and the times of every event among them, kept or filtered.

    The time is the one that decides in which window a row is: the one of the plan's filter, or for rows without it
    the one that counts in its place.
    """

    span: Span
    """It begins and ends between two events."""
    earliest_us: int | None
    """Microseconds since 1970; None: there is no event with a time."""
    latest_us: int | None
    unknown: int = 0
    """Events whose time is not known: they may belong to any window."""

    def may_meet(self, start_us: int, end_us: int) -> bool:
        """Whether one of the events may be a window's, `start_us <= time < end_us`."""
        if self.unknown:
            return True
        if self.earliest_us is None or self.latest_us is None:
            return False
        return self.earliest_us < end_us and self.latest_us >= start_us

    def to_json(self) -> list[int | None]:
        """Plain JSON values, few: a receipt has some of them for each split."""
        span = self.span
        return [span.run, span.first, span.end, self.earliest_us, self.latest_us, self.unknown]

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> Self:
        """The reverse of `to_json`."""
        run, first, end, earliest, latest, unknown = data
        return cls(Span(run, first, end), earliest, latest, unknown)


def earliest(seen: Iterable[TimeStatistics]) -> int | None:
    """The earliest time of all; None: there is none."""
    return min((one.earliest_us for one in seen if one.earliest_us is not None), default=None)


def latest(seen: Iterable[TimeStatistics]) -> int | None:
    """The latest time of all; None: there is none."""
    return max((one.latest_us for one in seen if one.latest_us is not None), default=None)


def with_unknown(seen: Iterable[TimeStatistics], others: Sequence[TimeStatistics]) -> tuple[TimeStatistics, ...]:
    """The same, with the events whose time is not known to others."""
    doubts = [one for one in others if one.unknown]
    return tuple(
        replace(one, unknown=one.unknown + sum(doubt.unknown for doubt in doubts if _overlap(one.span, doubt.span)))
        for one in seen
    )


def _overlap(one: Span, other: Span) -> bool:
    return one.run == other.run and one.first < other.end and other.first < one.end
