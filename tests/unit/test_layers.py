"""Who may import whom, read from the source; and what the package's front door loads."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import airflow_provider_streams
from airflow_provider_streams.spark.launch.py_files import EXECUTOR_FILES
from airflow_provider_streams.systems.registry import SYSTEMS

PACKAGE = "airflow_provider_streams"
ROOT = Path(airflow_provider_streams.__file__).parent

WITHOUT_AIRFLOW = {
    "background_work": set(),
    "redaction": set(),
    "errors": {"redaction"},
    "model": {"errors"},
    "formats": {"errors", "redaction", "model"},
    "systems": {"background_work", "errors", "redaction", "model", "formats"},
    "lake": {"background_work", "errors", "redaction", "model"},
    "spark": {"errors", "redaction", "model", "systems", "formats", "lake"},
    "journal": {"errors", "redaction", "model"},
    "windows": {"errors", "model", "systems", "journal", "lake", "spark"},
}
"""Each package that knows nothing of Airflow, with the packages that it may import."""

_HOOKS = {*WITHOUT_AIRFLOW, "airflow_features", "connections", "hooks", "airflow_runtime"}
WITH_AIRFLOW = {
    "airflow_features": {"model"},
    "retry": {"airflow_features", "errors"},
    "template_fields": {"errors", "model", "systems"},
    "template_rendering": {"errors", "model", "retry", "systems", "template_fields"},
    "timetables": {"airflow_features", "errors", "model", "windows"},
    "connections": {*WITHOUT_AIRFLOW, "airflow_features"},
    "hooks": {*WITHOUT_AIRFLOW, "airflow_features", "connections"},
    "airflow_runtime": {*WITHOUT_AIRFLOW, "airflow_features", "connections", "hooks"},
    "triggers": {*_HOOKS, "retry", "template_fields", "timetables"},
    "sensors": {*_HOOKS, "retry", "template_rendering", "timetables", "triggers"},
    "operators": {*_HOOKS, "doctor", "retry", "template_rendering", "timetables", "triggers"},
    "queues": {"triggers"},
    "plugin": {*_HOOKS, "timetables"},
    "doctor": _HOOKS,
    "cli": {*_HOOKS, "doctor", "template_fields", "timetables"},
}
"""The same of the packages that import Airflow."""

FOUND_BY_NAME = {"asset_uris": set(), "provider_info": {"airflow_features", "systems"}, "testing": {*WITHOUT_AIRFLOW}}
"""The same of what Airflow and tests find by name."""

MAY_IMPORT = {**WITHOUT_AIRFLOW, **WITH_AIRFLOW, **FOUND_BY_NAME}

SHIPPED = (*(name.removesuffix(".py") for name in EXECUTOR_FILES if name != "__init__.py"), "testing.fake")
"""What runs on executors, which have no Airflow."""

OF_ONE_SYSTEM = {
    "__init__.py",
    "cli/commands/cuts.py",
    "hooks/schema_registry.py",
    "operators/epoch.py",
    "systems/registry.py",
    "windows/plan/pravega_epoch.py",
}
"""The public imports, the registry of systems, and what only one system can do (roll an epoch, list scaling events).

Others have the system in their name.
"""

CLIENTS = {"pulsar", "grpc", "google", "httpx", "pyspark", "pyarrow", "numpy", "sqlalchemy", "airflow", "socket", "ssl"}


def modules(package: str) -> list[Path]:
    path = ROOT.joinpath(*package.split("."))
    return sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]


@cache
def imports(file: Path) -> tuple[str, ...]:
    """Every imported module of a file, wherever in it, except under `if TYPE_CHECKING`."""
    return tuple(_imports(ast.parse(file.read_text())))


def _imports(tree: ast.Module) -> Iterator[str]:
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            skipped.update(id(inner) for inner in ast.walk(node))
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def packages_of(file: Path) -> set[str]:
    """The packages within this one that a file imports."""
    parts = (name.split(".") for name in imports(file))
    return {part[1] for part in parts if part[0] == PACKAGE and len(part) > 1} - {"version"}


def test_every_package_has_its_layer_and_none_imports_back_up() -> None:
    files = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in ROOT.rglob("*.py")}
    assert files - {"__init__", "version"} == set(MAY_IMPORT)
    TopologicalSorter(MAY_IMPORT).prepare()  # raises CycleError, which names one


@pytest.mark.parametrize("package", WITHOUT_AIRFLOW)
def test_what_is_done_with_windows_knows_nothing_of_airflow(package: str) -> None:
    wrong = [file for file in modules(package) if any(name.split(".")[0] == "airflow" for name in imports(file))]
    assert wrong == []


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_package_imports_only_packages_below_it(package: str) -> None:
    allowed = MAY_IMPORT[package] | {package}
    wrong = {str(file.relative_to(ROOT)): packages_of(file) - allowed for file in modules(package)}
    assert {file: packages for file, packages in wrong.items() if packages} == {}


@pytest.mark.parametrize("package", SHIPPED)
def test_what_is_shipped_to_executors_never_imports_airflow(package: str) -> None:
    wrong = [file for file in modules(package) if any(name.split(".")[0] == "airflow" for name in imports(file))]
    assert wrong == []


def test_what_serves_every_system_knows_none_of_them() -> None:
    for system in SYSTEMS:
        folder = f"{PACKAGE}.systems.{system}."
        knowing = {file.relative_to(ROOT).as_posix() for file in ROOT.rglob("*.py") if knows(file, folder)}
        assert {name for name in knowing if system not in name and not name.startswith("testing/")} <= OF_ONE_SYSTEM


def knows(file: Path, folder: str) -> bool:
    return any(f"{name}.".startswith(folder) for name in imports(file)) or folder in file.read_text()


def test_the_model_imports_no_client() -> None:
    wrong = {file.name: {name.split(".")[0] for name in imports(file)} & CLIENTS for file in modules("model")}
    assert {file: clients for file, clients in wrong.items() if clients} == {}


def test_only_spark_and_testing_import_pyspark_at_the_top() -> None:
    """Airflow's side imports PySpark in the functions that use it, if at all: DAG files are parsed all the time."""
    wrong = []
    for file in ROOT.rglob("*.py"):
        if file.relative_to(ROOT).parts[0] == "spark":
            continue
        body = ast.parse(file.read_text()).body
        top = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
        wrong += [file for node in top if "pyspark" in ast.unparse(node)]
    assert wrong == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports inside of functions count too; those for annotations do not."""
    files = {".".join((PACKAGE, *file.relative_to(ROOT).with_suffix("").parts)): file for file in ROOT.rglob("*.py")}
    files = {name.removesuffix(".__init__"): file for name, file in files.items()}
    needs = {
        module: {name if name in files else name.rpartition(".")[0] for name in imports(file)} & files.keys() - {module}
        for module, file in files.items()
    }
    TopologicalSorter(needs).prepare()  # raises CycleError, which names one


@pytest.mark.parametrize(
    "statement",
    [
        f"import {PACKAGE}",
        f"from {PACKAGE}.provider_info import get_provider_info; get_provider_info()",
        f"import {PACKAGE}.spark",
        f"from {PACKAGE} import ParquetSink, PulsarSource, Window",
    ],
)
def test_the_front_door_loads_nothing_heavy(statement: str) -> None:
    code = f"{statement}\nimport sys\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"airflow", "pyspark", "pyarrow", "numpy", "pandas", "grpc", "httpx", "sqlalchemy", "pulsar", "alembic"}
    assert heavy & set(done.stdout.split()) == set()


def test_what_asks_pulsars_brokers_loads_no_arrow() -> None:
    """Planning looks at headers of entries, and makes no column of them."""
    code = f"import sys, {PACKAGE}.systems.pulsar.client.wire.broker_client; print('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
