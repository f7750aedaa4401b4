"""Spark: how it is launched, and what driver and executors have."""

from __future__ import annotations

import platform
import shutil
import sys
import tempfile
from collections.abc import Mapping
from importlib import metadata
from typing import Any, Final

from airflow_provider_streams.airflow_runtime import spark_launch
from airflow_provider_streams.doctor.finding import Finding, Notes
from airflow_provider_streams.errors import StreamsError, TaskCancelled
from airflow_provider_streams.spark.launch.configured_classes import ADD_JAR
from airflow_provider_streams.spark.launch.configured_files import missing_files
from airflow_provider_streams.spark.launch.embedded import java_for, startable
from airflow_provider_streams.spark.launch.java_search import NEEDED, OF_SETTING
from airflow_provider_streams.spark.launch.preflight import SET_WORKERS_PYTHON
from airflow_provider_streams.spark.launch.setting_rules import broken_rules
from airflow_provider_streams.spark.launch.settings import JAVA_HOME, SparkSettings

_PARTS: Final = "Do what the message says, where Airflow's workers start"
_SETTING: Final = "Remove it there, if a transform of yours does not need it elsewhere"
_JAVA: Final = (
    "pip install 'airflow-provider-streams[java]', or set JAVA_HOME or the setting java_home to Java 17 or newer"
)
_JAVA_SETTING: Final = "Let java_home name Java 17 or newer, or remove it: while it is set, no other Java is looked for"
_FILES: Final = "Correct the path, or make the file readable on this machine"
_WORKERS: Final = f"Install pyarrow in the Python of the executors, or {SET_WORKERS_PYTHON} to one that has it"
_SCRATCH: Final = 256 * 1024**2


def check_spark(conn_id: str | None, given: Mapping[str, Any] | None) -> list[Finding]:
    """Launch method, driver, Java, executors. With a connection, one small job runs there."""
    notes = Notes("spark")
    with notes.failing("launch", "Correct the Spark connection or the settings that the message names"):
        settings = SparkSettings.of(given)
        spark_launch.check_installed(conn_id)
        notes.ok("launch", spark_launch.launch_method(conn_id))
    if notes.has_errors:
        return notes.findings
    _driver(notes)
    for name, file in missing_files(settings.conf.get):
        notes.error("files", f"there is no {file} here, which {name} of {settings.origin(name)} names", _FILES)
    if conn_id is None:
        _embedded(notes, settings)
    else:
        _elsewhere(notes, conn_id, settings)
    return notes.findings


def _driver(notes: Notes) -> None:
    python = f"Python {platform.python_version()} ({sys.executable})"
    try:
        notes.ok("driver", f"{python} with pyarrow {metadata.version('pyarrow')}")
    except metadata.PackageNotFoundError:
        notes.error("driver", f"{python} has no pyarrow", "pip install pyarrow in this Python")
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if free < _SCRATCH:
        notes.warning(
            "scratch",
            f"{free:,} bytes are free in {tempfile.gettempdir()}, where Spark spills",
            "Free some, or set spark.local.dir or TMPDIR to a larger disk",
        )


def _embedded(notes: Notes, settings: SparkSettings) -> None:
    with notes.failing("parts", _PARTS):
        settings = startable(settings)
        _settings(notes, settings)
    with notes.failing("Java", _JAVA_SETTING if settings.conf.get(JAVA_HOME) else _JAVA):
        notes.ok("Java", str(java_for(settings)))
    if notes.has_errors:
        notes.skipped("executors", "Spark cannot start here")
    else:
        notes.ok("executors", "they are processes of this machine with the driver's Python")


def _settings(notes: Notes, settings: SparkSettings) -> None:
    """What no job can have."""
    for rule, value in broken_rules(settings.conf.get):
        note = notes.warning if rule.instead else notes.error
        note("settings", rule.broken_by(value, settings.origin(rule.name)), _SETTING)


def _elsewhere(notes: Notes, conn_id: str, settings: SparkSettings) -> None:
    """One small job says what the executors have."""
    try:
        seen = spark_launch.examine(conn_id, settings)
    except TaskCancelled:
        notes.error(
            "executors",
            f"a small job did not end within {spark_launch.EXAMINE_SECONDS:.0f} s",
            "See that the cluster has free executors, and that they reach the driver",
        )
    except StreamsError as error:
        check, advice = _place(str(error))
        notes.error(check, str(error), advice)
    else:
        judge_workers(notes, seen)


def _place(says: str) -> tuple[str, str]:
    """Which check a failure of the small job belongs to, and what to do."""
    if "workers" in says:
        return "executors", _WORKERS
    if NEEDED in says:
        return "Java", _JAVA_SETTING if OF_SETTING in says else _JAVA
    return ("job", "Follow the message, and see Spark's own log")


def judge_workers(notes: Notes, seen: Mapping[str, Any]) -> None:
    """What a small job saw. Pure."""
    for problem in seen.get("replaced", ()):
        notes.warning("settings", problem, _SETTING)
    for lacking in seen.get("lacking", ()):
        notes.error("classes", lacking, ADD_JAR)
    if java := seen.get("java"):
        notes.ok("Java", f"Spark {seen['spark']} runs its driver on Java {java}")
    else:
        notes.skipped("Java", f"Spark {seen['spark']} runs elsewhere, and does not say on which Java")
    notes.ok("executors", f"a small job ran: Python {seen['python']} with PySpark {seen['pyspark']} and pyarrow")
