"""How far a long read is, as a line for a log. Pure, apart from `Pace`, which keeps the time between two lines."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from airflow_provider_streams.errors.plurals import counted

PROGRESS_SECONDS: Final = 5.0
"""Between two lines about anything that takes long."""
_MEGA: Final = 1_000_000
_MINUTE: Final = 60


@dataclass(frozen=True, slots=True)
class ReadProgress:
    """How far a read is."""

    done: int
    """Parts that are read."""
    parts: int
    """All of them."""
    unit: str
    """What a part is: split, task."""
    stored: int
    """Stored bytes of the parts that are read; an estimate, as plans have them."""
    all_stored: int
    seconds: float
    events: int | None = None
    """So far; None: not known before the end."""

    def __str__(self) -> str:
        shown = [f"{self.done:,} of {self.parts:,} {self.unit}s are read"]
        if self.events is not None:
            shown.append(f"{counted(self.events, 'event')} ({self._rate(self.events):,.0f} a second)")
        if self.stored and self.all_stored:
            percent = 100 * self.stored // self.all_stored
            shown.append(f"{_mega(self.stored)} of {_mega(self.all_stored)} MB stored ({percent} %)")
            shown.append(f"{_mega(self._rate(self.stored))} MB/s")
            shown.append(f"about {_span(self._left())} left")
        else:
            shown.append(f"{_mega(self.all_stored)} MB stored in all")
        return ", ".join(shown)

    def _rate(self, count: float) -> float:
        return count / self.seconds if self.seconds else 0.0

    def _left(self) -> float:
        return self.seconds * (self.all_stored - self.stored) / self.stored


class Pace:
    """Says when the next line is due. Several threads may ask; one of them gets a yes.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._begun = self._last = clock()

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return self._clock() - self._begun

    def is_due(self) -> bool:
        """Whether a line is due; it then counts as written."""
        with self._lock:
            now = self._clock()
            if now - self._last < PROGRESS_SECONDS:
                return False
            self._last = now
            return True


def _mega(size: float) -> str:
    return f"{size / _MEGA:,.1f}"


def _span(seconds: float) -> str:
    if seconds < _MINUTE:
        return f"{seconds:.0f} s"
    return f"{seconds // _MINUTE:,.0f} min {seconds % _MINUTE:.0f} s"
