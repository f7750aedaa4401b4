"""Which Spark a connection means, and what is refused before anything starts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.sdk import Connection

from airflow_provider_streams.airflow_runtime import spark_launch as launchers
from airflow_provider_streams.airflow_runtime import spark_session_launchers, spark_submit
from airflow_provider_streams.errors import (
    InvalidRequest,
    PreflightFailed,
    RedirectRefused,
    SparkUnavailable,
    TaskCancelled,
)
from airflow_provider_streams.model.plan.plan import PlanRequest
from airflow_provider_streams.model.plan.receipt import Receipt
from airflow_provider_streams.model.sinks.landing import Landed
from airflow_provider_streams.model.sinks.untouched_table import left_untouched, mark_untouched
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.spark.job import job
from airflow_provider_streams.spark.job.job_spec import JobSpec, WindowSpec
from airflow_provider_streams.spark.launch import embedded, java_search, preflight, spark_submit_program
from airflow_provider_streams.spark.launch.program_result import read_result
from airflow_provider_streams.spark.settings.spark_settings import SparkSettings
from airflow_provider_streams.testing.fake import EPOCH, FakeSource, FakeSystem
from tests.unit.spark.settings.test_spark_home import a_spark

LANDED = Landed(Receipt("f" * 32, (), 1.0, "complete"))


def connection(conn_type: str, host: str = "127.0.0.1", **extra: str) -> Connection:
    return Connection(conn_id="c", conn_type=conn_type, host=host, extra=json.dumps(extra))


def test_a_driver_program_whose_python_lacks_a_module_names_both(tmp_path: Path) -> None:
    files = spark_submit._Files(tmp_path, "spark_submit_program")
    files.write({}, SparkSettings({}))
    package = str(Path(spark_submit.__file__).parents[2])
    bare = [sys.executable, "-S", str(files.program), *files.arguments]
    done = subprocess.run(bare, env={"PYTHONPATH": package}, capture_output=True, check=False)
    assert done.returncode == 1, done.stderr
    with pytest.raises(
        PreflightFailed, match=r"the Spark driver program, .*, has no module \w+: install it there"
    ) as raised:
        read_result(files.result, "spark-submit")
    assert left_untouched(raised.value)


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_what_a_driver_program_gets_is_its_owners_alone(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        files = spark_submit._Files(tmp_path, "spark_submit_program")
        files.write({}, SparkSettings({"spark.hadoop.fs.s3a.secret.key": "hunter2"}))
    finally:
        os.umask(before)
    assert {file.stat().st_mode & 0o777 for file in (files.spec, files.properties)} == {0o600}


@pytest.mark.parametrize("untouched", [False, True])
def test_a_child_says_whether_it_left_the_table_untouched(monkeypatch, tmp_path, *, untouched: bool):
    def fail(_data):
        error = InvalidRequest("no quarantine")
        if untouched:
            mark_untouched(error)
        raise error

    given, result = tmp_path / "spec.json", tmp_path / "result.json"
    given.write_text("{}")
    monkeypatch.setattr(spark_submit_program, "_main", fail)
    assert spark_submit_program.main(["--spec", str(given), "--result", str(result)]) == 1
    with pytest.raises(InvalidRequest, match="no quarantine") as caught:
        read_result(result, "spark-submit")
    assert left_untouched(caught.value) == untouched


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> dict[str, Connection]:
    known: dict[str, Connection] = {}
    monkeypatch.setattr(launchers, "_connection", lambda conn_id: known[conn_id])
    return known


@pytest.fixture
def spec() -> WindowSpec:
    plan = FakeSystem({}).plan(PlanRequest(FakeSource(), Window(EPOCH, EPOCH + timedelta(minutes=1)), "r"))
    return WindowSpec(plan, options={"token": "hunter2"}, transform="json.decoder:JSONDecoder")


@pytest.mark.parametrize(
    ("conn_type", "launcher"),
    [
        ("spark_connect", spark_session_launchers.ConnectLauncher),
        ("spark", spark_submit.SubmitLauncher),
        ("yarn", spark_submit.SubmitLauncher),
        ("k8s", spark_submit.SubmitLauncher),
    ],
)
def test_the_type_of_the_connection_decides(connections, conn_type: str, launcher: type) -> None:
    connections["c"] = connection(conn_type)
    assert type(launchers.launcher_for("c")) is launcher


@pytest.mark.parametrize(("conn_type", "host"), [("k8s", "https://h"), ("spark", "k8s://https://h")])
def test_kubernetes_needs_a_package_that_is_named(monkeypatch, conn_type: str, host: str) -> None:
    monkeypatch.setattr(spark_submit.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(PreflightFailed, match="pip install apache-airflow-providers-cncf-kubernetes"):
        spark_submit.check_kubernetes("c", connection(conn_type, host))
    spark_submit.check_kubernetes("c", connection("spark", "spark://k8s-master"))


@pytest.fixture
def submitting(monkeypatch, tmp_path: Path, connections):
    """Runs a spark-submit that prints this and fails."""

    def submit(output: str) -> None:
        program = tmp_path / "spark-submit"
        program.write_text(f"#!/bin/sh\necho '{output}'\nexit 1\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        connections["c"] = connection("spark", "local[1]")
        monkeypatch.setenv("AIRFLOW_CONN_C", json.dumps({"conn_type": "spark", "host": "local[1]"}))
        launchers.examine("c")

    return submit


def test_the_reason_of_spark_submit_is_in_the_error(submitting) -> None:
    with pytest.raises(SparkUnavailable, match=r"connection 'c' .*status 1 \(RuntimeException: the master left\)"):
        submitting('Exception in thread "main" java.lang.RuntimeException: the master left')


def test_a_jvm_that_refuses_its_options_is_not_started_again(submitting) -> None:
    with pytest.raises(PreflightFailed, match=r"does not start: .*\(Invalid maximum heap size: -Xmx4x\)"):
        submitting("Invalid maximum heap size: -Xmx4x\nError: Could not create the Java Virtual Machine.")


def test_no_connection_means_spark_in_this_process() -> None:
    assert type(launchers.launcher_for(None)) is spark_session_launchers.EmbeddedLauncher


def test_another_kind_of_connection_is_refused(connections) -> None:
    connections["c"] = connection("pulsar")
    with pytest.raises(InvalidRequest, match="type 'pulsar'"):
        launchers.launcher_for("c")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"conn_type": "pulsar", "host": "spark://master"}, "is of type 'pulsar': reading needs one of type 'spark'"),
        ({"conn_type": "spark_connect", "host": "sc://h/path"}, "host holds more than a name"),
        ({"conn_type": "spark_connect", "host": "sc://h:15002/;token=canary-5a"}, "host holds more than a name"),
        ({"conn_type": "spark_connect", "host": "https://h"}, "host has another scheme than sc://"),
        ({"conn_type": "spark_connect"}, "host is empty"),
        ({"conn_type": "spark_connect", "host": "h", "schema": "x"}, "does not use the field schema"),
        ({"conn_type": "spark_connect", "host": "h", "extra": {"use_tls": True}}, "did you mean 'use_ssl'"),
        ({"conn_type": "spark", "host": "https://h"}, "host has a scheme that no master has: write spark://HOST"),
        ({"conn_type": "spark", "host": "sc://h"}, "with the type 'spark_connect'"),
        ({"conn_type": "spark", "host": "local[1]", "password": "canary-5a"}, "does not use the field password"),
        ({"conn_type": "yarn", "login": "canary-5a"}, "does not use the field login"),
        ({"conn_type": "spark", "host": "local[1]", "extra": {"deploy_mode": "cluster"}}, "did you mean 'deploy-mode'"),
    ],
)
def test_what_the_spark_provider_would_misread_is_refused_by_name(monkeypatch, given, said: str) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_C", json.dumps(given))
    for ask in (launchers.launch_method, launchers.launcher_for):
        with pytest.raises(InvalidRequest, match=rf"connection 'c'.*{re.escape(said)}") as caught:
            ask("c")
        assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        {"conn_type": "spark", "host": "spark://master", "port": 7077},
        {"conn_type": "spark", "host": "k8s://https://h:443"},
        {"conn_type": "k8s", "host": "https://h", "port": 443, "extra": {"namespace": "n"}},
        {"conn_type": "spark_connect", "host": "sc://h", "port": 15002, "login": "u", "password": "canary-5a"},
    ],
)
def test_what_the_spark_provider_takes_is_accepted(monkeypatch, given) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_C", json.dumps(given))
    assert str(given.get("host", "")).rpartition("//")[2] in launchers.launch_method("c")


def test_an_extra_that_nothing_reads_is_told(monkeypatch, caplog) -> None:
    given = {"conn_type": "spark", "host": "local[1]", "extra": {"colour": "canary-5a"}}
    monkeypatch.setenv("AIRFLOW_CONN_C", json.dumps(given))
    launchers.launch_method("c")
    assert "nothing here reads the extra 'colour'" in caplog.text
    assert "canary" not in caplog.text


def test_a_driver_on_another_machine_is_refused_with_the_fix(connections) -> None:
    connections["c"] = connection("spark", **{"deploy-mode": "cluster"})
    with pytest.raises(PreflightFailed, match="deploy-mode to 'client'"):
        launchers.launcher_for("c")


def test_secrets_travel_in_the_childs_environment(connections, spec: WindowSpec) -> None:
    connections["c"] = connection("spark", "local[2]")
    launcher = launchers.launcher_for("c")
    environment = launcher._environment(JobSpec((spec,)))
    assert environment["STREAMS_SECRET_TOKEN"] == "hunter2"
    assert environment["PYSPARK_PYTHON"] == environment["PYSPARK_DRIVER_PYTHON"] == sys.executable
    assert str(Path(sys.executable).parent) in environment["PATH"].split(":")
    assert environment["PYTHONPATH"].split(":")[-1] == str(Path(json.__file__).parent.parent), "the transform's folder"


def test_what_a_launched_job_says_lacks_secrets_alone(monkeypatch, spec: WindowSpec) -> None:
    said = str(RedirectRefused("http://catalog:8181", "http://10.0.0.7:26663", "its answer sets s3.endpoint"))
    table = {"uri": "http://catalog:8181/iceberg", "s3.secret-access-key": "hunter3"}

    def run(_job):
        raise RuntimeError(f"{said} hunter2 hunter3 hunter4")

    launcher = SimpleNamespace(run=run, secrets=("hunter4",), cancel=lambda: None)
    monkeypatch.setattr(launchers, "launcher_for", lambda *_: launcher)
    monkeypatch.setattr(launchers, "_mask", lambda _: None)
    with pytest.raises(Exception, match=re.escape(f"{said} *** *** ***")):
        launchers.launch(JobSpec((replace(spec, table=table),)), "c")


def test_workers_elsewhere_keep_their_own_python(connections, spec: WindowSpec, monkeypatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    connections["c"] = connection("spark", "spark://master")
    assert "PYSPARK_PYTHON" not in launchers.launcher_for("c")._environment(JobSpec((spec,)))


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
    assert spark_submit.is_local(connection(conn_type, host)) is expected


def test_cancelling_when_nothing_runs_does_nothing() -> None:
    launchers.cancel()


def test_cancelling_reaches_the_running_job(monkeypatch: pytest.MonkeyPatch, spec: WindowSpec) -> None:
    stopped = []

    class Launcher:
        secrets = ()

        def run(self, _: JobSpec) -> list[Landed]:
            launchers.cancel()
            return [LANDED]

        def stop(self) -> None:
            stopped.append(self)

    monkeypatch.setattr(launchers, "launcher_for", lambda *_, **__: Launcher())
    assert launchers.launch(JobSpec((spec,))) == [LANDED]
    launchers.cancel()
    assert len(stopped) == 1


def test_a_task_that_is_ended_while_spark_starts_runs_no_job(monkeypatch: pytest.MonkeyPatch, spec: WindowSpec) -> None:
    ran = []

    def starts(*_: object, **__: object) -> SimpleNamespace:
        launchers.cancel()
        return SimpleNamespace(version="4")

    monkeypatch.setattr(embedded, "embedded_session", starts)
    monkeypatch.setattr(job, "run", lambda *work: ran.append(work))
    with pytest.raises(TaskCancelled):
        launchers.launch(JobSpec((spec,)))
    assert ran == []


@pytest.mark.parametrize("home", [None, "/no/such/java"])
def test_a_missing_java_is_said_in_words(monkeypatch: pytest.MonkeyPatch, home: str | None) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("PATH", "/no/such/folder")
    if home is None:
        monkeypatch.delenv("JAVA_HOME", raising=False)
    else:
        monkeypatch.setenv("JAVA_HOME", home)
    monkeypatch.setattr(java_search, "_wheel_home", lambda: None)
    with pytest.raises(PreflightFailed, match="Java 17 or newer is needed"):
        embedded.check_parts(SparkSettings())


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


@pytest.mark.parametrize(
    ("said", "message"), [(" cluster ", "deploy mode 'cluster'"), ("remote", "'remote' is unknown")]
)
def test_a_deploy_mode_that_is_not_client_is_refused(connections, said: str, message: str) -> None:
    connections["c"] = connection("spark", "yarn", **{"deploy-mode": said})
    with pytest.raises((PreflightFailed, InvalidRequest), match=message):
        launchers.launcher_for("c")


@pytest.mark.parametrize("said", [{}, {"deploy-mode": ""}, {"deploy-mode": " client "}])
def test_client_is_the_deploy_mode_of_all_others(connections, said: dict[str, str]) -> None:
    connections["c"] = connection("spark", "yarn", **said)
    launchers.launcher_for("c")


@pytest.mark.parametrize("version", ["", "3.5.1"])
def test_spark_submit_of_no_spark_or_an_old_one_is_refused(connections, monkeypatch, tmp_path, version: str) -> None:
    connections["c"] = connection("spark", "local[2]")
    home = a_spark(tmp_path / "spark", version) if version else tmp_path / "none"
    monkeypatch.setenv("SPARK_HOME", str(home))
    with pytest.raises(PreflightFailed, match=f"{home}, which .*{version or 'does not exist'}"):
        launchers.launcher_for("c")


def test_the_defaults_of_the_spark_that_will_run_count(connections, monkeypatch, tmp_path: Path) -> None:
    """Of the spark-submit on PATH, which needs no SPARK_HOME."""
    connections["c"] = connection("spark", "local[2]")
    home = a_spark(tmp_path / "spark", "4.2.0")
    (home / "bin" / "spark-submit").chmod(0o755)
    (home / "conf" / "spark-defaults.conf").write_text("spark.submit.deployMode cluster")
    for name in ("SPARK_HOME", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(home / "bin"))
    with pytest.raises(PreflightFailed, match=r"spark/conf/spark-defaults\.conf, line 1: spark\.submit\.deployMode"):
        launchers.launcher_for("c")


def test_a_session_of_spark_connect_is_none_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an earlier task of `dag.test`: rows would land from another machine."""
    from pyspark.sql import SparkSession

    elsewhere = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: elsewhere)
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    monkeypatch.setattr(embedded, "_start", lambda *_, **__: pytest.fail("a JVM would be started"))
    with pytest.raises(PreflightFailed, match="in another process, or name the connection with spark_conn_id"):
        embedded.embedded_session()


def test_a_driver_python_that_does_not_exist_is_named(connections, monkeypatch: pytest.MonkeyPatch) -> None:
    connections["c"] = connection("spark", "local[2]")
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "/no/such/python")
    with pytest.raises(PreflightFailed, match=r"PYSPARK_DRIVER_PYTHON='/no/such/python' does not run .* unset it"):
        launchers.launcher_for("c")
