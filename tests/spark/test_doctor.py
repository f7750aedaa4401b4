"""What a small job of doctor sees of driver and executors: by spark-submit, in a process of its own, over Connect."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_streams.doctor.spark import check_spark

pytestmark = pytest.mark.timeout(900)

_WITHOUT_PYARROW = """\
from importlib.machinery import PathFinder

found = PathFinder.find_spec


def find_spec(name, path=None, target=None):
    return None if name.partition(".")[0] == "pyarrow" else found(name, path, target)


PathFinder.find_spec = find_spec
"""


@pytest.fixture(autouse=True)
def cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection whose master is on this machine."""
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps({"conn_type": "spark", "host": "local[1]"}))
    folder = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def python_without_pyarrow(tmp_path: Path) -> str:
    (tmp_path / "sitecustomize.py").write_text(_WITHOUT_PYARROW)
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path}:"$PYTHONPATH" exec {sys.executable} "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


@pytest.mark.slow
def test_a_small_job_says_what_driver_and_executors_have() -> None:
    found = {one.check: one for one in check_spark("cluster", {"driver_memory": "512m"})}
    assert {one.level for one in found.values()} <= {"ok", "warning"}
    assert found["launch"].says == "spark-submit in client mode to the master local[1]"
    assert "runs its driver on Java" in found["Java"].says
    assert found["executors"].says.startswith("a small job ran: Python")


@pytest.mark.slow
def test_executors_without_pyarrow_are_named(python_without_pyarrow: str) -> None:
    conf = {"spark.pyspark.python": python_without_pyarrow, "spark.pyspark.driver.python": sys.executable}
    found = {one.check: one for one in check_spark("cluster", {"driver_memory": "512m", "conf": conf})}
    assert found["executors"].level == "error"
    assert "has no module pyarrow" in found["executors"].says
    assert "PYSPARK_PYTHON" in found["executors"].next_step


@pytest.mark.slow
def test_a_class_of_a_catalog_whose_jar_is_missing_is_named(tmp_path: Path) -> None:
    conf = {
        "spark.sql.catalog.prod": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.session": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
    }
    settings = {"driver_memory": "512m", "jars": f"{tmp_path}/gone.jar", "conf": conf}
    found = [one for one in check_spark("cluster", settings) if one.level == "error"]
    assert [one.check for one in found] == ["files", "classes"]
    assert "Spark has no class org.apache.iceberg.spark.SparkCatalog, which the setting" in found[1].says


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "check", "says"),
    [
        ({"packages": "com.example.nope:nope:1.0"}, "job", "com.example.nope#nope;1.0"),
        ({"driver_memory": "4x"}, "job", "Invalid maximum heap size: -Xmx4x"),
        ({"driver_memory": "512m", "conf": {"spark.executor.memory": "99"}}, "job", "Executor memory 99 must be"),
        ({"driver_memory": "512m", "conf": {"spark.plugins": "com.example.Nope"}}, "job", "com.example.Nope"),
    ],
    ids=["a package", "a size", "too little memory", "a plugin"],
)
@pytest.mark.parametrize("conn_id", ["cluster", None])
def test_what_keeps_spark_from_starting_is_named(conn_id, settings, check, says) -> None:
    (found,) = [one for one in check_spark(conn_id, settings) if one.level == "error"]
    assert (found.check, says in found.says) == (check, True), found.says


@pytest.mark.slow
def test_spark_in_the_task_is_examined_in_a_process_of_its_own() -> None:
    conf = {"spark.sql.catalog.prod": "org.apache.iceberg.spark.SparkCatalog"}
    (found,) = [one for one in check_spark(None, {"conf": conf}) if one.level == "error"]
    assert "Spark has no class org.apache.iceberg.spark.SparkCatalog" in found.says
    assert not [one for one in check_spark(None, None) if one.level == "error"], "other settings, in the same process"


@pytest.fixture
def gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections to a master and a Spark Connect server that do not run."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for name, kind, host in (("MASTER", "spark", "spark://127.0.0.1"), ("SERVER", "spark_connect", "127.0.0.1")):
        monkeypatch.setenv(f"AIRFLOW_CONN_{name}", json.dumps({"conn_type": kind, "host": host, "port": port}))


_ERRORS = """
import sys
from airflow_provider_streams.doctor.spark import check_spark
print(*(f"{one.check}: {one.says} {one.next_step}" for one in check_spark(sys.argv[1], None) if one.level == "error"))
"""


@pytest.mark.slow
@pytest.mark.usefixtures("gone")
@pytest.mark.parametrize("conn_id", ["master", "server"])
def test_a_spark_that_does_not_run_is_named(conn_id: str) -> None:
    """In a process of its own: a session of Spark Connect leaves variables in it."""
    program = [sys.executable, "-c", _ERRORS, conn_id]
    said = subprocess.run(program, capture_output=True, text=True, check=True, timeout=600).stdout.splitlines()[-1]
    assert said.startswith("job: ")
    assert "is not available" in said
    assert "See that this Spark runs" in said


@pytest.mark.usefixtures("gone", "spark", "environment")
def test_spark_connect_next_to_a_spark_of_the_process_is_refused_in_words() -> None:
    (found,) = [one for one in check_spark("server", None) if one.level == "error"]
    assert "the Spark Connect server of 'server' cannot be reached from this process" in found.says
    assert "`airflow dags test`" in found.says


@pytest.fixture
def environment() -> Iterator[None]:
    """The process's, as it was: PySpark sets variables for Spark Connect that keep others from starting Spark."""
    before = dict(os.environ)
    yield
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
