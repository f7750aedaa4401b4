"""The file that already has a DAG's name: in Airflow's DAG folder, or as Airflow's database knows it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from airflow.providers.common.compat.sdk import conf


def file_in_folder(dag_id: str, new: Path) -> Path | None:
    """A file of Airflow's DAG folder with a DAG of this name; None: there is none.

    Files are read, and none is run: a name that a file computes is known to the database only.

    Args:
        dag_id: the name.
        new: the file that was written just now, which does not count.
    """
    files = (file for file in _files(Path(conf.get("core", "dags_folder"))) if not _same(file, new))
    return next((file for file in files if _has_dag(file, dag_id)), None)


def file_in_database(dag_id: str, new: Path) -> Path | None:
    """The file of the DAG that Airflow's database has by this name; arguments and answer as for the folder."""
    from airflow.models.dag import DagModel  # noqa: PLC0415 - Airflow's own side

    try:
        known = DagModel.get_current(dag_id)
    except Exception:  # noqa: BLE001 - there may be no database yet, and the file is of use without
        return None
    if known is None or known.is_stale or not known.fileloc or _same(Path(known.fileloc), new):
        return None
    return Path(known.fileloc)


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(folder.rglob("*.py"))
    except OSError:
        return []


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


def _has_dag(file: Path, dag_id: str) -> bool:
    try:
        text = file.read_text(encoding="utf-8")
        return dag_id in text and dag_id in _dag_ids(ast.parse(text))
    except (OSError, ValueError, SyntaxError, RecursionError):
        return False  # Airflow finds no DAG in it either


def _dag_ids(tree: ast.Module) -> Iterator[str]:
    """The names of DAGs that a file spells out: of calls of `DAG`, and of functions with the decorator `dag`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) in {"DAG", "dag"}:
            given = (*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "dag_id"))
            yield from (one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str))
        elif isinstance(node, ast.FunctionDef):
            yield from (node.name for one in node.decorator_list if _takes_the_functions_name(one))


def _takes_the_functions_name(decorator: ast.expr) -> bool:
    if not isinstance(decorator, ast.Call):
        return _name(decorator) == "dag"
    return (
        _name(decorator.func) == "dag"
        and not decorator.args
        and all(keyword.arg != "dag_id" for keyword in decorator.keywords)
    )


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
