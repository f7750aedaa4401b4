"""Looks: the first entries that a reader is sent who begins at a place, as many of them as one wants. Values.

A reader is sent neither markers nor messages of aborted transactions, and nothing behind an open transaction. What a
look passes over is therefore no message that anybody can read now. `wire/looking.py` does the looking.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from airflow_provider_streams.model.window import moment_of_ms

if TYPE_CHECKING:
    # its package loads Arrow, which event loops and DAG files do without
    from airflow_provider_streams.systems.pulsar.decode.metadata import EntryMetadata


class Place(NamedTuple):
    """Where to look."""

    topic: str
    ledger: int
    entry: int
    wanted: int = 1
    """How many entries to meet at most."""


class Head(NamedTuple):
    """What an entry says about itself; its payload is left out."""

    ledger: int
    entry: int
    metadata: EntryMetadata | None
    """None: its bytes are damaged."""


@dataclass(frozen=True, slots=True)
class Look:
    """What was met from a place on."""

    heads: tuple[Head, ...]
    """In order; fewer than wanted where the topic ends."""
    last: tuple[int, int] | None
    """The topic's last readable entry, as told then; None: there is none."""

    @property
    def first_ms(self) -> int | None:
        """When the first message met was published; None: none was."""
        return next((head.metadata.publish_ms for head in self.heads if head.metadata is not None), None)

    @property
    def published(self) -> datetime | None:
        """The same as a time."""
        return moment_of(self.first_ms)


def moment_of(publish_ms: int | None) -> datetime | None:
    """A publish time; None: there is none, or one that no calendar has."""
    return None if publish_ms is None else moment_of_ms(publish_ms)


T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)

Looker = Callable[[Sequence[Place]], Sequence[Look]]
"""Looks at many places together. Blocks."""
Walk = Generator[Place, Look, T]
"""Places to look at, one after the other, each chosen by what was met before; what was met is sent in."""


def side_by_side(walks: Mapping[Key, Walk[T]]) -> Generator[list[Place], Sequence[Look], dict[Key, T]]:
    """Many walks to their ends, a step of all of them at a time."""
    ends: dict[Key, T] = {}
    looks: dict[Key, Look | None] = dict.fromkeys(walks)
    while looks:
        wanted: dict[Key, Place] = {}
        for key, look in looks.items():
            try:
                wanted[key] = next(walks[key]) if look is None else walks[key].send(look)
            except StopIteration as end:
                ends[key] = end.value
        looks = dict(zip(wanted, (yield list(wanted.values())) if wanted else (), strict=True))
    return ends


def walk_all(looker: Looker, walks: Mapping[Key, Walk[T]]) -> dict[Key, T]:
    """What many walks lead to."""
    steps = side_by_side(walks)
    try:
        places = next(steps)
        while True:
            places = steps.send(looker(places))
    except StopIteration as end:
        found: dict[Key, T] = end.value
        return found
