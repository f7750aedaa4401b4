"""Runs an iterator in a thread, a few items ahead: bytes arrive while the ones before them are parsed."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

_CHECK_SECONDS = 0.1
"""How soon a producer that waits for room notices that its items are not wanted any more."""
_JOIN_SECONDS = 2.0


class _End:
    """Nothing follows, but perhaps an error."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


class Prefetched(Generic[T]):
    """The items of `source`, made in a thread of their own, at most `room` of them waiting.

    An error of the source is raised where its item would have been.
    """

    def __init__(self, source: Iterable[T], room: int) -> None:
        self._source = source
        self._items: queue.Queue[T | _End] = queue.Queue(room)
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def __iter__(self) -> Iterator[T]:
        self._thread = threading.Thread(target=self._produce, name="pravega-read", daemon=True)
        self._thread.start()
        try:
            while not isinstance(item := self._items.get(), _End):
                yield item
        finally:
            self.close()
        if item.error is not None:
            raise item.error

    def _produce(self) -> None:
        error: BaseException | None = None
        try:
            for item in self._source:
                if not self._put(item):
                    return
        except BaseException as raised:  # noqa: BLE001 - raised again where the items are used
            error = raised
        self._put(_End(error))

    def _put(self, item: T | _End) -> bool:
        while not self._closed.is_set():
            try:
                self._items.put(item, timeout=_CHECK_SECONDS)
            except queue.Full:
                continue
            return True
        return False

    def close(self) -> None:
        """Let the thread end; one that its source keeps waiting ends later, by itself."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join(_JOIN_SECONDS)
