"""A tail observation: where the shards of a source ended at a moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from airflow_provider_streams.model.stream.cut import Cut

Incarnation = tuple[tuple[str, str], ...]
"""The incarnation of a source, as `SourceRef.incarnation`; empty: not known."""


@dataclass(frozen=True, slots=True)
class TailObservation:
    """The end of a source at a moment. It proves later whether events were removed since.

    All events that are stored after `at` are at `tail` or after it. A stream that still holds that place holds all of
    them. Otherwise events were removed after the observation.
    """

    at: datetime
    """When the last answer came."""
    tail: Cut
    """Just after everything stored then, or anywhere between that and the tail."""
    incarnation: Incarnation = ()
    """The source's incarnation then."""
    empty: frozenset[str] | None = None
    """The shards that were there without any event; None: not known."""

    def adds_to(self, other: TailObservation) -> bool:
        """Whether the two say more than one of them: about shards, incarnations, places, or a shard's first entry."""
        earlier, later = sorted((self, other), key=lambda one: one.at)
        then = dict(earlier.incarnation)
        return (
            earlier.tail.keys() != later.tail.keys()
            or earlier.tail.extend(later.tail) is None
            or any(then.get(shard, life) != life for shard, life in later.incarnation)
            or bool(later.empty is not None and (earlier.empty or frozenset()) - later.empty)
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "at": self.at.astimezone(UTC).isoformat(),
            "tail": self.tail.to_json(),
            "incarnation": dict(self.incarnation),
            **({} if self.empty is None else {"empty": sorted(self.empty)}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The reverse of `to_json`."""
        return cls(
            datetime.fromisoformat(data["at"]),
            Cut.from_json(data["tail"]),
            tuple(data["incarnation"].items()),
            None if (empty := data.get("empty")) is None else frozenset(empty),
        )


def relevant(tail_observations: Iterable[TailObservation], moment: datetime) -> tuple[TailObservation, ...]:
    """The observations that matter for events after a moment: the last one up to it, and all later ones."""
    seen = sorted(tail_observations, key=lambda one: one.at)
    return (*[one for one in seen if one.at <= moment][-1:], *(one for one in seen if one.at > moment))
