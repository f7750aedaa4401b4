"""A subscription's backlog, and the conditions on it that sensors and triggers share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, Self

from airflow_provider_streams.errors import InvalidRequest

if TYPE_CHECKING:
    from airflow_provider_streams.systems.pulsar.admin.answers import SubscriptionStats

Direction = Literal["at_least", "at_most"]


@dataclass(frozen=True, slots=True)
class Backlog:
    """What a subscription has not acknowledged yet. Entries are not messages: a batch of 1,000 counts once."""

    entries: int
    bytes: int
    oldest: datetime | None = None
    """Publish time of its oldest entry; None: there is none, the broker did not say, or it is in no calendar."""

    @classmethod
    def of(cls, parts: Iterable[SubscriptionStats]) -> Self:
        """The backlog over several topics."""
        rows = tuple(parts)
        return cls(
            sum(row.entries for row in rows),
            sum(row.bytes or 0 for row in rows),
            min((row.oldest for row in rows if row.oldest), default=None),
        )

    def age(self, now: datetime) -> timedelta:
        """How long its oldest entry has been waiting; zero without one. Skew between the clocks shifts it."""
        if self.oldest is None or not self.entries:
            return timedelta(0)
        return max(now - self.oldest, timedelta(0))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "entries": self.entries,
            "bytes": self.bytes,
            "oldest": self.oldest.isoformat() if self.oldest else None,
        }


@dataclass(frozen=True, slots=True)
class BacklogLimit:
    """A condition on a backlog.

    `at_least` is met as soon as one of the given limits is reached: enough for a batch, or old enough. `at_most` is
    met when none of them is exceeded: drained.

    Raises:
        InvalidRequest: no limit, or a negative one.
    """

    entries: int | None = None
    bytes: int | None = None
    age: timedelta | None = None
    direction: Direction = "at_least"

    def __post_init__(self) -> None:
        if self.direction not in ("at_least", "at_most"):
            raise InvalidRequest(f"direction must be 'at_least' or 'at_most', got {self.direction!r}")
        given = [limit for limit in (self.entries, self.bytes) if limit is not None]
        if not given and self.age is None:
            raise InvalidRequest("give a limit: entries, bytes or age")
        if any(limit < 0 for limit in given) or (self.age is not None and self.age < timedelta(0)):
            raise InvalidRequest("a backlog's limits must not be negative")

    def met(self, backlog: Backlog, now: datetime) -> bool:
        """Whether the backlog meets it now."""
        if self.direction == "at_least":
            return any(actual >= limit for actual, limit in self._pairs(backlog, now))
        return all(actual <= limit for actual, limit in self._pairs(backlog, now))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        seconds = self.age.total_seconds() if self.age is not None else None
        return {"entries": self.entries, "bytes": self.bytes, "age_seconds": seconds, "direction": self.direction}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The reverse of `to_json`."""
        seconds = data["age_seconds"]
        age = None if seconds is None else timedelta(seconds=seconds)
        return cls(data["entries"], data["bytes"], age, data["direction"])

    def __str__(self) -> str:
        limits = {"entries": self.entries, "bytes": self.bytes, "age": self.age}
        shown = ", ".join(f"{name} {limit}" for name, limit in limits.items() if limit is not None)
        return f"{self.direction.replace('_', ' ')} {shown}"

    def _pairs(self, backlog: Backlog, now: datetime) -> Iterator[tuple[Any, Any]]:
        if self.entries is not None:
            yield backlog.entries, self.entries
        if self.bytes is not None:
            yield backlog.bytes, self.bytes
        if self.age is not None:
            yield backlog.age(now), self.age
