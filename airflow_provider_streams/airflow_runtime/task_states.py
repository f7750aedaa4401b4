"""What Airflow says of other task instances, asked from within a task."""

from __future__ import annotations

from typing import Any, Final

AT_WORK: Final = frozenset(
    {"running", "deferred", "queued", "scheduled", "up_for_retry", "up_for_reschedule", "restarting"}
)
"""States of a task instance that may yet succeed."""


class TaskStates:
    """The states of task instances, as Airflow has them now.

    Args:
        ti: the task instance that asks.
    """

    def __init__(self, ti: Any) -> None:
        self._ti = ti

    def state(self, dag_id: str, run_id: str, task_id: str, map_index: int) -> str | None:
        """A task instance's state; None: it is not there any more, or was cleared."""
        states = self._ti.get_task_states(dag_id=dag_id, task_ids=[task_id], run_ids=[run_id])
        found = states.get(run_id, {}).get(task_id if map_index < 0 else f"{task_id}_{map_index}")
        return None if found is None else str(getattr(found, "value", found))
