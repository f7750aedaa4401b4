"""Waiting on conditions instead of on time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def wait_until(condition: Callable[[], _T], what: str, seconds: float = 600.0, every_seconds: float = 0.1) -> _T:
    """Ask `condition` until its answer is true, and return that answer.

    Raises:
        TimeoutError: It was not true within `seconds`; the message names `what`.
    """
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        if time.monotonic() >= deadline:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        time.sleep(every_seconds)
    return answer
