"""A long read tells how far it is, in each way to read. It waits until it has told it: nothing depends on time."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from airflow_provider_streams.model import read_progress
from airflow_provider_streams.model.sinks.sink import ParquetSink
from airflow_provider_streams.spark.job import progress_log
from stream_servers.waiting import wait_until
from tests.spark.running import run_window


@pytest.fixture
def told(monkeypatch, caplog):
    """The lines so far; they are due at once."""
    monkeypatch.setattr(read_progress, "PROGRESS_SECONDS", 0.05)
    monkeypatch.setattr(progress_log, "PROGRESS_SECONDS", 0.05)
    caplog.set_level(logging.INFO)
    return lambda: [line for line in caplog.messages if " are read" in line]


def test_tasks(spark, stream, told, tmp_path: Path) -> None:
    hold = Path(f"{stream.truth}.hold")
    hold.touch()
    stream.set(fault="hold", batch_rows=100)
    spec = stream.spec(sink=ParquetSink(str(tmp_path / "lake")), small_plan_bytes=0)
    with ThreadPoolExecutor(1) as pool:
        try:
            reading = pool.submit(run_window, spec, spark)
            wait_until(told, "a line")
        finally:
            hold.unlink()
        assert reading.result().receipt.rows == 1200
    assert told()[0].startswith("0 of 1 tasks are read, 0 events")


def test_splits_that_this_process_reads(spark, stream, told) -> None:
    stream.set(fault="slow:60", batch_rows=100)  # longer than the time between two lines
    spec = stream.spec(small_plan_bytes=1 << 30)
    assert run_window(spec, spark).receipt.rows == 1200
    assert any(f"of {len(spec.plan.splits)} splits are read" in line for line in told())
