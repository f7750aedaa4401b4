"""A hold keeps a source's unread data from its retention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.basis import SLACK


@dataclass(frozen=True, slots=True)
class HoldRequest:
    """A hold to place: where, and for which reader."""

    source: Source
    name: str
    reader: str
    cut: Cut | None = None
    """Where it stands; None: where the window that starts at `since` is read from, or else the head."""
    since: datetime | None = None
    """The start of the first window it holds; None: not a time."""
    slack: timedelta = SLACK
    plan: str = ""
    """The fingerprint of the plan at whose end it stands; empty: none."""


@dataclass(frozen=True, slots=True)
class Hold:
    """One hold, as its system has it."""

    name: str
    reader: str | None
    """Its reader; None: not known."""
    since: datetime | None = None
    """The start of the first window it holds; None: not known."""
    oldest: datetime | None = None
    """The publish time of the oldest event it keeps; None: not known."""
    bytes: int | None = None
    """The bytes it keeps; None: not known."""
    placed: datetime | None = None
    """When it was placed here; None: not known."""
    positions: Mapping[str, str] = field(default_factory=dict)
    """Its position in each shard; empty: not known."""

    def age(self, now: datetime) -> timedelta | None:
        """How long it has been here."""
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
