"""The options with which a plan was made."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Self

from airflow_provider_streams.model.plan.request import OnLoss
from airflow_provider_streams.model.plan.row_filter import TimeUnit
from airflow_provider_streams.model.window.basis import Rows

_LENGTHS: Final = ("slack", "max_skew", "allowed_lateness")


@dataclass(frozen=True, slots=True)
class Terms:
    """The options with which a plan was made, as far as they decide which rows it holds."""

    slack: timedelta | None = None
    """Bases `publish` and `event`."""
    max_skew: timedelta | None = None
    """Basis `append`."""
    on_loss: OnLoss = "fail"
    allowed_lateness: timedelta | None = None
    """Basis `event`; and what follows."""
    event_time: str | None = None
    unit: TimeUnit | None = None
    rows: Rows | None = None
    cuts: str | None = None
    """Basis `cuts`: `Cuts.digest`."""

    @property
    def lengths(self) -> dict[str, timedelta]:
        """The lengths of time that its basis has, by name."""
        return {name: length for name in _LENGTHS if (length := getattr(self, name)) is not None}

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, lengths of time in seconds."""
        values = {name: getattr(self, name) for name in self.__slots__ if name not in _LENGTHS}
        return {**values, **{f"{name}_seconds": length.total_seconds() for name, length in self.lengths.items()}}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        lengths: dict[str, Any] = {
            name: timedelta(seconds=data[key]) for name in _LENGTHS if (key := f"{name}_seconds") in data
        }
        return cls(**lengths, **{name: value for name, value in data.items() if not name.endswith("_seconds")})

    def changes(self, now: Terms) -> list[str]:
        """Which options are others now, each for a person: `slack 0:01:00 instead of 0:05:00`."""
        pairs = [(name, getattr(self, name), getattr(now, name)) for name in (*_LENGTHS, "on_loss", "rows")]
        pairs.append(("event_time", self._time_text, now._time_text))
        return [
            f"{name} {planned} instead of {wanted}"
            for name, planned, wanted in pairs
            if None not in (planned, wanted) and planned != wanted
        ]

    def has_other_cuts(self, now: Terms) -> bool:
        """Whether other cuts are given now."""
        return None not in (self.cuts, now.cuts) and self.cuts != now.cuts

    def has_other_time(self, now: Terms) -> bool:
        """Whether another time of an event counts now."""
        return (self.event_time, self.unit) != (now.event_time, now.unit)

    @property
    def _time_text(self) -> str | None:
        """Which time counts, for a person; None: not an event's."""
        if self.allowed_lateness is None:
            return None
        return " in ".join(filter(None, (self.event_time, self.unit))) or "of the broker"
