"""Work that runs on a thread of its own while its caller goes on."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")


class BackgroundWork(Generic[T]):
    """A call of `work`, begun at once, on a thread that ends with it: none idles between two calls."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._future: Future[T] = Future()
        self._thread = Thread(target=self._run, args=(work,), name="streams-background", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Until the thread has ended, however the work did."""
        self._thread.join()

    def result(self) -> T:
        """What the work gave, or the error it raised."""
        self.wait()
        return self._future.result()

    def _run(self, work: Callable[[], T]) -> None:
        try:
            self._future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again where the result is asked for
            self._future.set_exception(error)
