"""Which Spark a connection means, and what is refused before anything starts."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from airflow_provider_streams.errors import InvalidRequest, PreflightFailed, TaskEnded
from airflow_provider_streams.hooks import spark as launchers
from airflow_provider_streams.model.plan import PlanRequest
from airflow_provider_streams.model.window import Window
from airflow_provider_streams.spark import embedded, job, preflight
from airflow_provider_streams.spark.spec import JobSpec
from airflow_provider_streams.testing.fake import EPOCH, FakeSource, FakeSystem


def connection(conn_type: str, host: str = "127.0.0.1", **extra: str) -> SimpleNamespace:
    return SimpleNamespace(conn_type=conn_type, host=host, password=None, extra_dejson=extra)


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> dict[str, SimpleNamespace]:
    known: dict[str, SimpleNamespace] = {}
    monkeypatch.setattr(launchers, "_connection", lambda conn_id: known[conn_id])
    monkeypatch.setattr(launchers, "_check_provider", lambda: None)
    return known


@pytest.fixture
def spec() -> JobSpec:
    plan = FakeSystem({}).plan(PlanRequest(FakeSource(), Window(EPOCH, EPOCH + timedelta(minutes=1)), "r"))
    return JobSpec(plan, options={"token": "hunter2"}, transform="json.decoder:JSONDecoder")


@pytest.mark.parametrize(
    ("conn_type", "launcher"),
    [
        ("spark_connect", launchers.ConnectLauncher),
        ("spark", launchers.SubmitLauncher),
        ("yarn", launchers.SubmitLauncher),
        ("k8s", launchers.SubmitLauncher),
    ],
)
def test_the_type_of_the_connection_decides(connections, conn_type: str, launcher: type) -> None:
    connections["c"] = connection(conn_type)
    assert type(launchers.launcher_for("c")) is launcher


def test_no_connection_means_spark_in_this_process() -> None:
    assert type(launchers.launcher_for(None)) is launchers.EmbeddedLauncher


def test_another_kind_of_connection_is_refused(connections) -> None:
    connections["c"] = connection("pulsar")
    with pytest.raises(InvalidRequest, match="type 'pulsar'"):
        launchers.launcher_for("c")


def test_a_driver_on_another_machine_is_refused_with_the_fix(connections) -> None:
    connections["c"] = connection("spark", **{"deploy-mode": "cluster"})
    with pytest.raises(PreflightFailed, match="deploy-mode to 'client'"):
        launchers.launcher_for("c")


def test_secrets_travel_in_the_childs_environment(connections, spec: JobSpec) -> None:
    connections["c"] = connection("spark", "local[2]")
    launcher = launchers.launcher_for("c")
    environment = launcher._environment(spec)
    assert environment["STREAMS_SECRET_TOKEN"] == "hunter2"
    assert environment["PYSPARK_PYTHON"] == environment["PYSPARK_DRIVER_PYTHON"] == sys.executable
    assert str(Path(sys.executable).parent) in environment["PATH"].split(":")
    assert environment["PYTHONPATH"].split(":")[-1] == str(Path(json.__file__).parent.parent), "the transform's folder"


def test_workers_elsewhere_keep_their_own_python(connections, spec: JobSpec, monkeypatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    connections["c"] = connection("spark", "spark://master")
    assert "PYSPARK_PYTHON" not in launchers.launcher_for("c")._environment(spec)


@pytest.mark.parametrize(
    ("conn_type", "host", "expected"),
    [
        ("spark", "local", True),
        ("spark", "local[*]", True),
        ("spark", "local[4,3]", True),
        ("spark", "local-cluster[2,1,1024]", True),
        ("spark", "localhost", False),
        ("spark", "spark://localhost", False),
        ("spark", "spark-master.svc.cluster.local", False),
        ("k8s", "https://kubernetes.default.svc.cluster.local", False),
        ("yarn", None, False),
    ],
)
def test_local_is_a_master_and_no_part_of_a_name(conn_type: str, host: str | None, *, expected: bool) -> None:
    assert launchers.is_local(connection(conn_type, host)) is expected


def test_cancelling_when_nothing_runs_does_nothing() -> None:
    launchers.cancel()


def test_cancelling_reaches_the_running_job(monkeypatch: pytest.MonkeyPatch, spec: JobSpec) -> None:
    stopped = []

    class Launcher:
        secrets = ()

        def run(self, _: JobSpec) -> str:
            launchers.cancel()
            return "receipt"

        def stop(self) -> None:
            stopped.append(self)

    monkeypatch.setattr(launchers, "launcher_for", lambda *_, **__: Launcher())
    assert launchers.launch(spec) == "receipt"
    launchers.cancel()
    assert len(stopped) == 1


def test_a_task_that_is_ended_while_spark_starts_runs_no_job(monkeypatch: pytest.MonkeyPatch, spec: JobSpec) -> None:
    ran = []

    def starts(*_: object, **__: object) -> SimpleNamespace:
        launchers.cancel()
        return SimpleNamespace(version="4")

    monkeypatch.setattr(embedded, "embedded_session", starts)
    monkeypatch.setattr(job, "run", lambda *work: ran.append(work))
    with pytest.raises(TaskEnded):
        launchers.launch(spec)
    assert ran == []


@pytest.mark.parametrize("home", [None, "/no/such/java"])
def test_a_missing_java_is_said_in_words(monkeypatch: pytest.MonkeyPatch, home: str | None) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("PATH", "/no/such/folder")
    if home is None:
        monkeypatch.delenv("JAVA_HOME", raising=False)
    else:
        monkeypatch.setenv("JAVA_HOME", home)
    with pytest.raises(PreflightFailed, match="Spark needs Java 17 or later"):
        embedded.check_parts()


def test_a_mix_of_pyspark_versions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "_installed", lambda *_: {"pyspark": "4.10.0", "pyspark-client": "4.2.0"})
    monkeypatch.setattr(embedded, "_start", lambda *_, **__: pytest.fail("a JVM would be started"))
    with pytest.raises(PreflightFailed, match=r"pyspark 4\.10\.0 and pyspark-client 4\.2\.0") as caught:
        embedded.embedded_session()
    assert str(caught.value).endswith(
        f"Run: {sys.executable} -m pip install --force-reinstall --no-deps pyspark==4.2.0 pyspark-client==4.2.0"
    )


@pytest.mark.parametrize("conn_type", ["spark", "spark_connect"])
def test_a_mix_of_pyspark_versions_is_refused_before_a_spark_is_reached(connections, monkeypatch, conn_type) -> None:
    connections["c"] = connection(conn_type)
    monkeypatch.setattr(preflight, "_installed", lambda *_: {"pyspark": "4.3.0", "pyspark-client": "4.2.0"})
    with pytest.raises(PreflightFailed, match="pip install"):
        launchers.launcher_for("c")


def test_another_spark_than_this_pyspark_is_refused() -> None:
    import pyspark

    preflight.check_driver(SimpleNamespace(version=f"{pyspark.__version__}-vendor-3"))
    with pytest.raises(PreflightFailed, match=r"Spark it talks to is 3\.5\.9"):
        preflight.check_driver(SimpleNamespace(version="3.5.9"))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"missing": ["pyarrow"], "pyspark": "4.2.0", "python": "/usr/bin/python3"}, "has no module pyarrow"),
        ({"missing": [], "pyspark": "4.0.0", "python": "/usr/bin/python3"}, r"workers run PySpark 4\.0\.0"),
    ],
)
def test_a_worker_that_cannot_read_is_refused(answer, message: str) -> None:
    with pytest.raises(PreflightFailed, match=message):
        preflight._judge(answer)
