"""The user's settings of Spark: one shape, checked by name, written to a file that only its owner reads."""

from __future__ import annotations

import inspect

import pytest

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.spark.settings.spark_settings import PARAMETERS, SparkSettings


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


def test_blanks_around_names_and_values_do_not_count() -> None:
    given = {
        "conf": {" spark.a ": " 1 ", "spark.b": "two words", "\tspark.c": "\t"},
        " driver_memory ": " 2g ",
        "jars": [" /a.jar", "/b.jar "],
    }
    assert SparkSettings.of(given).conf == {
        "spark.a": "1",
        "spark.b": "two words",
        "spark.c": "",
        "spark.driver.memory": "2g",
        "spark.jars": "/a.jar,/b.jar",
    }
    with pytest.raises(InvalidRequest, match="said twice"):
        SparkSettings.of({"conf": {"spark.a": "1", " spark.a": "2"}})
    with pytest.raises(InvalidRequest, match="client mode"):
        SparkSettings.of({"conf": {" spark.submit.deployMode": "cluster"}})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.execution.arrow.maxRecordsPerBatch", 0),
        ("spark.sql.execution.arrow.maxRecordsPerBatch", " -1 "),
        ("spark.sql.parquet.datetimeRebaseModeInWrite", "legacy"),
        ("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MILLIS"),
        ("spark.wap.id", "audit"),
    ],
)
def test_what_would_change_rows_is_refused_with_its_reason(name: str, value: object) -> None:
    with pytest.raises(InvalidRequest, match=rf"{name}=.* cannot be set: \w+"):
        SparkSettings.of({"conf": {name: value}})
