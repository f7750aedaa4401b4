"""The program that spark-submit runs for doctor: one small job, and a file with what driver and executors have."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from pathlib import Path
from typing import Any

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.lake import process_lock
from airflow_provider_streams.spark.launch import preflight, py4j_log


def main(argv: list[str] | None = None) -> int:
    """`--result <file>`, and `--lifeline <file>` as in `spark_submit_program`; other options are ignored.

    The result is `{"found": {..}}` as `preflight.examine` gives it, or `{"error": {"type", "message", "untouched"}}`.
    """
    parser = argparse.ArgumentParser(prog="streams-doctor")
    parser.add_argument("--result", type=Path, required=True)
    parser.add_argument("--lifeline", type=Path)
    given, _ = parser.parse_known_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    py4j_log.silence_py4j()
    if given.lifeline:
        process_lock.exit_when_released(given.lifeline)
    result: dict[str, Any]
    try:
        result = {"found": _examined()}
    except StreamsError as error:
        result = {"error": {"type": type(error).__name__, "message": str(error), "untouched": True}}
    draft = given.result.with_name(given.result.name + ".draft")
    draft.write_text(json.dumps(result))
    draft.rename(given.result)
    return 1 if "error" in result else 0


def _examined() -> dict[str, Any]:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only where Spark runs

    spark = SparkSession.builder.getOrCreate()
    try:
        return preflight.examine(spark)
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
