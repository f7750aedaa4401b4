"""The program that spark-submit runs: a file with the job in, a file with the results out."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.lake import process_lock
from airflow_provider_streams.model.sinks.untouched_table import left_untouched, table_untouched
from airflow_provider_streams.spark.job.job import run
from airflow_provider_streams.spark.job.job_spec import JobSpec
from airflow_provider_streams.spark.job.outcomes import results_to_json
from airflow_provider_streams.spark.launch import preflight, py4j_log
from airflow_provider_streams.spark.launch.program_result import error_result, write_result
from airflow_provider_streams.spark.launch.session_start import session_start


def main(argv: list[str] | None = None) -> int:
    """`--spec <file> --result <file>`; secrets come from the environment (`STREAMS_SECRET_<OPTION>`).

    With `--lifeline <file>`, the job ends at once when no process holds that file's lock any more.

    The result is `{"results": [..]}`, one for each window, or `{"error": {"type", "message", "untouched",
    "foreseeable"}}`. The exit code is 0 if a window landed.
    """
    parser = argparse.ArgumentParser(prog="streams-job")
    parser.add_argument("--spec", type=Path, required=True)
    parser.add_argument("--result", type=Path, required=True)
    parser.add_argument("--lifeline", type=Path)
    given = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    py4j_log.silence_py4j()
    if given.lifeline:
        process_lock.exit_when_released(given.lifeline)
    try:
        result = _main(json.loads(given.spec.read_text()))
    except StreamsError as error:
        result = error_result(error, untouched=left_untouched(error))
    write_result(given.result, result)
    return 0 if any("landed" in one for one in result.get("results", ())) else 1


def _main(data: dict[str, Any]) -> dict[str, Any]:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only where Spark runs

    job = JobSpec.from_json(data, os.environ)
    for name in job.how.secret_environment():
        os.environ.pop(name)
    with table_untouched(), session_start("Spark"):
        spark = SparkSession.builder.getOrCreate()
    try:
        preflight.check_driver(spark)
        preflight.settle(spark, "the Spark of this job")
        return {"results": results_to_json(run(job, spark))}
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
