"""A Spark session that is started when somebody uses it: small windows without a transform need none."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SessionWhenNeeded:
    """Stands for a session.

    Args:
        start: makes it, once.
    """

    def __init__(self, start: Callable[[], SparkSession]) -> None:
        self._start, self._lock = start, threading.Lock()
        self._session: SparkSession | None = None

    @property
    def is_started(self) -> bool:
        """Whether somebody has used it."""
        return self._session is not None

    def interruptAll(self) -> list[str]:  # noqa: N802 - Spark's name
        """Cancel what it does; what was not started does nothing."""
        return [] if self._session is None else self._session.interruptAll()

    def __getattr__(self, name: str) -> Any:
        with self._lock:
            if self._session is None:
                self._session = self._start()
        return getattr(self._session, name)
