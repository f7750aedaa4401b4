"""A task as its DAG file writes it. The serialized DAG in Airflow's database does not know our sources and sinks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from airflow_provider_streams.airflow_features import dag_bags
from airflow_provider_streams.errors import InvalidRequest, as_clause
from airflow_provider_streams.template_fields import taken


@dataclass(frozen=True, slots=True)
class LoadedTask:
    """A reading task of a DAG."""

    task: Any
    """The operator."""
    timetable: Any
    dag: Any

    def rendered(self, name: str) -> Any:
        """An argument's value, as far as the DAG alone can tell.

        Raises:
            InvalidRequest: only a run can, or its template gives no such value.
        """
        value = getattr(self.task, name)
        if value is None or (isinstance(value, str) and "{" not in value):
            return value
        known = {"dag": self.dag, "task": self.task, "params": self.dag.params.dump()}
        try:
            found = self.task.render_template(value, known, self.task.get_template_env())
        except Exception as error:
            raise InvalidRequest(
                f"{self.dag.dag_id}.{self.task.task_id}: {_shown(value)} can be rendered only in a run ({error}): "
                "give it as an option, like --reader"
            ) from error
        return taken(type(self.task).__name__, name, found)


def load_task(dag_id: str, task_id: str, map_index: int | None) -> LoadedTask:
    """Load one DAG's file, and take a task that reads windows from it.

    Args:
        dag_id: the DAG.
        task_id: its task.
        map_index: which one, of a task that is mapped over values written in the DAG.

    Raises:
        InvalidRequest: there is none, its file has an error, or it does not read windows.
    """
    dag = _load_dag(dag_id)
    try:
        task = dag.get_task(task_id)
    except Exception as error:
        raise InvalidRequest(
            f"DAG {dag_id!r} has no task {task_id!r}: it has {', '.join(sorted(dag.task_ids))}"
        ) from error
    if getattr(task, "is_mapped", False):
        task = _unmapped(task, map_index)
    if not hasattr(task, "source") or not hasattr(task, "sink"):
        raise InvalidRequest(f"{dag_id}.{task_id} does not read windows: name one like ReadWindowOperator")
    return LoadedTask(task, dag.timetable, dag)


def _load_dag(dag_id: str) -> Any:
    from airflow.dag_processing.bundles.manager import DagBundlesManager  # noqa: PLC0415 - Airflow's own side
    from airflow.models.dag import DagModel  # noqa: PLC0415
    from airflow.sdk.definitions._internal.dag_parsing_context import (  # noqa: PLC0415
        _airflow_parsing_context_manager,
    )

    model = DagModel.get_current(dag_id)
    if model is None or model.bundle_name is None or model.relative_fileloc is None:
        raise InvalidRequest(f"Airflow knows no DAG {dag_id!r}: see `airflow dags list`")
    bundle = DagBundlesManager().get_bundle(model.bundle_name)  # type: ignore[no-untyped-call]  # not annotated
    bundle.initialize()
    file = bundle.path / model.relative_fileloc
    with _airflow_parsing_context_manager(dag_id=dag_id):
        bag = dag_bags().BundleDagBag(dag_folder=str(file), bundle_path=bundle.path, bundle_name=bundle.name)
    if dag_id not in bag.dags:
        causes = (
            "; ".join(as_clause(text.strip().splitlines()[-1]) for text in bag.import_errors.values())
            or "it is not in there"
        )
        raise InvalidRequest(f"DAG {dag_id!r} cannot be loaded from {file}: {causes}")
    return bag.dags[dag_id]


def _unmapped(task: Any, map_index: int | None) -> Any:
    """The operator of one index, where the values are written in the DAG."""
    value = task.expand_input.value
    try:
        maps = list(value) if isinstance(value, list | tuple) else _products(value)
        if map_index is None:
            raise InvalidRequest(f"{task.task_id} is mapped {len(maps)} times: say which one with --map-index")
        return task.unmap(dict(maps[map_index]))
    except (TypeError, IndexError, KeyError, AttributeError) as error:
        raise InvalidRequest(
            f"{task.task_id} has no such map index, or is mapped over values that only a run knows: "
            "name its source and --reader instead"
        ) from error


def _products(values: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """What each mapped instance gets, in Airflow's order: the last name varies first."""
    return [dict(zip(values, one, strict=True)) for one in product(*values.values())]


def _shown(value: object) -> str:
    """A text as it stands in the DAG; settings may hold secrets."""
    return repr(value) if isinstance(value, str) else f"a {type(value).__name__} with templates"
