"""Whether the task that wants this work was ended from outside. Asked between the steps of a job, and between batches.

Ending a task takes seconds, and its Spark may be gone first: what fails then fails for that reason alone.
"""

from __future__ import annotations

import threading

from airflow_provider_streams.errors import TaskEnded

_ended = threading.Event()


def end() -> None:
    """The work of this process is not wanted any more."""
    _ended.set()


def forget() -> None:
    """What was ended is over; what begins now is wanted."""
    _ended.clear()


def is_ended() -> bool:
    """Whether the work that goes on was ended."""
    return _ended.is_set()


def check() -> None:
    """Go on only while the work is wanted.

    Raises:
        TaskEnded: it is not.
    """
    if _ended.is_set():
        raise TaskEnded
