"""What is said of Spark on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_streams.airflow_runtime import spark_launch
from airflow_provider_streams.doctor import spark
from airflow_provider_streams.errors import PreflightFailed, SystemUnavailable, TaskCancelled
from airflow_provider_streams.spark.launch import java_search
from airflow_provider_streams.spark.settings.configured_classes import configured_classes
from airflow_provider_streams.spark.settings.configured_files import spill_folders

FACTS = {"spark": "4.2.0", "java": "21.0.1", "pyspark": "4.2.0", "python": "/usr/bin/python3"}


@pytest.fixture(autouse=True)
def small_job(monkeypatch):
    """What the small job of an examination does; at first it finds `FACTS`."""

    def happens(act):
        monkeypatch.setattr(spark_launch, "examine", lambda *_: act())

    happens(lambda: FACTS)
    return happens


def checked(conn_id=None, settings=None):
    return {one.check: one for one in spark.check_spark(conn_id, settings)}


def java_of(folder, version):
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return str(folder)


def test_the_java_in_use_and_its_origin_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", java_of(tmp_path / "new", "17.0.1"))
    found = checked()
    assert {one.level for one in found.values()} <= {"ok", "warning"}
    assert found["Java"].says.startswith("Java 17 from JAVA_HOME")
    assert "pyarrow" in found["driver"].says


def test_java_11_is_an_error_that_names_the_extra(tmp_path):
    found = checked(settings={"java_home": java_of(tmp_path / "old", "11.0.2")})
    assert found["Java"].level == "error"
    assert "is Java 11" in found["Java"].says
    assert found["Java"].next_step.startswith("Let java_home name Java 17 or newer, or remove it")
    assert found["executors"].level == "skipped"


def test_java_11_of_the_environment_is_an_error_that_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(java_search, "_wheel_home", lambda: None)
    monkeypatch.setenv("JAVA_HOME", java_of(tmp_path / "old", "11.0.2"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "airflow-provider-streams[java]" in checked()["Java"].next_step


def test_files_that_settings_name_and_that_are_not_here_are_an_error(tmp_path):
    (tmp_path / "a.jar").touch()
    jars = f"{tmp_path}/a.jar, file://{tmp_path}/a.jar,s3a://x/y.jar,{tmp_path}/*.jar,{tmp_path}/gone.jar"
    found = [one for one in spark.check_spark(None, {"jars": jars}) if one.check == "files"]
    assert [one.level for one in found] == ["error"]
    assert f"there is no {tmp_path}/gone.jar here, which spark.jars of " in found[0].says


def test_unknown_settings_are_an_error():
    found = checked(settings={"driver_memmory": "4g"})
    assert found["launch"].level == "error"
    assert "driver_memory" in found["launch"].says


@pytest.fixture
def elsewhere(monkeypatch, small_job):
    """A Spark connection `cluster`, on which this happens."""
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", '{"conn_type": "spark", "host": "spark://master", "port": 7077}')
    return small_job


def fail(error):
    raise error


def test_a_small_job_says_what_executors_have(elsewhere):
    elsewhere(lambda: FACTS)
    found = checked("cluster")
    assert found["launch"].says == "spark-submit in client mode to the master spark://master:7077"
    assert "Java 21" in found["Java"].says
    assert "a small job ran" in found["executors"].says


@pytest.mark.parametrize(
    ("error", "check", "step"),
    [
        (PreflightFailed("the Python of Spark's workers, p, has no module pyarrow"), "executors", "Install pyarrow"),
        (PreflightFailed("Java 17 or newer is needed"), "Java", "[java]"),
        (TaskCancelled(), "executors", "free executors"),
        (SystemUnavailable("the Spark", "all masters are unresponsive"), "job", "See that this Spark runs"),
        (PreflightFailed("something else"), "job", "Follow"),
    ],
)
def test_a_small_job_that_fails_says_where(elsewhere, error, check, step):
    elsewhere(lambda: fail(error))
    found = checked("cluster")
    assert found[check].level == "error"
    assert step in found[check].next_step


@pytest.mark.parametrize(
    ("line", "level", "said"),
    [
        ("spark.sql.execution.arrow.maxRecordsPerBatch 0", "warning", "a job uses '10000'"),
        ("spark.wap.id audit", "error", "keep the rows apart"),
    ],
)
def test_a_setting_of_the_machine_that_would_change_rows_is_found(tmp_path, monkeypatch, line, level, said):
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "spark-defaults.conf").write_text(f"# the machine's\n{line}\n")
    found = checked()["settings"]
    assert found.level == level
    assert found.says.startswith(f"{tmp_path}/spark-defaults.conf, line 2 has {line.split()[0]}=")
    assert said in found.says


def test_what_a_job_replaces_elsewhere_is_found(elsewhere):
    elsewhere(lambda: {**FACTS, "replaced": ["the Spark of this connection has x='0', with which y: a job uses '1'."]})
    assert checked("cluster")["settings"].level == "warning"


def test_java_is_blamed_only_for_itself(elsewhere):
    elsewhere(lambda: fail(PreflightFailed("Spark does not start in this process on Java 17 from PATH")))
    assert "Java" not in checked("cluster")


@pytest.mark.parametrize("variable", ["SPARK_HOME", "SPARK_REMOTE"])
def test_a_variable_that_keeps_spark_from_starting_is_found(monkeypatch, variable):
    monkeypatch.setenv(variable, "/no/such")
    found = checked()
    assert found["parts"].level == "error"
    assert variable in found["parts"].says
    assert found["Java"].level == "ok"


def test_a_connection_that_is_not_one_of_spark_is_no_launch(monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_BROKER", '{"conn_type": "pulsar", "host": "broker", "port": 6650}')
    found = checked("broker")
    assert found.keys() == {"launch"}
    assert found["launch"].level == "error"
    assert "'broker' is of type 'pulsar': reading needs one of type 'spark'" in found["launch"].says


def test_a_class_that_settings_name_and_spark_lacks_is_an_error(elsewhere):
    elsewhere(lambda: {**FACTS, "lacking": ["Spark has no class a.B, which the setting spark.sql.catalog.prod names"]})
    found = checked("cluster")
    assert found["classes"].level == "error"
    assert "--spark packages=" in found["classes"].next_step


def test_settings_name_the_classes_of_catalogs_and_extensions():
    conf = {
        "spark.sql.catalog.prod": "a.B",
        "spark.sql.catalog.prod.type": "rest",
        "spark.sql.extensions": "c.D, e.F",
        "spark.app.name": "x",
    }
    catalog, extensions = "spark.sql.catalog.prod", "spark.sql.extensions"
    assert [*configured_classes(conf)] == [(catalog, "a.B"), (extensions, "c.D"), (extensions, "e.F")]


def test_a_small_job_runs_without_a_connection_as_well(small_job):
    found = checked()
    assert found["executors"].says == "a small job ran: Spark 4.2.0 and its processes of this machine"
    small_job(lambda: fail(PreflightFailed("Spark in this process does not start: no class com.example.Plugin")))
    assert "com.example.Plugin" in checked()["job"].says
    small_job(lambda: fail(TaskCancelled()))
    assert "Spark fetches packages" in checked()["executors"].next_step


def test_a_class_that_spark_in_the_task_lacks_is_an_error(small_job):
    small_job(lambda: {**FACTS, "lacking": ["Spark has no class a.B, which the setting spark.sql.catalog.prod names"]})
    assert checked()["classes"].level == "error"


def test_a_folder_that_cannot_take_what_spark_spills_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    found = checked(settings={"conf": {"spark.local.dir": f"{tmp_path}/file/spill"}})
    assert found["scratch"].level == "error"
    assert found["scratch"].says == f"{tmp_path}/file is no folder, and Spark spills to {tmp_path}/file/spill"
    assert found["executors"].level == "skipped"


def test_a_low_limit_of_open_files_is_a_warning(monkeypatch):
    monkeypatch.setattr(spark.resource, "getrlimit", lambda _: (256, 4096))
    found = checked()["open files"]
    assert found.level == "warning"
    assert "256 files" in found.says
    assert "ulimit -n" in found.next_step
    monkeypatch.setattr(spark.resource, "getrlimit", lambda _: (spark.resource.RLIM_INFINITY,) * 2)
    assert "open files" not in checked()


def test_spark_spills_where_variable_setting_or_java_say():
    assert spill_folders({"spark.local.dir": "/a, /b"}.get, {}) == [Path("/a"), Path("/b")]
    assert spill_folders({"spark.local.dir": "/a"}.get, {"SPARK_LOCAL_DIRS": "/c"}) == [Path("/c")]
    assert spill_folders({}.get, {"TMPDIR": "/d"}) == [Path("/tmp")]  # noqa: S108 - Java's own
