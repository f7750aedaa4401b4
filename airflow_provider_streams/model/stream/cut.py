"""A cut: one position for every shard of a source at one moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from airflow_provider_streams.model.stream.position import Position


@dataclass(frozen=True, slots=True)
class Cut(Mapping[str, Position]):
    """Shard name to position, sorted by shard. Equal cuts are equal however they were built."""

    positions: dict[str, Position]

    def __post_init__(self) -> None:
        object.__setattr__(self, "positions", dict(sorted(self.positions.items())))

    def __hash__(self) -> int:
        return hash(tuple(self.positions.items()))

    def __getitem__(self, shard: str) -> Position:
        return self.positions[shard]

    def __iter__(self) -> Iterator[str]:
        return iter(self.positions)

    def __len__(self) -> int:
        return len(self.positions)

    def __str__(self) -> str:
        return ", ".join(f"{shard}@{position}" for shard, position in self.positions.items())

    def to_json(self) -> dict[str, str]:
        """Shard name to position text."""
        return {shard: str(position) for shard, position in self.positions.items()}

    def extend(self, later: Cut) -> Cut | None:
        """The next cut after this one, for a source whose shards never end; None: `later` moves some shard back.

        A shard that `later` does not name (its topic was deleted, or not visible) stays where it was.
        """
        if any(position < self[shard] for shard, position in later.items() if shard in self):
            return None
        return Cut({**self.positions, **later.positions})

    @classmethod
    def from_json(cls, data: Mapping[str, str]) -> Self:
        """The reverse of `to_json`."""
        return cls({shard: Position.parse(text) for shard, text in data.items()})


def union(cuts: Iterable[Cut]) -> Cut:
    """One cut of several topics or streams."""
    return Cut({shard: position for cut in cuts for shard, position in cut.items()})
