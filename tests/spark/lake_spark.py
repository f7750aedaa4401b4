"""Spark with Iceberg and Delta Lake, which Spark 4.2 lacks: tests of tables use a Spark 4.1 of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from stream_servers.bundles import DELTA_SPARK, ICEBERG_SPARK
from stream_servers.cache import cached
from stream_servers.fetch import jars

PYSPARK = ("pyspark==4.1.3", "pyspark-client==4.1.3")
JARS = "STREAMS_TEST_LAKE_JARS"
"""The variable that names both, as `spark.jars` does, to tests that run on that Spark."""


def environment() -> dict[str, str]:
    """Of a Python whose PySpark is that one."""
    python_path = os.pathsep.join(filter(None, [str(_pyspark()), os.environ.get("PYTHONPATH")]))
    found = {**os.environ, "PYTHONPATH": python_path, JARS: ",".join([*jars(ICEBERG_SPARK), *jars(DELTA_SPARK)])}
    found.pop("SPARK_HOME", None)
    return found


def _pyspark() -> Path:
    return cached(PYSPARK[0].replace("==", "-"), _install)


def _install(into: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--target", str(into), *PYSPARK], check=True)
