"""Which of several places decides a setting, and what none of them can say."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_streams.errors import PreflightFailed
from airflow_provider_streams.spark.settings.effective_settings import of_embedded, of_submitted
from airflow_provider_streams.spark.settings.spark_settings import SparkSettings

OURS = SparkSettings({"spark.master": "local[*,3]", "spark.ours": "ours", "spark.arguments": "ours"})


@pytest.fixture
def defaults(tmp_path: Path):
    def write(text: str, **environment: str) -> dict[str, str]:
        (tmp_path / "spark-defaults.conf").write_text(text)
        return {"SPARK_CONF_DIR": str(tmp_path), **environment}

    return write


def test_the_nearest_place_counts(defaults, tmp_path: Path) -> None:
    names = ("operator", "connection", "arguments", "ours", "file", "defaults")
    (tmp_path / "named.conf").write_text("\n".join(f"spark.{name} file" for name in names[:5]))
    environment = defaults(
        "\n".join(f"spark.{name} defaults" for name in names),
        PYSPARK_SUBMIT_ARGS=" ".join(f"--conf spark.{name}=arguments" for name in names[:3])
        + f" --properties-file {tmp_path}/named.conf --load-spark-defaults pyspark-shell",
    )
    connection = SparkSettings.of({"conf": {f"spark.{name}": "connection" for name in names[:2]}}, "the connection")
    operator = SparkSettings.of({"conf": {"spark.operator": "operator"}})
    found, _ = of_embedded(operator.over(connection), OURS, environment)
    assert {name: found.conf[f"spark.{name}"] for name in names} == {name: name for name in names}
    assert found.origin("spark.operator") == "the operator's spark="
    assert found.origin("spark.connection") == "the connection"
    assert found.origin("spark.file") == f"{tmp_path}/named.conf, line 5"
    assert found.origin("spark.defaults") == f"{tmp_path}/spark-defaults.conf, line 6"


CLUSTERS = (
    "spark.master spark://prod:7077\nspark.submit.deployMode cluster\nspark.remote sc://prod\nspark.api.mode connect"
)


def test_where_a_cluster_is_says_nothing_of_spark_inside_the_task(defaults) -> None:
    found, _ = of_embedded(SparkSettings(), OURS, defaults(CLUSTERS))
    assert found.conf["spark.master"] == "local[*,3]"
    assert found.conf["spark.submit.deployMode"] == "client"
    assert found.conf["spark.api.mode"] == "classic"
    assert "spark.remote" not in found.conf


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ("--master yarn", "spark.master"),
        ("--conf spark.master=spark://prod:7077", "spark.master"),
        ("--deploy-mode cluster", "spark.submit.deployMode"),
        ("--conf spark.api.mode=connect", "spark.api.mode"),
        ("--remote 'sc://prod/;token=s3cret'", "spark.remote"),
    ],
)
def test_arguments_that_name_another_place_are_refused(defaults, arguments: str, name: str) -> None:
    with pytest.raises(PreflightFailed, match=rf"PYSPARK_SUBMIT_ARGS sets {name} to .* spark_conn_id") as caught:
        of_embedded(SparkSettings(), OURS, defaults("", PYSPARK_SUBMIT_ARGS=f"{arguments} pyspark-shell"))
    assert "s3cret" not in str(caught.value)


def test_arguments_may_choose_the_local_master(defaults) -> None:
    given = defaults("", PYSPARK_SUBMIT_ARGS="--master local[2] --deploy-mode client pyspark-shell")
    assert of_embedded(SparkSettings(), OURS, given)[0].conf["spark.master"] == "local[2]"


@pytest.mark.parametrize(
    "text",
    ["spark.submit.deployMode cluster", "spark.submit.deployMode=cluster  ", " spark.submit.deployMode : clu\\\nster"],
)
def test_deploy_mode_cluster_in_the_defaults_is_refused_by_file_and_line(defaults, tmp_path: Path, text: str) -> None:
    with pytest.raises(PreflightFailed, match=rf"{tmp_path}/spark-defaults\.conf, line 2: spark.submit.deployMode"):
        of_submitted(SparkSettings(), None, None, defaults(f"# the cluster's\n{text}"))


def test_the_connections_deploy_mode_counts_more_than_the_defaults(defaults) -> None:
    found = of_submitted(SparkSettings(), None, "client", defaults(CLUSTERS + "\nspark.a 1"))
    assert found.conf == {"spark.a": "1", "spark.api.mode": "classic"}


def test_secrets_of_the_defaults_are_known_as_secrets(defaults) -> None:
    found = of_submitted(SparkSettings(), None, None, defaults("spark.hadoop.fs.s3a.secret.key  s3cret"))
    assert found.secrets == ("s3cret",)
    assert "s3cret" not in repr(found)
