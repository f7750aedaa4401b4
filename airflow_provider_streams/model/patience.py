"""When several sources or tables do not answer, nobody waits for each of the others."""

from __future__ import annotations

import threading

from airflow_provider_streams.errors import ReadStalled, StreamsError, SystemUnavailable, TableUnavailable

MOST_UNREACHABLE = 3
"""So many sources or tables may not answer before none is asked any more."""


class Patience:
    """With sources or tables that do not answer, where each is one of several: it ends when that is no single one's.

    Args:
        several: whether each source has a table of its own; of one table, what does not answer concerns all windows.
    """

    def __init__(self, *, several: bool) -> None:
        self.several = several
        self._lock = threading.Lock()
        self._met: list[StreamsError] = []

    @property
    def over(self) -> StreamsError | None:
        """What nobody is asked after any more; None: go on."""
        return self._met[-1] if self.several and len(self._met) >= MOST_UNREACHABLE else None

    def note(self, error: object) -> None:
        """What was met."""
        if isinstance(error, SystemUnavailable | TableUnavailable) and not isinstance(error, ReadStalled):
            with self._lock:
                self._met.append(error)
