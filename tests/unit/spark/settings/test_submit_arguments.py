"""What the variable PYSPARK_SUBMIT_ARGS means for Spark inside a task."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_streams.errors import PreflightFailed
from airflow_provider_streams.spark.settings.submit_arguments import submit_arguments


def of(text: str):
    return submit_arguments({"PYSPARK_SUBMIT_ARGS": text})


def test_options_become_settings_and_count_more_than_conf() -> None:
    found = of(
        "--conf spark.driver.memory=1g --driver-memory 3g --conf=spark.a=x=y -c 'spark.b = two words ' "
        "--packages a:b:1,c:d:2 --master=local[2] --conf spark.a=last --verbose --proxy-user me pyspark-shell"
    )
    assert found.settings.conf == {
        "spark.driver.memory": "3g",
        "spark.a": "last",
        "spark.b": "two words",
        "spark.jars.packages": "a:b:1,c:d:2",
        "spark.master": "local[2]",
    }
    assert found.settings.origin("spark.a") == "the variable PYSPARK_SUBMIT_ARGS"
    assert found.around(Path("/f")) == "--properties-file /f --verbose --proxy-user me pyspark-shell"


def test_without_the_variable_nothing_is_said() -> None:
    found = submit_arguments({})
    assert found.settings.conf == {}
    assert found.around(Path("/a b")) == "--properties-file '/a b' pyspark-shell"


def test_its_file_counts_instead_of_the_defaults() -> None:
    found = of("--properties-file /etc/mine.conf pyspark-shell")
    assert (found.properties_file, found.loads_defaults) == (Path("/etc/mine.conf"), False)
    assert of("--load-spark-defaults --properties-file /etc/mine.conf pyspark-shell").loads_defaults


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "does not end with pyspark-shell"),
        ("--master local[2]", "does not end with pyspark-shell"),
        ("--driver-memory", "--driver-memory lacks its value"),
        ("--driver-memory 2g my_job.py", "names a program, 'my_job.py'"),
        ("--class org.Main pyspark-shell", "--class has no meaning"),
        ("--kill driver-1 pyspark-shell", "--kill has no meaning"),
        ("--drvier-memory 2g pyspark-shell", "--drvier-memory has no meaning"),
        ("--conf spark.a pyspark-shell", "takes <name>=<value>"),
        ("pyspark-shell --conf spark.a=1", "arguments follow pyspark-shell"),
        ("--conf 'spark.a=1 pyspark-shell", "cannot be split"),
    ],
)
def test_what_spark_cannot_start_with_is_said_with_the_variable(text: str, problem: str) -> None:
    with pytest.raises(PreflightFailed, match="PYSPARK_SUBMIT_ARGS") as caught:
        of(text)
    assert problem in str(caught.value)
    assert "Java" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "--conf spark.hadoop.fs.s3a.secret.key=s3cret --wrong",
        "--conf=spark.my.PASSWORD=s3cret --wrong",
        "--driver-java-options '-Da=1 -Djavax.net.ssl.trustStorePassword=s3cret' --wrong",
    ],
)
def test_secrets_are_not_shown(text: str) -> None:
    with pytest.raises(PreflightFailed, match=r"=\*\*\*") as caught:
        of(text)
    assert "s3cret" not in str(caught.value)
