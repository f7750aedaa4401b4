"""Stops a run of many sources or tables when several of them do not answer."""

from __future__ import annotations

import threading

from airflow_provider_streams.errors import ReadStalled, StreamsError, SystemUnavailable, TableUnavailable

MOST_UNREACHABLE = 3
"""How many sources or tables may not answer before the run stops."""


class CircuitBreaker:
    """Counts sources and tables that do not answer.

    Args:
        several: whether each source has a table of its own. If all windows have one table, each failure concerns all.
    """

    def __init__(self, *, several: bool) -> None:
        self.several = several
        self._lock = threading.Lock()
        self._met: list[StreamsError] = []

    @property
    def over(self) -> StreamsError | None:
        """The error that stops the run; None: go on."""
        return self._met[-1] if self.several and len(self._met) >= MOST_UNREACHABLE else None

    def note(self, error: object) -> None:
        """Count an error."""
        if isinstance(error, SystemUnavailable | TableUnavailable) and not isinstance(error, ReadStalled):
            with self._lock:
                self._met.append(error)
