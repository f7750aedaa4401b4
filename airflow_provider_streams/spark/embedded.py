"""Spark inside this process: `local[*]`, started when first needed and kept until the process ends."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import MissingDependency, PreflightFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Starting a JVM is compiling; a small window is over before the better code would pay."""

_ATTEMPTS = 3


def embedded_session(conf: Mapping[str, str] | None = None, *, quick_start: bool = False) -> SparkSession:
    """The process's Spark session: its active one, or a local one, made now.

    Args:
        conf: Spark settings that win over ours, as far as a running session still takes them.
        quick_start: prefer a short start over speed in the long run; decides only for the first session.

    Raises:
        MissingDependency: no PySpark.
        PreflightFailed: no Java, a too old one, or a PySpark without Spark.
    """
    try:
        from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415 - optional
        from pyspark.sql import SparkSession  # noqa: PLC0415
    except ImportError as error:
        raise MissingDependency("pyspark", "spark") from error
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    _check_parts()
    # workers must be this very Python: the packages a read needs are here
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[*,{_ATTEMPTS}]").appName("streams")
    for name, value in {**_settings(quick_start=quick_start), **(conf or {})}.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise PreflightFailed(
            f"Spark does not start in this process ({' '.join(str(error).split())}). Spark 4 needs Java 17 or later: "
            "check JAVA_HOME, and the messages of the JVM above"
        ) from error


def _settings(*, quick_start: bool) -> dict[str, str]:
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.sql.session.timeZone": "UTC",
        # a cancelled task's Python is stopped at once: it holds nothing durable
        "spark.python.task.killTimeout": "1s",
        **({"spark.driver.extraJavaOptions": _QUICK_START} if quick_start else {}),
    }


def _check_parts() -> None:
    import pyspark  # noqa: PLC0415 - optional

    home = os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent
    if not (Path(home) / "jars").is_dir():
        raise PreflightFailed(
            "this Python has only pyspark-client, which talks to a Spark elsewhere. For Spark inside the task: "
            "pip install 'airflow-provider-streams[spark]'; else name a Spark connection with spark_conn_id"
        )
    java_home = os.environ.get("JAVA_HOME")
    java = Path(java_home) / "bin" / "java" if java_home else shutil.which("java")
    if java is None or not Path(java).exists():
        where = f"JAVA_HOME ({java_home}) has none" if java_home else "none is on the PATH, and JAVA_HOME is not set"
        raise PreflightFailed(
            f"Spark needs Java 17 or later on this machine: {where}. Install one (Debian: apt install "
            "openjdk-17-jre-headless), or name a Spark connection with spark_conn_id"
        )
