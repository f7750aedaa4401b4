"""What a plan leaves out of its ranges, since it is proven to hold nothing of the window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from airflow_provider_streams.model.position import Position


@dataclass(frozen=True, slots=True)
class Skipped:
    """A piece of a range that no split reads. Splits and skipped pieces tile the range together."""

    shard: str
    start: Position
    end: Position
    bytes: int
    entries: int
    """Stored units, counted as those of splits."""
    because: str
    """What proves that none of its events is the window's."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        places = {"shard": self.shard, "start": str(self.start), "end": str(self.end)}
        return {**places, "bytes": self.bytes, "entries": self.entries, "because": self.because}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        places = {name: Position.parse(data[name]) for name in ("start", "end")}
        return cls(**{**data, **places})
