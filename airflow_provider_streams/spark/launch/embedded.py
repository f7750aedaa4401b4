"""Spark inside this process: `local[*]`, started when first needed and kept until the process ends."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import PreflightFailed, as_clause, as_sentence
from airflow_provider_streams.spark.launch import preflight, py4j_log
from airflow_provider_streams.spark.launch.java_home_for_spark import spark_java_home
from airflow_provider_streams.spark.launch.java_search import Java, JavaMissing, find_java
from airflow_provider_streams.spark.launch.session_start import SEE_MESSAGES, session_start
from airflow_provider_streams.spark.settings import effective_settings, variables
from airflow_provider_streams.spark.settings.effective_settings import OUR_ORIGIN
from airflow_provider_streams.spark.settings.spark_settings import JAVA_HOME, SparkSettings
from airflow_provider_streams.spark.settings.submit_arguments import VARIABLE as ARGUMENTS
from airflow_provider_streams.spark.settings.submit_arguments import SubmitArguments

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A JVM compiles as it starts: a small window ends before faster code pays, and tasks that write rows themselves leave
the JVM nothing to do."""

_log = logging.getLogger(__name__)

_begun_with: dict[str, str] = {}
"""The user's settings when this process's session was started."""

_ATTEMPTS = 3

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
    JAVA_HOME,
)
"""Settings of the JVM that spark-submit starts: a later session in that JVM keeps them."""


def embedded_session(settings: SparkSettings | None = None, *, quick_start: bool = False) -> SparkSession:
    """The process's Spark session, or a local one, made now.

    Args:
        settings: the user's; they override ours.
        quick_start: prefer a short start over speed in the long run; counts for the first session only.

    Raises:
        MissingDependency: no PySpark.
        PreflightFailed: no Java, a too old one, a PySpark of mixed versions or without Spark; or Spark or its JVM
            already runs in this process, and no longer takes the settings.
    """
    given = settings or SparkSettings()
    preflight.check_installed()
    py4j_log.silence_py4j()
    running = _running(given)
    if running is None:
        return _start(given, quick_start=quick_start)
    why = "Spark runs in this process already, and"
    if given.conf.get(JAVA_HOME) not in {None, _begun_with.get(JAVA_HOME)}:
        preflight.refuse_late([JAVA_HOME], why)  # a session would take the name, and do nothing with it
    preflight.set_late(running, given, why, begun_with=_begun_with)
    return running


def _running(settings: SparkSettings) -> SparkSession | None:
    """The session of this process: a thread that did not start it has no active one."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - optional, checked above

    active = SparkSession.getActiveSession()
    if active is not None and not _is_of_connect(active):
        return active
    check_parts(settings)
    from pyspark import SparkContext  # noqa: PLC0415 - pyspark-client has none

    return SparkSession.builder.getOrCreate() if SparkContext._active_spark_context else None  # noqa: SLF001


def _is_of_connect(session: SparkSession) -> bool:
    """Whether a session's Spark is elsewhere: one of an earlier task in this process, for example."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def _start(given: SparkSettings, *, quick_start: bool) -> SparkSession:
    # workers must be this Python: it has the packages that a read needs
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings, arguments = effective(given, quick_start=quick_start)
    java = java_for(settings)
    _log.info("Spark's JVM runs on %s", java)
    from pyspark.sql import SparkSession  # noqa: PLC0415 - optional

    with _passed(given, settings, arguments) as conf:
        try:
            _start_jvm(java, settings)
        except PreflightFailed as error:
            # PySpark forks for its JVM; next to gRPC threads (an open Pravega hook), some forks in a hundred die
            _log.warning("Spark's JVM ended as it started (%s): it is started once more", error.__cause__)
            _start_jvm(java, settings)
        with session_start("Spark in this process", _given(settings, settings.conf)):
            session = SparkSession.builder.config(map={**conf}).getOrCreate()
    _begun_with.clear()
    _begun_with.update(given.conf)
    return session


def effective(given: SparkSettings, *, quick_start: bool = False) -> tuple[SparkSettings, SubmitArguments]:
    """The settings that a JVM started now gets, and what else `PYSPARK_SUBMIT_ARGS` says.

    Raises:
        PreflightFailed: see `effective_settings.of_embedded`.
    """
    ours = _ours(quick_start=quick_start)
    return effective_settings.of_embedded(given, SparkSettings(ours, dict.fromkeys(ours, OUR_ORIGIN)))


def _given(settings: SparkSettings, names: Iterable[str]) -> str:
    """The variables and settings that Spark starts with, and where the user wrote them; empty: none."""
    theirs = [name for name in names if name in settings.conf and settings.origin(name) != OUR_ORIGIN]
    return "; ".join([*variables.of_the_jvm(), *(f"{name} of {settings.origin(name)}" for name in theirs)])


def _start_jvm(java: Java, settings: SparkSettings) -> None:
    """Start this process's JVM on that Java, if it has none yet; raises `PreflightFailed`."""
    from pyspark import SparkContext  # noqa: PLC0415 - as above
    from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

    with SparkContext._lock:  # noqa: SLF001 - as PySpark does where it starts one itself
        if SparkContext._gateway is not None:  # noqa: SLF001
            return
        arguments = _JvmArguments(JAVA_HOME=str(spark_java_home(java)))
        try:
            gateway = launch_gateway(None, arguments)  # type: ignore[no-untyped-call]
        except PySparkRuntimeError as error:
            _close_pipe(error)
            said = as_clause(" ".join(str(error).split()))
            given = _given(settings, _OF_THE_JVM)
            raise PreflightFailed(
                f"Spark does not start in this process ({said}) on {java}. {SEE_MESSAGES}"
                f"{f'. It was given {given}' if given else ''}"
            ) from error
        SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001


class _JvmArguments(dict[str, Any]):
    """Arguments for `Popen`. PySpark sets `env` as a copy of the process's environment: ours is added to that copy."""

    def __init__(self, **variables: str) -> None:
        super().__init__()
        self._variables = variables

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, {**value, **self._variables} if name == "env" else value)


def _close_pipe(failure: BaseException) -> None:
    """Close our end of the pipe to a JVM that did not start; PySpark does not."""
    for frame, _ in traceback.walk_tb(failure.__traceback__):
        process = frame.f_locals.get("proc")
        if isinstance(process, subprocess.Popen) and process.stdin:
            process.stdin.close()


@contextmanager
def _passed(given: SparkSettings, settings: SparkSettings, arguments: SubmitArguments) -> Iterator[dict[str, str]]:
    """The settings for the builder. A JVM that starts gets them by a private file, for its command line is public.

    A running JVM gets them over its private socket.
    """
    from pyspark import SparkContext  # noqa: PLC0415 - as above

    classic = {"spark.api.mode": "classic"}  # whatever SPARK_API_MODE and the package pyspark-connect say
    if SparkContext._gateway is not None:  # noqa: SLF001 - an earlier session was stopped
        _check_late(given)
        yield {name: value for name, value in settings.conf.items() if name not in _OF_THE_JVM} | classic
    else:
        with _properties_file(settings, arguments):
            yield classic


def _check_late(settings: SparkSettings) -> None:
    """Refuse settings that only a starting JVM takes, if they differ from those of the running one."""
    from pyspark import SparkConf  # noqa: PLC0415 - as above

    told = SparkConf()  # what the running JVM was started with
    preflight.refuse_late(
        [name for name in _OF_THE_JVM if settings.conf.get(name, told.get(name)) != told.get(name)],
        "Spark's JVM runs in this process already, and",
    )


@contextmanager
def _properties_file(settings: SparkSettings, arguments: SubmitArguments) -> Iterator[None]:
    """Have a JVM that starts in this block read the settings from a private file, and from nowhere else."""
    before = os.environ.get(ARGUMENTS)
    with tempfile.TemporaryDirectory(prefix="streams-spark-") as folder:  # mode 0700
        file = Path(folder) / "spark.properties"
        settings.write(file)
        os.environ[ARGUMENTS] = arguments.around(file)
        try:
            yield
        finally:
            if before is None:
                del os.environ[ARGUMENTS]
            else:
                os.environ[ARGUMENTS] = before


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
        # stop the Python of a cancelled task at once: it holds nothing durable
        "spark.python.task.killTimeout": "1s",
        **({"spark.driver.extraJavaOptions": _QUICK_START} if quick_start else {}),
    }


def check_parts(settings: SparkSettings) -> None:
    """Check that Spark can start on this machine, as far as possible without starting it.

    Raises:
        MissingDependency: no PySpark.
        PreflightFailed: no Java; a PySpark of mixed versions or without Spark; a variable or a file that asks for what
            cannot be, see `effective` and `variables.check_classic`.
    """
    java_for(startable(settings))


def startable(settings: SparkSettings) -> SparkSettings:
    """The settings that Spark inside the task gets, if it can start apart from its Java.

    Raises:
        MissingDependency, PreflightFailed: as `check_parts`.
    """
    preflight.check_installed()
    variables.check_classic()
    return effective(settings)[0]


def java_for(settings: SparkSettings) -> Java:
    """The Java that a JVM of these settings runs on.

    Raises:
        PreflightFailed: there is none that Spark can use.
    """
    try:
        return find_java(settings.conf.get(JAVA_HOME))
    except JavaMissing as error:
        raise PreflightFailed(
            f"Spark inside the task cannot start. {as_sentence(error)} Or name a Spark connection with spark_conn_id"
        ) from None


def kill_jvm() -> None:
    """End the JVM that this process has started; a thread that waits for its answer gets an error."""
    from pyspark import SparkContext  # noqa: PLC0415 - as above

    process = getattr(SparkContext._gateway, "proc", None)  # noqa: SLF001 - PySpark has no public name for it
    if process is not None:
        process.kill()
