"""Many windows in one job, where a connection says: results for each come back, and no secret is shown."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from airflow_provider_streams.model.sinks.landing import Landed
from airflow_provider_streams.model.sinks.sink import ParquetSink
from airflow_provider_streams.spark.job.job_spec import JobSpec
from airflow_provider_streams.spark.job.outcomes import WindowFailure, results_from_json
from tests.spark import clusters, watching
from tests.spark.test_launch import CANARY, Launched, start

# each starts several JVMs: a minute on a quiet machine, many on a busy one
pytestmark = pytest.mark.timeout(1800)

MINUTES = 6


@pytest.fixture
def chunk(stream, tmp_path: Path) -> JobSpec:
    """The stream's first six minutes, read by Spark's tasks; the stream asks for a password, and drops an event."""
    stream.set(password=CANARY, fault="drop:1:150")
    stream.token = CANARY
    plans = [stream.plan(minute, minute + 1, slack=timedelta(0)) for minute in range(MINUTES)]
    return JobSpec.of(plans, stream.spec(plans[0], sink=ParquetSink(str(tmp_path / "lake")), small_plan_bytes=0))


def assert_each_window_has_its_result(launched: Launched, chunk: JobSpec, lake: Path) -> None:
    assert "results" in launched.result, f"{launched.result}\n{launched.output}"
    results = results_from_json(launched.result["results"])
    failed = [number for number, result in enumerate(results) if isinstance(result, WindowFailure)]
    assert failed == [2], "the one that misses an event"
    assert results[2].error_type == "ReceiptMismatch"
    receipts = {number: result.receipt for number, result in enumerate(results) if isinstance(result, Landed)}
    assert {number: receipt.fingerprint for number, receipt in receipts.items()} == {
        number: chunk.specs[number].plan.fingerprint for number in receipts
    }
    assert {receipt.rows for receipt in receipts.values()} == {120}
    table = ds.dataset(lake, partitioning="hive", exclude_invalid_files=True).to_table(columns=["shard", "number"])
    expected = [(f"numbers-{shard}", minute * 60 + n) for shard in range(2) for minute in receipts for n in range(60)]
    assert sorted((row["shard"], row["number"]) for row in table.to_pylist()) == sorted(expected)
    assert launched.traces == []


@pytest.mark.slow
def test_spark_submit_reads_many_windows_in_one_job(chunk, tmp_path: Path) -> None:
    conn = '{"conn_type": "spark", "host": "local[2]"}'
    conf = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false"}
    launched = start(tmp_path / "run", chunk, "submit", conn, {"conf": conf})
    assert_each_window_has_its_result(launched, chunk, tmp_path / "lake")
    assert any("deploy.SparkSubmit" in line and "--py-files" in line for line in launched.command_lines)


@pytest.mark.slow
def test_spark_connect_reads_many_windows_in_one_job(chunk, tmp_path: Path) -> None:
    python = clusters.clean_python(tmp_path / "python")
    shown = watching.settings(tmp_path, ui_port := clusters.free_port())
    with clusters.connect_server(tmp_path, python, shown) as port:
        launched = start(tmp_path / "run", chunk, "connect", f"spark-connect://127.0.0.1:{port}", ui_port=ui_port)
    assert watching.files_with(tmp_path, CANARY) == []
    assert_each_window_has_its_result(launched, chunk, tmp_path / "lake")
