"""Spark inside this process: `local[*]`, started when first needed and kept until the process ends."""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import PreflightFailed
from airflow_provider_streams.spark import preflight, py4j_log
from airflow_provider_streams.spark.settings import SparkSettings, defaults_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Starting a JVM is compiling: a small window is over before the better code would pay, and tasks that write themselves
leave the JVM nothing to do."""

_log = logging.getLogger(__name__)

_begun_with: dict[str, str] = {}
"""What the user asked for when this process's session was started."""

_ATTEMPTS = 3
_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
"""PySpark's variable for what follows `spark-submit`."""

_OF_THE_JVM = (
    "spark.driver.memory",
    "spark.driver.extraJavaOptions",
    "spark.driver.defaultJavaOptions",
    "spark.driver.extraClassPath",
    "spark.driver.extraLibraryPath",
    "spark.jars.packages",
    "spark.jars.excludes",
    "spark.jars.repositories",
    "spark.jars.ivy",
    "spark.jars.ivySettings",
    "spark.kerberos.principal",
    "spark.kerberos.keytab",
)
"""What spark-submit does with the JVM that it starts: a later session in that JVM keeps it."""


def embedded_session(settings: SparkSettings | None = None, *, quick_start: bool = False) -> SparkSession:
    """The process's Spark session, or a local one, made now.

    Args:
        settings: the user's; they win over ours.
        quick_start: prefer a short start over speed in the long run; decides only for the first session.

    Raises:
        MissingDependency: no PySpark.
        PreflightFailed: no Java, a too old one, a PySpark that is a mix or without Spark; or Spark or its JVM runs in
            this process already, and the settings are none that it still takes.
    """
    given = settings or SparkSettings()
    preflight.check_installed()
    py4j_log.quieten()
    running = _running()
    if running is None:
        return _start(given, quick_start=quick_start)
    preflight.set_late(running, given, "Spark runs in this process already, and", begun_with=_begun_with)
    return running


def _running() -> SparkSession | None:
    """The session of this process: a thread that did not start it has no active one."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - optional, checked above

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    check_parts()
    from pyspark import SparkContext  # noqa: PLC0415 - pyspark-client has none

    return SparkSession.builder.getOrCreate() if SparkContext._active_spark_context else None  # noqa: SLF001


def _start(settings: SparkSettings, *, quick_start: bool) -> SparkSession:
    # workers must be this very Python: the packages a read needs are here
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    ours = {name: value for name, value in _ours(quick_start=quick_start).items() if name not in settings.conf}
    with _told(ours, settings) as conf:
        try:
            session = _started(conf)
        except PreflightFailed as error:
            # PySpark forks for its JVM; where gRPC is at work (an open Pravega hook), some forks in a hundred die of it
            _log.warning("Spark's JVM ended as it started (%s): it is started once more", error.__cause__)
            session = _started(conf)
    _begun_with.clear()
    _begun_with.update(settings.conf)
    return session


def _started(conf: dict[str, str]) -> SparkSession:
    from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415 - optional
    from pyspark.sql import SparkSession  # noqa: PLC0415

    try:
        return SparkSession.builder.config(map={**conf}).getOrCreate()
    except PySparkRuntimeError as error:
        _close_pipe(error)
        raise PreflightFailed(
            f"Spark does not start in this process ({' '.join(str(error).split())}). Spark 4 needs Java 17 or later: "
            "check JAVA_HOME, and the messages of the JVM above"
        ) from error


def _close_pipe(failure: BaseException) -> None:
    """Close our end of the pipe to a JVM that did not start, which PySpark leaves to the collector."""
    for frame, _ in traceback.walk_tb(failure.__traceback__):
        process = frame.f_locals.get("proc")
        if isinstance(process, subprocess.Popen) and process.stdin:
            process.stdin.close()


@contextmanager
def _told(ours: dict[str, str], settings: SparkSettings) -> Iterator[dict[str, str]]:
    """What the builder is told: it stands on the command line of a JVM that starts, so the user's go by a file there.

    To a JVM that runs already, the builder's go over its private socket.
    """
    from pyspark import SparkContext  # noqa: PLC0415 - as above

    if SparkContext._gateway is not None:  # noqa: SLF001 - an earlier session was stopped
        _check_late(settings)
        yield {name: value for name, value in {**ours, **settings.conf}.items() if name not in _OF_THE_JVM}
    elif settings.conf:
        with _properties_file(settings):
            yield ours
    else:
        yield ours


def _check_late(settings: SparkSettings) -> None:
    """Refuse what only a JVM that starts takes, if the one that runs was told something else."""
    from pyspark import SparkConf  # noqa: PLC0415 - as above

    told = SparkConf()  # of a JVM that runs: what it was started with
    preflight.refuse_late(
        [name for name in _OF_THE_JVM if settings.conf.get(name, told.get(name)) != told.get(name)],
        "Spark's JVM runs in this process already, and",
    )


@contextmanager
def _properties_file(settings: SparkSettings) -> Iterator[None]:
    """A JVM that starts meanwhile reads the settings from a private file."""
    before = os.environ.get(_ARGUMENTS)
    with tempfile.TemporaryDirectory(prefix="streams-spark-") as folder:  # mode 0700
        file = Path(folder) / "spark.properties"
        settings.write(file, defaults_files(Path(pyspark_folder())))
        os.environ[_ARGUMENTS] = f"--properties-file {shlex.quote(str(file))} {before or 'pyspark-shell'}"
        try:
            yield
        finally:
            if before is None:
                del os.environ[_ARGUMENTS]
            else:
                os.environ[_ARGUMENTS] = before


def _ours(*, quick_start: bool) -> dict[str, str]:
    return {
        "spark.master": f"local[*,{_ATTEMPTS}]",
        "spark.app.name": "streams",
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


def check_parts() -> None:
    """Whether Spark can start on this machine, as far as that is seen without starting it.

    Raises:
        MissingDependency: no PySpark.
        PreflightFailed: no Java; a PySpark that is a mix or without Spark.
    """
    preflight.check_installed()
    home = os.environ.get("SPARK_HOME") or pyspark_folder()
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


def kill_jvm() -> None:
    """End the JVM that this process has started, however it is; whoever waits for its answer gets an error."""
    from pyspark import SparkContext  # noqa: PLC0415 - as above

    process = getattr(SparkContext._gateway, "proc", None)  # noqa: SLF001 - PySpark keeps it for its own use
    if process is not None:
        process.kill()


def pyspark_folder() -> str:
    """Where PySpark is installed."""
    import pyspark  # noqa: PLC0415 - optional

    return str(Path(pyspark.__file__).parent)
