"""The user's settings of Spark: one shape, checked by name, written to a file that only its owner reads."""

from __future__ import annotations

import inspect
import stat
from pathlib import Path

import pytest

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.spark.launch.settings import PARAMETERS, SparkSettings, defaults_files
from stream_servers.java import run_java


def test_parameters_become_sparks_own_settings() -> None:
    given = {
        "conf": {
            "spark.hadoop.fs.s3a.secret.key": "s3cret",
            "spark.sql.shuffle.partitions": 8,
            "spark.eventLog.enabled": True,
        },
        "packages": ["a:b:1", "c:d:2"],
        "driver_memory": "4g",
        "num_executors": 3,
        "jars": None,
    }
    assert SparkSettings.of(given).conf == {
        "spark.hadoop.fs.s3a.secret.key": "s3cret",
        "spark.sql.shuffle.partitions": "8",
        "spark.eventLog.enabled": "true",
        "spark.jars.packages": "a:b:1,c:d:2",
        "spark.driver.memory": "4g",
        "spark.executor.instances": "3",
    }


def test_the_names_are_the_spark_providers_own() -> None:
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

    assert set(PARAMETERS) <= set(inspect.signature(SparkSubmitHook).parameters)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"driver_memmory": "1g"}, "did you mean 'driver_memory'"),
        ({"spark.driver.memory": "1g"}, "belong in 'conf'"),
        ({"colour": "red"}, "known: conf, packages"),
        ({"deploy_mode": "cluster"}, "client mode"),
        ({"conf": {"spark.submit.deployMode": "cluster"}}, "client mode"),
        ({"conf": {"spark.master": "local"}}, "the connection's host"),
        ({"conf": {"fs.s3a.secret.key": "s3cret"}}, "'spark.hadoop.<name>'"),
        ({"conf": {"spark.a\nspark.b": "s3cret"}}, "is none of Spark's settings"),
        ({"conf": "spark.a=s3cret"}, "is a mapping"),
        ({"conf": {"spark.a": {"s3cret": 1}}}, "is a text, a number or a list"),
        ({"driver_memory": "1g", "conf": {"spark.driver.memory": "2g"}}, "said twice"),
    ],
)
def test_what_is_no_setting_is_refused_without_its_value(given: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message) as caught:
        SparkSettings.of(given)
    assert "s3cret" not in str(caught.value)


def test_the_operators_settings_count_more_than_the_connections() -> None:
    connection = SparkSettings.of({"driver_memory": "1g", "conf": {"spark.a": "1"}})
    assert SparkSettings.of({"driver_memory": "2g"}).over(connection).conf == {
        "spark.driver.memory": "2g",
        "spark.a": "1",
    }


def test_secrets_are_known_by_their_names_and_not_shown() -> None:
    conf = {"spark.hadoop.fs.s3a.access.key": "AKIA77", "spark.hadoop.fs.s3a.secret.key": "s3cret", "spark.a": "1"}
    settings = SparkSettings.of({"conf": conf})
    assert settings.secrets == ("AKIA77", "s3cret")
    assert "s3cret" not in repr(settings)


JAVA = """
import java.io.*; import java.util.*;
class Show { public static void main(String[] a) throws Exception {
  Properties p = new Properties(); p.load(new InputStreamReader(new FileInputStream(a[0]), "UTF-8"));
  for (String name : p.stringPropertyNames())
    System.out.println(name + "=" + p.getProperty(name).replace("\\n", "|"));
} }
"""


def test_java_reads_what_was_written_after_the_defaults(tmp_path: Path) -> None:
    values = {
        "spark.a": "C:\\\\x =y: #z",
        "spark.b": " leads",
        "spark.c": "two\nlines\tand a tab",
        "spark.d": "grüße",
        "spark.e": "=",
        "spark.given": "ours",
    }
    defaults = tmp_path / "spark-defaults.conf"
    defaults.write_text("spark.given theirs\nspark.kept  yes\n# a remark")
    file = tmp_path / "spark.properties"
    SparkSettings(values).write(file, [tmp_path / "absent", defaults])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (tmp_path / "Show.java").write_text(JAVA)
    encoding = {"JAVA_TOOL_OPTIONS": "-Dstdout.encoding=UTF-8"}
    shown = run_java(tmp_path / "Show.java", [str(file)], [], encoding).splitlines()
    assert dict(line.split("=", 1) for line in shown) == {
        **values,
        "spark.c": "two|lines\tand a tab",
        "spark.kept": "yes",
    }


def test_defaults_are_looked_for_where_spark_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    assert list(map(str, defaults_files("/venv", None))) == [
        "/opt/spark/conf/spark-defaults.conf",
        "/venv/conf/spark-defaults.conf",
    ]
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    assert list(map(str, defaults_files("/venv"))) == ["/etc/spark/spark-defaults.conf"]
