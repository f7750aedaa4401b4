"""Which runs in the journal are earlier tries of the task instance that runs now."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from airflow_provider_streams.model.coverage import RunRef
from airflow_provider_streams.operators.base import run_ids
from airflow_provider_streams.windows.reading import RunIds

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

_BEGUN = "streams_begun"


def _begun(context: Context) -> datetime:
    """When this task instance was first tried: a run that was deleted and made again under its old name is another one.

    Only Airflow's own store of the task instance tells them apart: it goes with the run.
    """
    from airflow.sdk.execution_time.context import NEVER_EXPIRE  # noqa: PLC0415 - where a task runs

    store = context["task_state_store"]
    known = store.get(_BEGUN, default=None)
    if known is None:
        known = datetime.now(UTC).isoformat()
        store.set(_BEGUN, known, retention=NEVER_EXPIRE)
    return datetime.fromisoformat(str(known))


class OwnTries:
    """The runs that earlier tries of this very task instance left in the journal, since it was last cleared."""

    def __init__(self, ids: RunIds, first_try: int, begun: datetime) -> None:
        self._ids, self._first, self._begun = ids, first_try, begun

    @classmethod
    def of(cls, task: BaseOperator, context: Context) -> Self:
        """Those of the task instance that runs now."""
        ti = context["ti"]
        # clearing raises `max_tries` by the tries so far
        first = max(1, int(getattr(ti, "max_tries", 0) or 0) - (task.retries or 0) + 1)
        return cls(run_ids(context), first, _begun(context))

    def __contains__(self, run: object) -> bool:
        ids = self._ids
        return (
            isinstance(run, RunRef)
            and (run.dag_id, run.run_id, run.task_id, run.map_index)
            == (ids.dag_id, ids.run_id, ids.task_id, ids.map_index)
            and run.try_number >= self._first
            and run.started is not None
            and run.started >= self._begun
        )
