"""What a machine's `spark-defaults.conf` says to a job that starts there, or reaches a server that was started so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_provider_streams.model.sinks.sink import ParquetSink
from tests.spark.test_launch import KEY, clusters, landed, python, settings_in, start

__all__ = ["clusters", "python"]
# each starts a JVM: half a minute on a quiet machine, many on a busy one
pytestmark = pytest.mark.timeout(1800)

DEFAULTS = f"""\
spark.master                 spark://prod:7077
spark.remote                 sc://prod
spark.hadoop.fs.s3a.secret.key={KEY}
spark.sql.shuffle.partitions : 5\x20\x20
spark.app.name               of the machine
spark.ui.enabled             false
spark.sql.execution.arrow.maxRecordsPerBatch 0
"""
CLUSTER = "spark.submit.deployMode      cluster\n"


@pytest.fixture
def defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "conf").mkdir()
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    return (tmp_path / "conf" / "spark-defaults.conf").write_text


@pytest.fixture
def spec(stream, tmp_path: Path):
    return stream.spec(sink=ParquetSink(str(tmp_path / "lake")), transform="transforms:settings")


@pytest.mark.slow
def test_embedded_spark_takes_all_but_where_the_cluster_is(
    spec, tmp_path: Path, defaults, monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults(DEFAULTS + CLUSTER)
    # Spark alone would show the secret on the JVM's command line
    monkeypatch.setenv(
        "PYSPARK_SUBMIT_ARGS", f"--driver-memory 700m --conf spark.hadoop.fs.s3a.session.token={KEY} pyspark-shell"
    )
    launched = start(tmp_path / "run", spec, settings={"conf": {"spark.sql.shuffle.partitions": " 7 "}})
    found = settings_in(tmp_path / "lake", launched)
    assert found["spark_hadoop_fs_s3a_secret_key"] == KEY
    assert (found["spark_sql_shuffle_partitions"], found["spark_driver_memory"]) == ("7", "700m")
    assert [line for line in launched.command_lines if "-Xmx700m" in line]
    for name in ("spark.master", "spark.remote", "spark.submit.deployMode"):
        assert f"{name} is not used ({tmp_path}/conf/spark-defaults.conf, line " in launched.output
    assert "maxRecordsPerBatch='0', with which rows are handed" in launched.output


@pytest.mark.slow
def test_a_submitted_job_takes_them_and_ignores_variables_of_other_launches(
    stream, tmp_path: Path, defaults, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of_the_machine.py").write_text("FACTOR = 3\n")
    defaults(f"{DEFAULTS}spark.submit.pyFiles {tmp_path}/of_the_machine.py\n")
    for name, value in {"SPARK_REMOTE": "sc://prod", "SPARK_CONNECT_MODE_ENABLED": "1", "DEPLOY_MODE": "live"}.items():
        monkeypatch.setenv(name, value)
    conn = json.dumps({"conn_type": "spark", "host": "local[2]"})
    spec = stream.spec(sink=ParquetSink(str(tmp_path / "lake")), transform="transforms:settings")
    found = settings_in(tmp_path / "lake", start(tmp_path / "run", spec, "submit", conn))
    assert found["spark_hadoop_fs_s3a_secret_key"] == KEY
    assert (found["spark_sql_shuffle_partitions"], found["spark_app_name"]) == ("5", "of the machine")
    needs = stream.spec(sink=ParquetSink(str(tmp_path / "shipped")), transform="transforms:needs_a_file_of_the_machine")
    launched = start(tmp_path / "shipping", needs, "submit", conn)
    assert "receipt" in launched.result, launched.output
    assert len(landed(tmp_path / "shipped")) == 1200


def test_deploy_mode_cluster_is_refused_by_its_line_before_anything_starts(spec, tmp_path: Path, defaults) -> None:
    defaults(DEFAULTS + CLUSTER)
    launched = start(tmp_path / "run", spec, "submit", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    assert launched.result["error"] == "PreflightFailed"
    assert launched.result["message"].startswith(
        f"{tmp_path}/conf/spark-defaults.conf, line 8: spark.submit.deployMode is cluster"
    )
    assert KEY not in launched.output + str(launched.result)


@pytest.mark.slow
def test_a_connect_server_that_was_started_so_lands_the_same(clusters, python, stream, tmp_path: Path) -> None:
    given = {"spark.sql.execution.arrow.maxRecordsPerBatch": "0"}
    with clusters.connect_server(tmp_path, python, given) as port:
        spec = stream.spec(sink=ParquetSink(str(tmp_path / "lake")), transform="transforms:with_a_column_more")
        launched = start(tmp_path / "run", spec, "connect", f"spark-connect://127.0.0.1:{port}")
    assert "receipt" in launched.result, launched.output
    assert landed(tmp_path / "lake") == stream.numbers
    assert (
        "the Spark Connect server of 'connect' has spark.sql.execution.arrow.maxRecordsPerBatch='0'" in launched.output
    )
