"""Runs one job, or a chunk, in a process of its own: `launching.py <spec> <result> [connection]`; see `test_launch`."""

from __future__ import annotations

import atexit
import os
import threading


def _stay_while_logging() -> None:
    """A thread that has the log's lock for ever, as one has it that the interpreter's end surprised while it logged."""
    has_lock = threading.Event()

    def stay() -> None:
        for handler in logging.getLogger().handlers:
            handler.acquire()
        has_lock.set()
        threading.Event().wait()

    threading.Thread(target=stay, daemon=True).start()
    has_lock.wait()


if os.environ.pop("TEST_SURPRISED_WHILE_LOGGING", ""):
    atexit.register(_stay_while_logging)  # before `logging` is imported: it is called after the log was closed

import faulthandler  # noqa: E402
import json  # noqa: E402
import logging  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
from dataclasses import replace  # noqa: E402
from pathlib import Path  # noqa: E402

from airflow_provider_streams.airflow_runtime.spark_launch import cancel, launch  # noqa: E402
from airflow_provider_streams.lake.parquet.writer import ParquetWriter  # noqa: E402
from airflow_provider_streams.spark.job.job_spec import JobSpec  # noqa: E402
from airflow_provider_streams.spark.job.outcomes import landed_of, results_to_json  # noqa: E402
from airflow_provider_streams.spark.settings.spark_settings import SparkSettings  # noqa: E402

if row_group := os.environ.pop("TEST_ROW_GROUP_BYTES", ""):  # so that tasks write before they have read all
    ROOMY = ParquetWriter._target_of
    ParquetWriter._target_of = lambda *given: replace(ROOMY(*given), row_group_bytes=int(row_group))

if __name__ == "__main__":
    faulthandler.register(signal.SIGUSR1)
    logging.basicConfig(level=logging.INFO)
    signal.signal(signal.SIGTERM, lambda *_: cancel())  # as Airflow's task runner calls `on_kill`
    spec_file, result_file, *rest = sys.argv[1:]
    conn_id = (rest[0] or None) if rest else None
    settings = json.loads(os.environ.pop("TEST_SPARK_SETTINGS", "null"))
    told = json.loads(Path(spec_file).read_text())
    try:
        results = launch(JobSpec.from_json(told, os.environ), conn_id, SparkSettings.of(settings))
        result = landed_of(results).to_json() if len(results) == 1 else {"results": results_to_json(results)}
    except Exception as error:  # noqa: BLE001 - tests look at what it is
        result = {"error": type(error).__name__, "message": str(error)}
    Path(result_file).write_text(json.dumps(result))
