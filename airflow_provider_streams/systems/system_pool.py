"""Connected stream systems that threads take turns to use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_streams.systems.base import StreamSystem


class SystemPool:
    """As many connected systems as threads use at once; each thread has one of its own meanwhile.

    Args:
        connect: makes a system.
    """

    def __init__(self, connect: Callable[[], StreamSystem]) -> None:
        self._connect = connect
        self._idle: list[StreamSystem] = []
        self._lock = threading.Lock()

    @contextmanager
    def one(self) -> Iterator[StreamSystem]:
        """For the calling thread; after a failure it is not used again."""
        with self._lock:
            system = self._idle.pop() if self._idle else None
        system = system or self._connect()
        try:
            yield system
        except BaseException:
            with suppress(Exception):  # of a connection that broke: why it broke must not be covered up
                system.close()
            raise
        with self._lock:
            self._idle.append(system)

    def close(self) -> None:
        """Close the idle ones; also before long work elsewhere, as a silent connection may break."""
        while self._idle:
            self._idle.pop().close()
