"""Runs the job on a Spark session of this process: in its own JVM, or over Spark Connect."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_streams.errors import PreflightFailed, StreamsError, as_sentence
from airflow_provider_streams.lake.process_lock import ProcessLock
from airflow_provider_streams.model.sinks.untouched_table import table_untouched
from airflow_provider_streams.spark.launch import cancellation, preflight
from airflow_provider_streams.spark.launch.lazy_session import LazySession
from airflow_provider_streams.spark.launch.program_result import read_result
from airflow_provider_streams.spark.launch.session_start import SEE_MESSAGES, await_answer
from airflow_provider_streams.spark.launch.submit_output import reason_in
from airflow_provider_streams.spark.settings import effective_settings
from airflow_provider_streams.spark.settings.spark_settings import JAVA_HOME, SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_provider_streams.spark.job.job_spec import JobSpec
    from airflow_provider_streams.spark.job.outcomes import WindowResult

_log = logging.getLogger(__name__)

_EXAMINE = "airflow_provider_streams.spark.launch.examine_program"
_STOP_SECONDS = 3.0
"""Less than Airflow gives a task that it ends."""
_AGAIN_SECONDS = 0.5
"""A job that was between two of its steps begins the next one after it was cancelled."""


class SessionLauncher:
    """Runs the job in this process, on some session, and cancels what the session does."""

    _session: SparkSession | None = None

    def __init__(self, settings: SparkSettings) -> None:
        self._settings = settings
        self._over = threading.Event()
        self.secrets = settings.secrets

    def run(self, job: JobSpec) -> list[WindowResult]:
        """See `Launcher`."""
        from airflow_provider_streams.spark.job.job import run  # noqa: PLC0415 - PySpark is loaded when it is used

        with table_untouched():
            session = self._connect(job)
        self._session = session
        try:
            cancellation.check()  # the task may have been ended while Spark started
            return run(job, session)
        except Exception:
            raise
        except BaseException:  # the task's time is over: it does not wait for what Spark still does
            _interrupt(session)
            raise
        finally:
            self._session = None
            self._over.set()

    def _connect(self, job: JobSpec) -> SparkSession:
        """The session that a job runs on."""
        raise NotImplementedError

    def stop(self) -> None:
        """See `Launcher`."""
        session = self._session
        if session is not None:
            # a thread of its own: a signal's handler would write into the socket that its own thread reads
            threading.Thread(target=self._cancel, args=(session,), name="streams-cancel", daemon=True).start()

    def _cancel(self, session: SparkSession) -> None:
        """Ask until the job is over; after some time, leave a Spark that does not cancel it."""
        _log.info("asking Spark to cancel the job")
        deadline = time.monotonic() + _STOP_SECONDS
        while not self._over.is_set() and time.monotonic() < deadline:
            _interrupt(session)
            self._over.wait(_AGAIN_SECONDS)
        if not self._over.is_set():
            _log.warning("Spark did not cancel the job within %s s: it is left", _STOP_SECONDS)
            self._leave(session)

    def _leave(self, session: SparkSession) -> None:
        """End the wait for this Spark's answer with an error."""
        raise NotImplementedError


def _interrupt(session: SparkSession) -> None:
    """Cancel the session's work in all its threads (a tag of one thread is unknown to others); wait shortly."""

    def ask() -> None:
        with suppress(Exception):  # a Spark that is gone works no more
            session.interruptAll()

    asking = threading.Thread(target=ask, name="streams-interrupt", daemon=True)
    asking.start()
    asking.join(_STOP_SECONDS)


class EmbeddedLauncher(SessionLauncher):
    """Spark in this process."""

    def __init__(self, settings: SparkSettings) -> None:
        super().__init__(settings)
        self._child: subprocess.Popen[str] | None = None
        with suppress(StreamsError):  # raised where Spark starts, which may not be needed
            self.secrets = effective_settings.of_embedded(settings, SparkSettings())[0].secrets

    def _connect(self, job: JobSpec) -> SparkSession:
        from airflow_provider_streams.spark.launch.embedded import check_parts  # noqa: PLC0415 - as above

        if not job.may_need_no_spark:
            return self._start(quick_start=job.leaves_jvm_idle)
        # this window may need no Spark: a missing part fails it now, not only a larger one later
        check_parts(self._settings)
        return cast("SparkSession", LazySession(partial(self._start, quick_start=True)))

    def examine(self) -> dict[str, Any]:
        """See `Launcher`. The job runs in a process of its own: a read in this one may have other settings."""
        with tempfile.TemporaryDirectory(prefix="streams-job-") as folder:  # mode 0700
            wanted, settings, result = (Path(folder) / name for name in ("wanted", "settings.json", "result.json"))
            settings.touch(mode=0o600)
            settings.write_text(json.dumps({"conf": {**self._settings.conf}, "origins": {**self._settings.origins}}))
            files = ["--lifeline", wanted, "--embedded", settings, "--result", result]
            with ProcessLock(wanted).held():
                self._child = subprocess.Popen(  # noqa: S603 - this package
                    [sys.executable, "-m", _EXAMINE, *map(str, files)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    errors="replace",
                )
                said, _ = self._child.communicate()
            if self._child.returncode:
                for line in filter(None, said.splitlines()):
                    _log.info("%s", line)
            try:
                found: dict[str, Any] = read_result(result, "the small job")["found"]
            except PreflightFailed as error:
                reason = reason_in(said.splitlines()).text if SEE_MESSAGES in str(error) else ""
                raise PreflightFailed(f"{as_sentence(error)} They say: {reason}") if reason else error from None
            return found

    def stop(self) -> None:
        """See `Launcher`."""
        if self._child is not None:
            self._child.kill()
        super().stop()

    def _start(self, *, quick_start: bool) -> SparkSession:
        from airflow_provider_streams.spark.launch.embedded import embedded_session  # noqa: PLC0415 - as above

        with table_untouched():
            session = embedded_session(self._settings, quick_start=quick_start)
            preflight.check_driver(session)
            preflight.settle(session, "this process's Spark")
        _log.info("Spark %s runs in this process", session.version)
        return session

    def _leave(self, session: SparkSession) -> None:  # noqa: ARG002
        from airflow_provider_streams.spark.launch.embedded import kill_jvm  # noqa: PLC0415 - as above

        kill_jvm()


_SENT: dict[str, str] = {
    "spark.submit.pyFiles": "pyfile",
    "spark.files": "file",
    "spark.archives": "archive",
    "spark.jars": "jar",
}
"""Settings that name files of this machine; Spark Connect's client sends them, as a kind of artifact."""


class ConnectLauncher(SessionLauncher):
    """A Spark Connect server."""

    def __init__(self, conn_id: str, token: str | None, settings: SparkSettings) -> None:
        super().__init__(settings)
        self._conn_id, self._where = conn_id, f"the Spark Connect server of {conn_id!r}"
        self.secrets = (*settings.secrets, token or "")

    def _leave(self, session: SparkSession) -> None:
        session.client.close()

    def examine(self) -> dict[str, Any]:
        """See `Launcher`."""
        session = self._session = self._open()
        try:
            cancellation.check()
            return preflight.examine(session)
        finally:
            self._session = None
            self._over.set()

    def _connect(self, job: JobSpec) -> SparkSession:  # noqa: ARG002 - any job
        session = self._open()
        preflight.settle(session, self._where)
        return session

    def _open(self) -> SparkSession:
        from airflow_provider_streams.spark.launch.py_files import executor_archive  # noqa: PLC0415

        session = self._new_session()
        await_answer(session, self._where)
        preflight.check_driver(session)
        if self._settings.secrets:
            _log.warning(
                "Spark's settings hold secrets: a Spark Connect server writes what a session sets into its event log, "
                "if it keeps one, as it is. Set them where the server is started"
            )
        preflight.set_late(session, self._settings.without(*_SENT, JAVA_HOME), self._where)
        session.addArtifacts(str(executor_archive()), pyfile=True)
        for name, kind in _SENT.items():
            if paths := self._settings.paths(name):
                session.addArtifacts(*paths, **({} if kind == "jar" else {kind: True}))
        _log.info("Spark %s is reached over Spark Connect", session.version)
        return session

    def _new_session(self) -> SparkSession:
        from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook  # noqa: PLC0415 - optional
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.remote(SparkConnectHook(self._conn_id).get_connection_url())
        try:
            session: SparkSession = builder.getOrCreate()
        except PySparkRuntimeError as error:
            if error.getCondition() != "SESSION_ALREADY_EXIST":
                raise
            raise PreflightFailed(
                f"{self._where} cannot be reached from this process: a Spark runs in it already, and PySpark has only "
                "one of the two in a process. Run the task in a process of its own, as Airflow's workers do; "
                "`airflow dags test` and `dag.test` run all tasks of a DAG in one process"
            ) from None
        return session
