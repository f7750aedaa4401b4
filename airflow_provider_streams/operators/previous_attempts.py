"""Which runs in the journal are earlier tries of the task instance that runs now."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Self

from airflow_provider_streams.airflow_features import first_attempt
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.model.window.coverage import RunRef
from airflow_provider_streams.operators.base import task_instance_key

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context


class PreviousAttempts:
    """The runs that earlier tries of this very task instance left in the journal, since it was last cleared."""

    def __init__(self, task: TaskInstanceKey, first_try: int, begun: datetime) -> None:
        self._task, self._first, self._begun = task, first_try, begun

    @classmethod
    def of(cls, task: BaseOperator, context: Context) -> Self:
        """Those of the task instance that runs now."""
        ti = context["ti"]
        # clearing raises `max_tries` by the tries so far
        first = max(1, int(getattr(ti, "max_tries", 0) or 0) - (task.retries or 0) + 1)
        return cls(task_instance_key(context), first, first_attempt(context))

    def __contains__(self, run: object) -> bool:
        task = self._task
        return (
            isinstance(run, RunRef)
            and (run.dag_id, run.run_id, run.task_id, run.map_index)
            == (task.dag_id, task.run_id, task.task_id, task.map_index)
            and run.try_number >= self._first
            and run.started is not None
            and run.started >= self._begun
        )
