"""Who may see what: a reader's windows are as readable as the DAGs that read them, by Airflow's own rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.configuration import conf
from airflow.models.dag import DagModel
from fastapi import Depends

from airflow_provider_streams.journal.overview import ReaderOverview


class Access:
    """The rights of one user during one request."""

    def __init__(self, user: BaseUser) -> None:
        self._user = user

    def readable(self, dag_ids: Iterable[str]) -> set[str]:
        """Those of the DAGs that the user may read; the DAG may be deleted, or be none (`cli`)."""
        manager = get_auth_manager()
        wanted = set(dag_ids)
        readable = wanted & manager.get_authorized_dag_ids(user=self._user, method="GET")
        if conf.getboolean("core", "multi_team"):
            # whose team a DAG belonged to that is no more, nobody knows
            return readable
        gone = {dag_id for dag_id in wanted - readable if DagModel.get_current(dag_id) is None}
        return readable | set(manager.filter_authorized_dag_ids(dag_ids=gone, user=self._user, method="GET"))

    def visible(self, found: list[ReaderOverview]) -> list[ReaderOverview]:
        """The readers of which the user may read a DAG, without the runs of other DAGs."""
        readable = self.readable({name for one in found for name in (*one.by_dag, _own_dag(one))})
        return [
            one.of_dags(readable)
            for one in found
            if readable & one.by_dag.keys() or (not one.by_dag and _own_dag(one) in readable)
        ]


def _own_dag(one: ReaderOverview) -> str:
    """Of a reader that has only planned so far: by default it is called `dag_id.task_id`."""
    return one.reader.rpartition(".")[0] or one.reader


def access_of(user: GetUserDep) -> Access:
    """The dependency behind `AccessDep`."""
    return Access(user)


AccessDep = Annotated[Access, Depends(access_of)]
