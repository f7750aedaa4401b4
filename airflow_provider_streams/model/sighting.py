"""A sighting: where the shards of a source ended when somebody looked at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from airflow_provider_streams.model.cut import Cut

Identity = tuple[tuple[str, str], ...]
"""Which life of a source something is of, as `SourceRef.identity`; empty: not known."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """What was seen of a source at a moment, so that later nobody must believe that nothing was removed since.

    Whatever is stored after `at` lies at or behind `tail`: if the stream still holds that place, it holds all of it;
    if not, events were removed after somebody had looked.
    """

    at: datetime
    """When the last answer had come."""
    tail: Cut
    """Just behind everything stored then, or anywhere between that and the tail."""
    identity: Identity = ()
    """The source's life then."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "at": self.at.astimezone(UTC).isoformat(),
            "tail": self.tail.to_json(),
            "identity": dict(self.identity),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The reverse of `to_json`."""
        return cls(datetime.fromisoformat(data["at"]), Cut.from_json(data["tail"]), tuple(data["identity"].items()))
