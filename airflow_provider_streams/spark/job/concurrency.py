"""Work on several things at once; on a single one in the caller's own thread, where what ends a task interrupts it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

AT_ONCE = 4
"""How many windows are planned, read, or put in place side by side in this process."""

T = TypeVar("T")
R = TypeVar("R")


@contextmanager
def side_by_side(
    act: Callable[[T], R], things: Collection[T], name: str, at_once: int = AT_ONCE
) -> Iterator[Iterator[R]]:
    """The results of an act on each thing, in order; what has not begun when the caller leaves is not done."""
    if min(len(things), at_once) <= 1:
        yield map(act, things)
        return
    pool = ThreadPoolExecutor(min(at_once, len(things)), thread_name_prefix=name)
    try:
        yield pool.map(act, things)
    finally:
        pool.shutdown(cancel_futures=True)
