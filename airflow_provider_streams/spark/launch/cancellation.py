"""Whether the task of this work was ended from outside; checked between the steps of a job, and between batches.

Ending a task takes seconds, and its Spark may be gone first: failures after that have this one reason.
"""

from __future__ import annotations

from airflow_provider_streams.errors import TaskCancelled


class _Task:
    """A plain value: a signal's handler sets it, and must not wait for a lock of the interrupted thread."""

    ended = False


def end() -> None:
    """The work of this process is no longer wanted."""
    _Task.ended = True


def forget() -> None:
    """The ended work is over; work that begins now is wanted."""
    _Task.ended = False


def is_ended() -> bool:
    """Whether the work that goes on was ended."""
    return _Task.ended


def check() -> None:
    """Go on only while the work is wanted.

    Raises:
        TaskCancelled: it is not.
    """
    if _Task.ended:
        raise TaskCancelled
