"""A user's settings reach the job, wherever it runs, and no secret among them is shown on the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_provider_streams.model.sinks.sink import ParquetSink
from airflow_provider_streams.spark.launch.java_search import find_java
from tests.spark.test_launch import KEY, settings_in, start

# each starts a JVM: half a minute on a quiet machine, many on a busy one
pytestmark = pytest.mark.timeout(1800)

CONF = {"spark.hadoop.fs.s3a.secret.key": KEY, "spark.sql.shuffle.partitions": 7}


@pytest.fixture
def spec(stream, tmp_path: Path):
    return stream.spec(sink=ParquetSink(str(tmp_path / "lake")), transform="transforms:settings")


@pytest.mark.slow
def test_embedded_spark_is_started_with_them(spec, tmp_path: Path) -> None:
    launched = start(tmp_path / "run", spec, settings={"conf": CONF, "driver_memory": "700m", "name": "mine"})
    found = settings_in(tmp_path / "lake", launched)
    assert found["spark_driver_memory"] == "700m"
    assert found["spark_hadoop_fs_s3a_secret_key"] == KEY
    assert (found["spark_sql_shuffle_partitions"], found["spark_app_name"]) == ("7", "mine")
    assert [line for line in launched.command_lines if "-Xmx700m" in line]


@pytest.mark.slow
def test_submitted_jobs_get_them_from_the_connection_and_the_task(spec, tmp_path: Path) -> None:
    (tmp_path / "lookup.txt").write_text("x")
    given = {
        "conf": {"spark.sql.shuffle.partitions": 5, "spark.ui.enabled": False},
        "files": str(tmp_path / "lookup.txt"),
    }
    extra = {"spark": {**given, "driver_memory": "600m"}}
    conn = json.dumps({"conn_type": "spark", "host": "local[2]", "extra": extra})
    launched = start(tmp_path / "run", spec, "submit", conn, {"conf": CONF, "driver_memory": "700m", "name": "mine"})
    found = settings_in(tmp_path / "lake", launched)
    assert found["spark_driver_memory"] == "700m"
    assert found["spark_hadoop_fs_s3a_secret_key"] == KEY
    assert (found["spark_sql_shuffle_partitions"], found["spark_app_name"]) == ("7", "mine")
    assert "lookup.txt" in found["spark_files"]
    assert [line for line in launched.command_lines if "-Xmx700m" in line]


def test_a_session_that_runs_already_is_not_silently_another(spark) -> None:
    from airflow_provider_streams.errors import PreflightFailed
    from airflow_provider_streams.spark.launch.embedded import embedded_session
    from airflow_provider_streams.spark.settings.spark_settings import SparkSettings

    before = spark.conf.get("spark.sql.shuffle.partitions")
    try:
        assert embedded_session(SparkSettings({"spark.sql.shuffle.partitions": "3"})) is spark
        assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    had = SparkSettings({"spark.driver.memory": spark.conf.get("spark.driver.memory")})
    assert embedded_session(had) is spark, "what it has already is no change"
    with pytest.raises(PreflightFailed, match=r"no longer takes spark\.driver\.memory"):
        embedded_session(SparkSettings({"spark.driver.memory": "9g"}))


SESSIONS_IN_ONE_JVM = """
import os
import zipfile
from threading import Thread

from airflow_provider_streams.errors import PreflightFailed
from airflow_provider_streams.spark.launch.embedded import embedded_session
from airflow_provider_streams.spark.settings.spark_settings import SparkSettings


def refused(**conf):
    try:
        embedded_session(SparkSettings(conf))
    except PreflightFailed as error:
        return str(error)


def in_a_thread():
    other = embedded_session(SparkSettings({"spark.sql.shuffle.partitions": "7"}))
    assert other.sparkContext is first.sparkContext
    assert first.conf.get("spark.sql.shuffle.partitions") == "7"
    problems.append(refused(**{"spark.driver.memory": "9g"}))


problems = []
jar = os.path.join(os.path.dirname(__file__), "one.jar")
zipfile.ZipFile(jar, "w").close()
begun = {"spark.driver.memory": "700m", "spark.jars": jar}
first = embedded_session(SparkSettings(begun), quick_start=True)
assert first.conf.get("spark.jars") != jar, "Spark tells it otherwise"
assert embedded_session(SparkSettings(begun)).sparkContext is first.sparkContext
assert "no longer takes spark.jars:" in refused(**begun | {"spark.jars": jar + ",/other.jar"})
thread = Thread(target=in_a_thread)
thread.start()
thread.join()
assert "no longer takes spark.driver.memory:" in problems[0], problems

first.stop()
problem = refused(**{"spark.driver.memory": "9g", "spark.jars.packages": "a:b:1", "spark.app.name": "mine"})
assert "no longer takes spark.driver.memory, spark.jars.packages:" in problem, problem

asked = {"spark.driver.memory": "700m", "spark.hadoop.secret.key": "k", "spark.ui.retainedJobs": "5"}
second = embedded_session(SparkSettings(asked))
assert {name: second.conf.get(name) for name in asked} == asked
assert second.sparkContext._jsc.hadoopConfiguration().get("secret.key") == "k"
second.stop()
embedded_session()
assert embedded_session().conf.get("spark.driver.memory") == "700m", "what the JVM has, and not our default"
print("done")
"""


@pytest.mark.slow
def test_a_later_session_of_a_jvm_gets_its_settings_or_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "sessions.py"
    program.write_text(SESSIONS_IN_ONE_JVM)
    ended = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert ended.stdout.splitlines()[-1:] == ["done"], ended.stderr


SESSION = """
from airflow_provider_streams.spark.launch.embedded import embedded_session

print(embedded_session(quick_start=True).range(3).count())
"""


@pytest.mark.slow_except("once")
@pytest.mark.parametrize(("deaths", "said"), [(1, "3"), (2, "")], ids=["once", "each time"])
def test_a_jvm_that_dies_as_it_starts_is_started_once_more(tmp_path: Path, deaths: int, said: str) -> None:
    """As a process does that was forked while gRPC's threads ran."""
    java = find_java().home
    counted, program = tmp_path / "deaths", tmp_path / "session.py"
    dying = tmp_path / "home" / "bin" / "java"
    dying.parent.mkdir(parents=True)
    dying.write_text(
        f'#!/bin/sh\ncase "$*" in *-version*) exec {java}/bin/java "$@";; esac\n'
        f'if [ "$(cat {counted} 2>/dev/null | wc -c)" -lt {deaths} ]\n'
        f'then printf x >> {counted}; kill -ABRT $$\nfi\nexec {java}/bin/java "$@"\n'
    )
    dying.chmod(0o755)
    program.write_text(SESSION)
    home = os.environ | {"JAVA_HOME": str(dying.parents[1])}
    python = [sys.executable, "-W", "always::ResourceWarning"]
    ended = subprocess.run([*python, program], capture_output=True, text=True, check=False, env=home)
    assert counted.read_text() == "x" * deaths
    assert ended.stdout.strip() == said, ended.stderr
    assert "it is started once more" in ended.stderr
    assert ("PreflightFailed: Spark does not start in this process" in ended.stderr) is (not said)
    assert "unclosed file <_io.BufferedWriter" not in ended.stderr, "the pipe to the one that died"
