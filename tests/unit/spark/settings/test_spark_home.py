"""Which Spark this machine has, and where its settings are."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest

from airflow_provider_streams.errors import PreflightFailed
from airflow_provider_streams.spark.settings.spark_home import defaults_of, spark_home, version_of


def a_spark(folder: Path, version: str) -> Path:
    """As a distribution lays it out."""
    for part in ("bin", "jars", "conf"):
        (folder / part).mkdir(parents=True)
    (folder / "bin" / "spark-submit").write_text("#!/bin/sh\nexit 1\n")
    (folder / "jars" / f"spark-core_2.13-{version}.jar").touch()
    (folder / "RELEASE").write_text(f"Spark {version} (git revision 1234abcd) built for Hadoop 3.3.4\n")
    return folder


def test_without_the_variable_it_is_the_packages_own() -> None:
    home = spark_home({})
    assert home == Path(pyspark.__file__).parent
    assert version_of(home) == pyspark.__version__


@pytest.mark.parametrize("vendor", ["", "-amzn-1"])
def test_a_spark_of_the_same_version_is_taken(tmp_path: Path, vendor: str) -> None:
    home = a_spark(tmp_path / "spark", pyspark.__version__ + vendor)
    assert spark_home({"SPARK_HOME": str(home)}) == home


def test_another_version_is_refused_with_both_and_the_way_out(tmp_path: Path) -> None:
    home = a_spark(tmp_path / "spark", "3.5.1")
    for part in ("jar", "RELEASE"):
        with pytest.raises(PreflightFailed) as caught:
            spark_home({"SPARK_HOME": str(home)})
        said = str(caught.value)
        assert f"SPARK_HOME={home} is Spark 3.5.1, but this Python has PySpark {pyspark.__version__}" in said, part
        assert "Unset SPARK_HOME" in said
        (home / "jars" / "spark-core_2.13-3.5.1.jar").unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("missing", "problem"),
    [("", "does not exist"), ("bin/spark-submit", "has no bin/spark-submit"), ("jars", "has no folder jars")],
)
def test_what_is_no_spark_is_refused(tmp_path: Path, missing: str, problem: str) -> None:
    home = a_spark(tmp_path / "spark", "4.2.0")
    (home / missing).rename(tmp_path / "elsewhere")
    with pytest.raises(PreflightFailed, match=f"SPARK_HOME names {home}, which {problem}"):
        spark_home({"SPARK_HOME": str(home)})


def test_an_empty_variable_is_refused() -> None:
    with pytest.raises(PreflightFailed, match="SPARK_HOME is set, but empty"):
        spark_home({"SPARK_HOME": ""})


def test_defaults_are_looked_for_where_spark_does(tmp_path: Path) -> None:
    home, conf = a_spark(tmp_path / "spark", "4.2.0"), tmp_path / "conf"
    (home / "conf" / "spark-defaults.conf").write_text("\nspark.a home\n")
    found = defaults_of(home, {})
    assert (found.conf, found.origin("spark.a")) == (
        {"spark.a": "home"},
        f"{home}/conf/spark-defaults.conf, line 2",
    )
    conf.mkdir()
    assert defaults_of(home, {"SPARK_CONF_DIR": str(conf)}).conf == {}, "it counts instead, even without a file"
    (conf / "spark-defaults.conf").write_text("spark.a conf")
    assert defaults_of(home, {"SPARK_CONF_DIR": str(conf)}).conf == {"spark.a": "conf"}
    assert defaults_of(None, {}).conf == {}
