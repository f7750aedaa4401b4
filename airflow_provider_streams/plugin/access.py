"""Who may see and do what: a reader's windows are as readable as the DAGs that read them, by Airflow's own rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.base_auth_manager import ResourceMethod
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.configuration import conf
from airflow.models.dag import DagModel
from fastapi import Depends

from airflow_provider_streams.journal.reader_overview import ReaderOverview


class Access:
    """The rights of one user during one request."""

    def __init__(self, user: BaseUser) -> None:
        self._user = user

    @property
    def name(self) -> str:
        """The user's, for logs."""
        return self._user.get_name()

    def readable(self, dag_ids: Iterable[str]) -> set[str]:
        """Those of the DAGs that the user may read; the DAG may be deleted, or be none (`cli`)."""
        return self._allowed(dag_ids, "GET")

    def visible(self, found: list[ReaderOverview]) -> list[ReaderOverview]:
        """The readers of which the user may read a DAG, without the runs of other DAGs."""
        readable = self.readable({name for one in found for name in dags_of(one)})
        return [
            one.of_dags(readable)
            for one in found
            if readable & one.by_dag.keys() or (not one.by_dag and _own_dag(one) in readable)
        ]

    def may_edit(self, one: ReaderOverview) -> bool:
        """Whether the user may edit every DAG that read for a reader."""
        wanted = dags_of(one)
        return self._allowed(wanted, "PUT") == wanted

    def may_run(self, dag_id: str) -> bool:
        """Whether the user may start runs of a DAG: as Airflow's own routes ask."""
        details = DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id))
        return get_auth_manager().is_authorized_dag(
            method="POST", access_entity=DagAccessEntity.RUN, details=details, user=self._user
        )

    def _allowed(self, dag_ids: Iterable[str], method: ResourceMethod) -> set[str]:
        manager = get_auth_manager()
        wanted = set(dag_ids)
        allowed = wanted & manager.get_authorized_dag_ids(user=self._user, method=method)
        if conf.getboolean("core", "multi_team", fallback=False):
            # the team of a deleted DAG is not known
            return allowed
        gone = {dag_id for dag_id in wanted - allowed if DagModel.get_current(dag_id) is None}
        return allowed | set(manager.filter_authorized_dag_ids(dag_ids=gone, user=self._user, method=method))


def dags_of(one: ReaderOverview) -> set[str]:
    """The DAGs that read for a reader; of one that has only planned so far, the one of its name."""
    return set(one.by_dag) or {_own_dag(one)}


def _own_dag(one: ReaderOverview) -> str:
    """By default a reader is called `dag_id.task_id`."""
    return one.reader.rpartition(".")[0] or one.reader


def access_of(user: GetUserDep) -> Access:
    """The dependency of `AccessDep`."""
    return Access(user)


AccessDep = Annotated[Access, Depends(access_of)]
