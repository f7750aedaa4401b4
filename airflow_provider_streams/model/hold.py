"""A hold keeps a source's unread data from its retention: how one is asked for, and what one is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from airflow_provider_streams.model.basis import SLACK
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.source import Source


@dataclass(frozen=True, slots=True)
class HoldRequest:
    """Where a hold shall stand, and for whom."""

    source: Source
    name: str
    reader: str
    cut: Cut | None = None
    """None: where the window that starts at `since` begins to be read; without that either, the head."""
    since: datetime | None = None
    """Start of the first window it holds; None: not a time."""
    slack: timedelta = SLACK
    plan: str = ""
    """Fingerprint of the plan at whose end it stands; empty: none."""


@dataclass(frozen=True, slots=True)
class Hold:
    """One hold, as its system has it."""

    name: str
    reader: str | None
    """For whom; None: not a reader that is known."""
    since: datetime | None = None
    """Start of the first window it holds; None: not known."""
    oldest: datetime | None = None
    """Publish time of the oldest event it keeps; None: not known."""
    bytes: int | None = None
    """What it keeps; None: not known."""
    placed: datetime | None = None
    """When it was put where it stands; None: not known."""
    positions: Mapping[str, str] = field(default_factory=dict)
    """Where it stands in each shard; empty: not known."""

    def age(self, now: datetime) -> timedelta | None:
        """For how long it has stood here."""
        return None if self.placed is None else now - self.placed

    def to_json(self, now: datetime) -> dict[str, Any]:
        """Plain JSON values."""
        age = self.age(now)
        return {
            "hold": self.name,
            "reader": self.reader,
            "since": _text(self.since),
            "oldest": _text(self.oldest),
            "bytes": self.bytes,
            "placed": _text(self.placed),
            "age_seconds": None if age is None else round(age.total_seconds()),
            "positions": dict(self.positions),
        }


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
