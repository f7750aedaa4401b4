"""Variables and files of a machine from which Spark cannot start, each in a process that has it: what the error says.

Doctor says the same as a task. Spark alone does not start with them either, so the faults are real ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark
import pytest

from tests.unit.spark.settings.test_spark_home import a_spark

# each process imports PySpark, and some start a JVM
pytestmark = pytest.mark.timeout(1800)

TASK = """
import json, sys
from airflow_provider_streams.doctor.spark import check_spark
from airflow_provider_streams.errors import PreflightFailed
from airflow_provider_streams.spark.launch import embedded

def no_jvm(*_):
    raise SystemExit("a JVM would be started")

embedded._start_jvm = no_jvm
try:
    embedded.embedded_session()
except PreflightFailed as error:
    findings = [one for one in check_spark(None, None) if one.level == "error"]
    print(json.dumps([str(error), *(one.says for one in findings)]))
"""
"""What a task says that needs Spark, and the errors that doctor finds."""

ALONE = """
from pyspark.sql import SparkSession
print(SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate().range(3).count(), "rows")
"""

OTHER_SPARK = "(a Spark 3.5.1)"
FAULTS: dict[str, tuple[dict[str, str], list[str]]] = {
    "another Spark": (
        {"SPARK_HOME": OTHER_SPARK},
        ["SPARK_HOME=", "is Spark 3.5.1", f"PySpark {pyspark.__version__}", "Unset SPARK_HOME"],
    ),
    "no Spark": (
        {"SPARK_HOME": "/no/such/spark"},
        ["SPARK_HOME names /no/such/spark", "not exist", "Unset SPARK_HOME"],
    ),
    "remote": (
        {"SPARK_REMOTE": "sc://127.0.0.1:1/;token=s3cret"},
        ["SPARK_REMOTE='sc://127.0.0.1:1/;***'", "Spark Connect server", "Unset SPARK_REMOTE"],
    ),
    "connect mode": (
        {"SPARK_CONNECT_MODE_ENABLED": "1"},
        ["SPARK_CONNECT_MODE_ENABLED='1'", "Unset SPARK_CONNECT_MODE_ENABLED"],
    ),
    "no shell": (
        {"PYSPARK_SUBMIT_ARGS": "--driver-memory 1g"},
        ["PYSPARK_SUBMIT_ARGS='--driver-memory 1g'", "does not end with pyspark-shell", "Append pyspark-shell"],
    ),
    "unknown option": (
        {"PYSPARK_SUBMIT_ARGS": "--drvier-memory 1g pyspark-shell"},
        ["PYSPARK_SUBMIT_ARGS='--drvier-memory 1g pyspark-shell'", "Remove --drvier-memory"],
    ),
    "cluster": (
        {"PYSPARK_SUBMIT_ARGS": "--master yarn --deploy-mode cluster pyspark-shell"},
        ["PYSPARK_SUBMIT_ARGS sets spark.master to 'yarn'", "spark_conn_id"],
    ),
}


def ran(program: str, environment: Mapping[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    """A program in a process with these variables, and those of this one."""
    found = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    found |= {**environment, "AIRFLOW_HOME": str(folder)}
    file = folder / "program.py"
    file.write_text(program)
    command = [sys.executable, str(file)]
    return subprocess.run(command, env=found, capture_output=True, text=True, check=False)


def variables(fault: str, folder: Path) -> dict[str, str]:
    other = str(a_spark(folder / "spark", "3.5.1"))
    return {name: other if value == OTHER_SPARK else value for name, value in FAULTS[fault][0].items()}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_variable_is_named_with_its_value_and_the_next_step(tmp_path: Path, fault: str) -> None:
    done = ran(TASK, variables(fault, tmp_path), tmp_path)
    assert done.stdout.strip(), done.stderr
    told, *findings = json.loads(done.stdout.splitlines()[-1])
    assert [part for part in FAULTS[fault][1] if part not in told] == [], told
    assert "Java" not in told
    assert "only pyspark-client" not in told
    assert "s3cret" not in done.stdout + done.stderr
    assert findings == [told.removesuffix(".")]


@pytest.mark.slow
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "remote"])  # it asks there for ten minutes
def test_spark_alone_does_not_start_with_it_either(tmp_path: Path, fault: str) -> None:
    done = ran(ALONE, variables(fault, tmp_path), tmp_path)
    assert done.returncode != 0
    assert "3 rows" not in done.stdout


@pytest.mark.slow
def test_a_jvm_that_ends_as_it_starts_is_said_with_what_it_was_given(tmp_path: Path) -> None:
    given = {
        "JDK_JAVA_OPTIONS": "-XX:+NoSuchOption -Dmy.password=s3cret",
        "PYSPARK_SUBMIT_ARGS": "--driver-java-options -Dother.password=s3cret pyspark-shell",
    }
    done = ran(TASK.replace("embedded._start_jvm = no_jvm", ""), given, tmp_path)
    told, *_ = json.loads(done.stdout.splitlines()[-1])
    assert told.startswith("Spark does not start in this process"), done.stderr
    assert told.endswith(
        "It was given JDK_JAVA_OPTIONS='-XX:+NoSuchOption -Dmy.password=***'; spark.driver.extraJavaOptions of the "
        "variable PYSPARK_SUBMIT_ARGS"
    )
    assert "Java 17 or" not in told
    assert "s3cret" not in told


PRECEDENCE = """
import sys
from airflow_provider_streams.spark.launch.embedded import effective, embedded_session
from airflow_provider_streams.spark.settings.spark_settings import SparkSettings

given = SparkSettings.of({"conf": {"spark.a.operator": " operator "}})
wanted = effective(given)[0].conf
session = embedded_session(given, quick_start=True)
got = dict(session.sparkContext.getConf().getAll())
assert {name: got.get(name) for name in wanted} == dict(wanted), (wanted, got)
print({name: value for name, value in sorted(got.items()) if name.startswith("spark.a.")})
print(session.sparkContext.master, session.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch"))
"""
SPARKS_OWN = """
from pyspark.sql import SparkSession
session = SparkSession.builder.config("spark.ui.enabled", "false").config("spark.a.operator", "operator").getOrCreate()
got = session.sparkContext.getConf().getAll()
print({name: value for name, value in sorted(got) if name.startswith("spark.a.")})
"""


@pytest.mark.slow
@pytest.mark.parametrize("loads", [False, True], ids=["its file alone", "with the defaults"])
def test_settings_count_as_they_count_for_spark_itself(tmp_path: Path, *, loads: bool) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.a.operator: defaults\nspark.a.arguments=defaults\nspark.a.named   defaults\n"
        "spark.a.defaults = x \\\n  y  \n"
        "spark.a.escaped a\\tb\\u00e9\\\\\n# spark.a.remark 1\nspark.submit.deployMode client\n"
    )
    (tmp_path / "named.conf").write_text("spark.a.operator n\nspark.a.arguments n\nspark.a.named  n \n")
    arguments = "--conf spark.a.operator=arguments --conf spark.a.arguments=first --conf spark.a.arguments=last "
    arguments += f"--properties-file {tmp_path}/named.conf {'--load-spark-defaults ' if loads else ''}pyspark-shell"
    given = {"SPARK_CONF_DIR": str(tmp_path), "PYSPARK_SUBMIT_ARGS": arguments}
    ours = ran(PRECEDENCE, given, tmp_path)
    assert ours.returncode == 0, ours.stderr
    alone = ran(SPARKS_OWN, given, tmp_path)
    told, place = ours.stdout.splitlines()
    assert told == alone.stdout.splitlines()[-1]
    assert place == "local[*,3] 10000"
