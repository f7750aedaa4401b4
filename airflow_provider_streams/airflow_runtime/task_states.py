"""What Airflow says of other task instances, asked from within a task."""

from __future__ import annotations

from typing import Any, Final

AT_WORK: Final = frozenset(
    {"running", "deferred", "queued", "scheduled", "up_for_retry", "up_for_reschedule", "restarting"}
)
"""States of a task instance that was started."""
CLEARED: Final = "cleared"
"""It is going to be started; Airflow calls this no state."""


class TaskStates:
    """The states of task instances, as Airflow has them now.

    Args:
        ti: the task instance that asks.
    """

    def __init__(self, ti: Any) -> None:
        self._ti = ti

    def state(self, dag_id: str, run_id: str, task_id: str, map_index: int) -> str | None:
        """A task instance's state, `CLEARED` if it has none; None: the task instance is not there any more."""
        states = self._ti.get_task_states(dag_id=dag_id, task_ids=[task_id], run_ids=[run_id]).get(run_id, {})
        name = task_id if map_index < 0 else f"{task_id}_{map_index}"
        if name not in states:
            return None
        found = states[name]
        return CLEARED if found is None else str(getattr(found, "value", found))
