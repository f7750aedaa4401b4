"""How long to wait before asking again: growing, and spread so that many do not ask in step."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pause:
    """What a rule asks for that wants to wait: come back with None after so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits between tries: each twice the one before, up to the longest."""

    attempts: int = 5
    """How many tries there are, for callers that end."""
    first_seconds: float = 0.2
    longest_seconds: float = 5.0
    chance: float = 0.5
    """The part of a wait that is left to chance."""

    def seconds(self, tries: int) -> float:
        """The wait after so many tries, counted from 0, that failed before the last one."""
        longest = min(self.longest_seconds, self.first_seconds * 2.0 ** min(tries, 64))
        return longest * random.uniform(1 - self.chance, 1.0)  # noqa: S311 - spreads load, guards nothing

    def waits(self) -> Iterator[float]:
        """The waits in their order, without end."""
        tries = 0
        while True:
            yield self.seconds(tries)
            tries += 1
