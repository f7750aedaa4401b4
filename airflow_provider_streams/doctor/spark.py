"""Spark: how it is launched, and what driver and executors have."""

from __future__ import annotations

import platform
import resource
import sys
import tempfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from airflow_provider_streams.airflow_runtime import spark_launch
from airflow_provider_streams.doctor.finding import Finding, Notes
from airflow_provider_streams.errors import StreamsError, SystemUnavailable, TaskCancelled
from airflow_provider_streams.errors.write_access import free_bytes, why_no_folder
from airflow_provider_streams.spark.launch.embedded import java_for, startable
from airflow_provider_streams.spark.launch.java_search import NEEDED, OF_SETTING
from airflow_provider_streams.spark.launch.preflight import SET_WORKERS_PYTHON
from airflow_provider_streams.spark.settings.configured_classes import ADD_JAR
from airflow_provider_streams.spark.settings.configured_files import missing_files, spill_folders
from airflow_provider_streams.spark.settings.setting_rules import broken_rules
from airflow_provider_streams.spark.settings.spark_settings import JAVA_HOME, SparkSettings

_PARTS: Final = "Do what the message says, where Airflow's workers start"
_SETTING: Final = "Remove it there, if a transform of yours does not need it elsewhere"
_JAVA: Final = (
    "pip install 'airflow-provider-streams[java]', or set JAVA_HOME or the setting java_home to Java 17 or newer"
)
_JAVA_SETTING: Final = "Let java_home name Java 17 or newer, or remove it: while it is set, no other Java is looked for"
_FILES: Final = "Correct the path, or make the file readable on this machine"
_WORKERS: Final = f"Install pyarrow in the Python of the executors, or {SET_WORKERS_PYTHON} to one that has it"
_CLUSTER: Final = "See that the cluster has free executors, and that they reach the driver"
_MACHINE: Final = "See whether Spark fetches packages, or other work keeps this machine busy, and try again"
_OTHER_SCRATCH: Final = "Let this user write there, or let spark.local.dir (SPARK_LOCAL_DIRS) or TMPDIR name another"
_MORE_SCRATCH: Final = "Free some, or set spark.local.dir (SPARK_LOCAL_DIRS) or TMPDIR to a larger disk"
_RAISE: Final = "Raise the limit where Airflow's workers start (ulimit -n, or LimitNOFILE of the service)"
_SCRATCH: Final = 256 * 1024**2
_OPEN_FILES: Final = 1024
"""What most systems allow a process."""


def check_spark(conn_id: str | None, given: Mapping[str, Any] | None) -> list[Finding]:
    """Launch method, driver, Java, executors. One small job runs."""
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
        _scratch(notes, settings)
        _elsewhere(notes, conn_id, settings)
    return notes.findings


def _driver(notes: Notes) -> None:
    python = f"Python {platform.python_version()} ({sys.executable})"
    try:
        notes.ok("driver", f"{python} with pyarrow {metadata.version('pyarrow')}")
    except metadata.PackageNotFoundError:
        notes.error("driver", f"{python} has no pyarrow", "pip install pyarrow in this Python")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if most != resource.RLIM_INFINITY and most < _OPEN_FILES:
        notes.warning("open files", f"a process here may open {most} files at once: Spark's JVM opens hundreds", _RAISE)


def _scratch(notes: Notes, settings: SparkSettings) -> None:
    """Where Spark spills, as far as it is on this machine."""
    for folder in {*spill_folders(settings.conf.get), Path(tempfile.gettempdir())}:
        if why := why_no_folder(folder):
            notes.error("scratch", f"{why}, and Spark spills to {folder}", _OTHER_SCRATCH)
            continue
        free = free_bytes(folder)
        if free < _SCRATCH:
            notes.warning("scratch", f"{free:,} bytes are free in {folder}, where Spark spills", _MORE_SCRATCH)


def _embedded(notes: Notes, settings: SparkSettings) -> None:
    with notes.failing("parts", _PARTS):
        settings = startable(settings)
        _settings(notes, settings)
    _scratch(notes, settings)
    with notes.failing("Java", _JAVA_SETTING if settings.conf.get(JAVA_HOME) else _JAVA):
        notes.ok("Java", str(java_for(settings)))
    if notes.has_errors:
        notes.skipped("executors", "Spark cannot start here")
        return
    seen = _small_job(notes, None, settings, _MACHINE)
    if seen is not None:
        _judge_classes(notes, seen)
        notes.ok("executors", f"a small job ran: Spark {seen['spark']} and its processes of this machine")


def _settings(notes: Notes, settings: SparkSettings) -> None:
    """What no job can have."""
    for rule, value in broken_rules(settings.conf.get):
        note = notes.warning if rule.instead else notes.error
        note("settings", rule.broken_by(value, settings.origin(rule.name)), _SETTING)


def _elsewhere(notes: Notes, conn_id: str, settings: SparkSettings) -> None:
    seen = _small_job(notes, conn_id, settings, _CLUSTER)
    if seen is not None:
        judge_workers(notes, seen)


def _small_job(notes: Notes, conn_id: str | None, settings: SparkSettings, slow: str) -> Mapping[str, Any] | None:
    """What one small job sees; None: it failed. `slow` is the next step if it does not end."""
    try:
        return spark_launch.examine(conn_id, settings)
    except TaskCancelled:
        notes.error("executors", f"a small job did not end within {spark_launch.EXAMINE_SECONDS:.0f} s", slow)
    except SystemUnavailable as error:
        notes.error("job", str(error), "See that this Spark runs, and that host and port of the connection are its own")
    except StreamsError as error:
        check, advice = _place(str(error))
        notes.error(check, str(error), advice)
    return None


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
    _judge_classes(notes, seen)
    if java := seen.get("java"):
        notes.ok("Java", f"Spark {seen['spark']} runs its driver on Java {java}")
    else:
        notes.skipped("Java", f"Spark {seen['spark']} runs elsewhere, and does not say on which Java")
    notes.ok("executors", f"a small job ran: Python {seen['python']} with PySpark {seen['pyspark']} and pyarrow")


def _judge_classes(notes: Notes, seen: Mapping[str, Any]) -> None:
    for lacking in seen.get("lacking", ()):
        notes.error("classes", lacking, ADD_JAR)
