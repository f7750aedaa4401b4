"""Whether the task that wants this work was ended from outside. Asked between the steps of a job, and between batches.

Ending a task takes seconds, and its Spark may be gone first: what fails then fails for that reason alone.
"""

from __future__ import annotations

from airflow_provider_streams.errors import TaskEnded


class _Task:
    """A plain value: a signal's handler sets it, and could wait for no lock that the interrupted thread holds."""

    ended = False


def end() -> None:
    """The work of this process is not wanted any more."""
    _Task.ended = True


def forget() -> None:
    """What was ended is over; what begins now is wanted."""
    _Task.ended = False


def is_ended() -> bool:
    """Whether the work that goes on was ended."""
    return _Task.ended


def check() -> None:
    """Go on only while the work is wanted.

    Raises:
        TaskEnded: it is not.
    """
    if _Task.ended:
        raise TaskEnded
