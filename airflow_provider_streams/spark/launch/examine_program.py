"""The program that doctor runs: one small job, and a file with what driver and executors have."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.lake import process_lock
from airflow_provider_streams.spark.launch import preflight, py4j_log
from airflow_provider_streams.spark.launch.embedded import embedded_session
from airflow_provider_streams.spark.launch.program_result import error_result, write_result
from airflow_provider_streams.spark.launch.session_start import session_start
from airflow_provider_streams.spark.settings.spark_settings import SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(argv: list[str] | None = None) -> int:
    """`--result <file>`, and `--lifeline <file>` as in `spark_submit_program`; other options are ignored.

    With `--embedded <file>`, it starts Spark in its own process, with the settings of the file: what `SparkSettings`
    holds, as JSON. Without, spark-submit has started it.

    The result is `{"found": {..}}` as `preflight.examine` gives it, or `{"error": {"type", "message", "untouched",
    "foreseeable"}}`.
    """
    parser = argparse.ArgumentParser(prog="streams-doctor")
    parser.add_argument("--result", type=Path, required=True)
    parser.add_argument("--lifeline", type=Path)
    parser.add_argument("--embedded", type=Path)
    given, _ = parser.parse_known_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    py4j_log.silence_py4j()
    if given.lifeline:
        process_lock.exit_when_released(given.lifeline)
    result: dict[str, Any]
    try:
        with _session(given.embedded) as spark:
            result = {"found": preflight.examine(spark)}
    except StreamsError as error:
        result = error_result(error, untouched=True)
    write_result(given.result, result)
    return 1 if "error" in result else 0


@contextmanager
def _session(embedded: Path | None) -> Iterator[SparkSession]:
    if embedded is not None:
        spark = embedded_session(SparkSettings(**json.loads(embedded.read_text())), quick_start=True)
    else:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - only where Spark runs

        with session_start("Spark"):
            spark = SparkSession.builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
