"""The program that spark-submit runs: a file that says what to read, one or many windows, in; a file of results out."""

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
from airflow_provider_streams.spark import preflight, py4j_log
from airflow_provider_streams.spark.batch_job import run_chunk
from airflow_provider_streams.spark.batch_spec import ChunkSpec, results_to_json
from airflow_provider_streams.spark.job import run
from airflow_provider_streams.spark.spec import JobSpec


def main(argv: list[str] | None = None) -> int:
    """`--spec <file> --result <file>`; secrets come from the environment (`STREAMS_SECRET_<OPTION>`).

    With `--lifeline <file>`, the job ends at once when nobody holds that file's lock any more.

    The result is `{"landed": ..}`, of a chunk `{"results": [..]}`, or `{"error": {"type", "message"}}`; the exit code
    says which.
    """
    parser = argparse.ArgumentParser(prog="streams-job")
    parser.add_argument("--spec", type=Path, required=True)
    parser.add_argument("--result", type=Path, required=True)
    parser.add_argument("--lifeline", type=Path)
    given = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    py4j_log.quieten()
    if given.lifeline:
        process_lock.end_with(given.lifeline)
    try:
        result = _main(json.loads(given.spec.read_text()))
    except StreamsError as error:
        result = {"error": {"type": type(error).__name__, "message": str(error)}}
    draft = given.result.with_name(given.result.name + ".draft")
    draft.write_text(json.dumps(result))
    draft.rename(given.result)
    return 1 if "error" in result else 0


def _main(data: dict[str, Any]) -> dict[str, Any]:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only where Spark runs

    work = (ChunkSpec if "plans" in data else JobSpec).from_json(data, os.environ)
    for name in work.secret_environment():
        os.environ.pop(name)
    spark = SparkSession.builder.getOrCreate()
    try:
        preflight.check_driver(spark)
        if isinstance(work, ChunkSpec):
            return {"results": results_to_json(run_chunk(work, spark))}
        return {"landed": run(work, spark).to_json()}
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
