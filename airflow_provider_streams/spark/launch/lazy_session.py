"""A Spark session that starts when it is first used: small windows without a transform need none."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class LazySession:
    """Stands for a session that `start` makes once."""

    def __init__(self, start: Callable[[], SparkSession]) -> None:
        self._start, self._lock = start, threading.Lock()
        self._session: SparkSession | None = None

    @property
    def is_started(self) -> bool:
        """Whether it was used."""
        return self._session is not None

    def interruptAll(self) -> list[str]:  # noqa: N802 - Spark's name
        """Cancel its work, if it was started."""
        return [] if self._session is None else self._session.interruptAll()

    def __getattr__(self, name: str) -> Any:
        with self._lock:
            if self._session is None:
                self._session = self._start()
        return getattr(self._session, name)
