"""Spark with Iceberg's runtime, which 1.12 has not for Spark 4.2: tests of tables use a Spark 4.1 of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from airflow_provider_streams.testing.servers.cache import cached
from airflow_provider_streams.testing.servers.fetch import Artifact, Bundle, fetch

PYSPARK = ("pyspark==4.1.3", "pyspark-client==4.1.3")
RUNTIME = Bundle(
    title="Iceberg 1.12.0 for Spark 4.1",
    artifacts=(Artifact("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", "1.12.0"),),
    excludes=(("*", "*"),),
)
JAR = "STREAMS_TEST_ICEBERG_JAR"
"""The variable that names the runtime to tests that run on that Spark."""


def environment() -> dict[str, str]:
    """Of a Python whose PySpark is that one."""
    (jar,) = fetch(RUNTIME).glob("*.jar")
    python_path = os.pathsep.join(filter(None, [str(_pyspark()), os.environ.get("PYTHONPATH")]))
    found = {**os.environ, "PYTHONPATH": python_path, JAR: str(jar)}
    found.pop("SPARK_HOME", None)
    return found


def _pyspark() -> Path:
    return cached(PYSPARK[0].replace("==", "-"), _install)


def _install(into: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--target", str(into), *PYSPARK], check=True)
