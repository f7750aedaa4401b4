"""A subscription's backlog."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from airflow_provider_streams.systems.pulsar.admin.answers import SubscriptionStats


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
