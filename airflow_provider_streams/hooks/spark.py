"""Runs the job where a Spark connection says: in this process, over Spark Connect, or by spark-submit.

| connection | where |
|---|---|
| none | `local[*]` in the task's own process |
| type `spark_connect` | a Spark Connect server; the task's process is its client |
| type `spark` (also `yarn`, `k8s`, `local`) | spark-submit in client mode, through Airflow's own hook |
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import logging
import os
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from airflow_provider_streams.errors import InvalidRequest, MissingDependency, PreflightFailed
from airflow_provider_streams.spark import ending, preflight
from airflow_provider_streams.spark.session_when_needed import SessionWhenNeeded
from airflow_provider_streams.spark.settings import SparkSettings, defaults_files

if TYPE_CHECKING:
    from airflow.sdk import Connection
    from pyspark.sql import SparkSession

    from airflow_provider_streams.model.landing import Landed
    from airflow_provider_streams.spark.batch_spec import ChunkSpec, WindowResult
    from airflow_provider_streams.spark.spec import JobSpec

    Work = JobSpec | ChunkSpec

_log = logging.getLogger(__name__)

_SUBMIT_TYPES = {"spark", "yarn", "k8s", "local"}
_LOCAL = re.compile(r"local(\[.*\]|-cluster\[.*\])?")
_STOP_SECONDS = 3.0
"""Less than Airflow gives a task that it ends."""
_AGAIN_SECONDS = 0.5
"""A job that was between two of its steps begins the next one after it was cancelled."""

_ENTRY = """\
import sys
from airflow_provider_streams.spark.program import main
sys.exit(main())
"""


class Launcher(Protocol):
    """One way to reach a Spark."""

    secrets: tuple[str, ...]
    """What it was told that must not be shown."""

    def run(self, work: Work) -> Any:
        """Run one job to its end: the receipt of a window, or the results of a chunk."""

    def stop(self) -> None:
        """End the running job from another thread or a signal handler; does nothing when none runs."""


_running: list[Launcher] = []


def launch(spec: JobSpec, conn_id: str | None = None, spark: Mapping[str, Any] | None = None) -> Landed:
    """Run a job where the connection says, and wait for its end.

    Args:
        spec: the job.
        conn_id: a Spark connection; None: Spark inside this process.
        spark: the user's settings, see `spark.settings`; they count more than the connection's own.

    Raises:
        InvalidRequest: no such connection, or not one of Spark; unknown settings.
        PreflightFailed: this Spark cannot run the job.
        TaskEnded: `cancel` was called meanwhile.
        StreamsError: as `spark.job.run`.
    """
    landed: Landed = _launch(spec, conn_id, spark)
    return landed


def launch_chunk(
    chunk: ChunkSpec, conn_id: str | None = None, spark: Mapping[str, Any] | None = None
) -> list[WindowResult]:
    """As `launch`, for many windows; what became of each, in order.

    Raises:
        StreamsError: what concerns all windows alike, see `spark.batch_job.run_chunk`.
    """
    results: list[WindowResult] = _launch(chunk, conn_id, spark)
    return results


def _launch(work: Work, conn_id: str | None, spark: Mapping[str, Any] | None) -> Any:
    from airflow_provider_streams.spark.failures import typed  # noqa: PLC0415 - what runs on the cluster, when used

    launcher = launcher_for(conn_id, SparkSettings.of(spark))
    _mask(launcher.secrets)
    _running.append(launcher)
    try:
        return launcher.run(work)
    except Exception as error:
        known = typed(error, [*work.secrets.values(), *launcher.secrets])
        if known is error:
            raise
        raise known from None  # Spark's text is pages of traceback, and may quote a secret
    except BaseException:
        launcher.stop()  # the task's time is over: nobody waits for what Spark still does
        raise
    finally:
        _running.remove(launcher)
        if not _running:
            ending.forget()


def _mask(secrets: tuple[str, ...]) -> None:
    """Airflow hides them in the task's log from now on: what Spark prints is in it."""
    if not any(secrets):
        return
    from airflow.sdk.log import mask_secret  # noqa: PLC0415 - tests of the launchers need no Airflow

    for secret in filter(None, secrets):
        mask_secret(secret)


def cancel() -> None:
    """End the jobs that `launch` runs in this process, which then raises `TaskEnded`; for `on_kill`."""
    if _running:
        ending.end()
    for launcher in tuple(_running):
        launcher.stop()


def launcher_for(conn_id: str | None, settings: SparkSettings | None = None) -> Launcher:
    """The way that a connection's type names.

    Raises:
        InvalidRequest: no such connection, or not one of Spark; unknown settings in its extra.
        MissingDependency: Airflow's Spark provider is not installed.
        PreflightFailed: a mix of PySpark versions, or a driver program that would run elsewhere.
    """
    given = settings or SparkSettings()
    if conn_id is None:
        return EmbeddedLauncher(given)
    connection = _connection(conn_id)
    _check_provider()
    if connection.conn_type not in {"spark_connect", *_SUBMIT_TYPES}:
        raise InvalidRequest(
            f"connection {conn_id!r} is of type {connection.conn_type!r}: reading needs one of type 'spark' or "
            "'spark_connect', or none (Spark inside the task)"
        )
    preflight.check_installed()
    given = given.over(_settings_of(conn_id, connection))
    if connection.conn_type == "spark_connect":
        return ConnectLauncher(conn_id, connection.password, given)
    return SubmitLauncher(conn_id, connection, given)


def _settings_of(conn_id: str, connection: Connection) -> SparkSettings:
    """What the connection says: its extra `spark`, of the same shape as the operators' argument."""
    try:
        return SparkSettings.of(connection.extra_dejson.get("spark"))
    except (InvalidRequest, AttributeError) as error:
        raise InvalidRequest(f"connection {conn_id!r}, extra 'spark': {error}") from None


class _SessionLauncher:
    """Runs the job in this process, on some session, and cancels what the session does."""

    _session: SparkSession | None = None

    def __init__(self, settings: SparkSettings) -> None:
        self._settings = settings
        self._over = threading.Event()
        self.secrets = settings.secrets

    def _run(self, work: Work, session: SparkSession) -> Any:
        from airflow_provider_streams.spark.batch_job import run_chunk  # noqa: PLC0415
        from airflow_provider_streams.spark.batch_spec import ChunkSpec  # noqa: PLC0415 - PySpark is loaded when it is used
        from airflow_provider_streams.spark.job import run  # noqa: PLC0415

        self._session = session
        try:
            ending.check()  # the task may have been ended while Spark started
            return run_chunk(work, session) if isinstance(work, ChunkSpec) else run(work, session)
        except Exception:
            raise
        except BaseException:  # the task's time is over: nobody waits for what Spark still does
            _interrupt(session)
            raise
        finally:
            self._session = None
            self._over.set()

    def stop(self) -> None:
        """See `Launcher`."""
        session = self._session
        if session is not None:
            # a thread of its own: a signal's handler would write into the socket that its own thread reads
            threading.Thread(target=self._cancel, args=(session,), name="streams-cancel", daemon=True).start()

    def _cancel(self, session: SparkSession) -> None:
        """Ask until the job is over; then no longer wait for a Spark that does not do it."""
        _log.info("asking Spark to cancel the job")
        deadline = time.monotonic() + _STOP_SECONDS
        while not self._over.is_set() and time.monotonic() < deadline:
            _interrupt(session)
            self._over.wait(_AGAIN_SECONDS)
        if not self._over.is_set():
            _log.warning("Spark did not cancel the job within %s s: it is left", _STOP_SECONDS)
            self._leave(session)

    def _leave(self, session: SparkSession) -> None:
        """Make whoever waits for this Spark's answer get an error."""
        raise NotImplementedError


def _interrupt(session: SparkSession) -> None:
    """Cancel what the session does, in all its threads (a tag of one thread is unknown to others); wait shortly."""

    def ask() -> None:
        with suppress(Exception):  # a Spark that is gone works no more
            session.interruptAll()

    asking = threading.Thread(target=ask, name="streams-interrupt", daemon=True)
    asking.start()
    asking.join(_STOP_SECONDS)


class EmbeddedLauncher(_SessionLauncher):
    """Spark in this process."""

    def run(self, work: Work) -> Any:
        """See `Launcher`."""
        from airflow_provider_streams.spark.embedded import check_parts  # noqa: PLC0415 - as above

        if not work.may_need_no_spark:
            return self._run(work, self._start(quick_start=work.leaves_jvm_idle))
        check_parts()  # today's window may do without: better said now than on the day of a larger one
        return self._run(work, cast("SparkSession", SessionWhenNeeded(partial(self._start, quick_start=True))))

    def _start(self, *, quick_start: bool) -> SparkSession:
        from airflow_provider_streams.spark.embedded import embedded_session  # noqa: PLC0415 - as above

        session = embedded_session(self._settings, quick_start=quick_start)
        preflight.check_driver(session)
        _log.info("Spark %s runs in this process", session.version)
        return session

    def _leave(self, session: SparkSession) -> None:  # noqa: ARG002
        from airflow_provider_streams.spark.embedded import kill_jvm  # noqa: PLC0415 - as above

        kill_jvm()


_SENT: dict[str, str] = {
    "spark.submit.pyFiles": "pyfile",
    "spark.files": "file",
    "spark.archives": "archive",
    "spark.jars": "jar",
}
"""Settings that name files of this machine; Spark Connect's client sends them, as a kind of artifact."""


class ConnectLauncher(_SessionLauncher):
    """A Spark Connect server."""

    def __init__(self, conn_id: str, token: str | None, settings: SparkSettings) -> None:
        super().__init__(settings)
        self._conn_id = conn_id
        self.secrets = (*settings.secrets, token or "")

    def run(self, work: Work) -> Any:
        """See `Launcher`."""
        return self._run(work, self._connect())

    def _leave(self, session: SparkSession) -> None:
        session.client.close()

    def _connect(self) -> SparkSession:
        from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook  # noqa: PLC0415 - optional
        from pyspark.sql import SparkSession

        from airflow_provider_streams.spark.py_files import ring_archive  # noqa: PLC0415

        session: SparkSession = SparkSession.builder.remote(
            SparkConnectHook(self._conn_id).get_connection_url()
        ).getOrCreate()
        preflight.check_driver(session)
        if self._settings.secrets:
            _log.warning(
                "Spark's settings hold secrets: a Spark Connect server writes what a session sets into its event log, "
                "if it keeps one, as it is. Set them where the server is started"
            )
        preflight.set_late(session, self._settings.without(*_SENT), f"the Spark Connect server of {self._conn_id!r}")
        session.addArtifacts(str(ring_archive()), pyfile=True)
        for name, kind in _SENT.items():
            if paths := self._settings.paths(name):
                session.addArtifacts(*paths, **({} if kind == "jar" else {kind: True}))
        _log.info("Spark %s is reached over Spark Connect", session.version)
        return session


class SubmitLauncher:
    """spark-submit in client mode: the driver program is a child of this process, on this machine."""

    def __init__(self, conn_id: str, connection: Connection, settings: SparkSettings) -> None:
        self._conn_id, self._settings = conn_id, settings
        self.secrets = settings.secrets
        if connection.extra_dejson.get("deploy-mode") == "cluster":
            raise PreflightFailed(
                f"connection {conn_id!r} asks for deploy mode 'cluster', where a driver's secrets would stand on a "
                "command line and its receipt on another machine. Set deploy-mode to 'client' in the connection's "
                "extra, or reach the cluster over Spark Connect (connection type 'spark_connect')"
            )
        self._binary = connection.extra_dejson.get("spark-binary") or "spark-submit"
        self._is_local = is_local(connection)
        self._hook: Any = None

    def run(self, work: Work) -> Any:
        """See `Launcher`."""
        from airflow_provider_streams.lake.process_lock import Life  # noqa: PLC0415 - as above

        with tempfile.TemporaryDirectory(prefix="streams-job-") as folder:  # mode 0700
            files = _Files(Path(folder))
            files.write(work, self._settings, self._binary)
            self._hook = self._hook_for(work, files)
            try:
                ending.check()  # as above
                with Life(files.wanted).lived():  # spark-submit and its driver program outlive a killed task
                    self._hook.submit(str(files.program), env=self._environment(work))
            except Exception:
                if (known := _failure(files.result)) is not None:
                    raise known from None
                raise
            finally:
                self._hook = None
            return _answer(files.result)

    def _hook_for(self, work: Work, files: _Files) -> Any:
        from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook  # noqa: PLC0415 - optional

        from airflow_provider_streams.spark.py_files import ring_archive  # noqa: PLC0415 - as above

        return SparkSubmitHook(
            conn_id=self._conn_id,
            name=self._settings.conf.get("spark.app.name") or _title(work),
            properties_file=str(files.properties),
            py_files=",".join((str(ring_archive()), *self._settings.paths("spark.submit.pyFiles"))),
            application_args=files.arguments,
        )

    def stop(self) -> None:
        """See `Launcher`."""
        hook = self._hook
        if hook is not None:
            hook.on_kill()

    def _environment(self, work: Work) -> dict[str, str]:
        """The child's: secrets travel here, for a command line is public. Set by `Popen`, in every master alike."""
        here = str(Path(sys.executable).parent)
        environment = {**os.environ, **work.secret_environment()}
        environment["PATH"] = f"{environment.get('PATH', os.defpath)}{os.pathsep}{here}"
        environment.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        if self._is_local:
            environment["PYSPARK_PYTHON"] = sys.executable
        folder = _folder_of(work.transform)
        if folder:
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, [environment.get("PYTHONPATH"), folder]))
        return environment


class _Files:
    """What this process and the driver program tell each other, in a private folder."""

    def __init__(self, folder: Path) -> None:
        self.program, self.spec, self.result = folder / "job.py", folder / "spec.json", folder / "result.json"
        self.wanted, self.properties = folder / "wanted", folder / "spark.properties"

    @property
    def arguments(self) -> list[str]:
        """Those of the driver program."""
        return ["--spec", str(self.spec), "--result", str(self.result), "--lifeline", str(self.wanted)]

    def write(self, work: Work, settings: SparkSettings, binary: str) -> None:
        """What the child reads."""
        self.program.write_text(_ENTRY)
        self.spec.touch(mode=0o600)
        self.spec.write_text(json.dumps(work.to_json()))
        found = shutil.which(binary)
        home = Path(found).resolve().parent.parent if found else None
        settings.without("spark.submit.pyFiles", "spark.app.name").write(self.properties, defaults_files(home))


def is_local(connection: Connection) -> bool:
    """Whether Spark's workers run on this machine: the master is `local`, `local[..]` or `local-cluster[..]`."""
    return connection.conn_type == "local" or bool(_LOCAL.fullmatch(connection.host or ""))


def _connection(conn_id: str) -> Connection:
    from airflow.sdk import BaseHook  # noqa: PLC0415 - tests of the launchers need no Airflow
    from airflow.sdk.exceptions import AirflowNotFoundException  # noqa: PLC0415

    try:
        return BaseHook.get_connection(conn_id)
    except AirflowNotFoundException as error:
        raise InvalidRequest(
            f"there is no connection {conn_id!r}: create one of type 'spark' or 'spark_connect', or name none"
        ) from error


def _check_provider() -> None:
    try:
        importlib.import_module("airflow.providers.apache.spark")
    except ImportError as error:
        raise MissingDependency("airflow.providers.apache.spark", "spark") from error


def _folder_of(transform: str | None) -> str | None:
    """Where the transform's top package lies: the child does not have this process's import path."""
    if transform is None:
        return None
    found = importlib.util.find_spec(transform.partition(":")[0].partition(".")[0])
    if found is None or found.origin is None:
        return None
    origin = Path(found.origin)
    return str(origin.parent.parent if found.submodule_search_locations else origin.parent)


def _failure(result_file: Path) -> Exception | None:
    """The typed error that the job left, if it came to that."""
    from airflow_provider_streams.spark.failures import rebuild  # noqa: PLC0415 - as above

    if not result_file.exists():
        return None
    error = json.loads(result_file.read_text()).get("error")
    return rebuild(error["type"], error["message"]) if error else None


def _answer(result_file: Path) -> Any:
    from airflow_provider_streams.model.landing import Landed  # noqa: PLC0415 - as above
    from airflow_provider_streams.spark.batch_spec import results_from_json  # noqa: PLC0415

    if not result_file.exists():
        raise PreflightFailed("spark-submit ended without an error and without a result: see its output above")
    result = json.loads(result_file.read_text())
    return results_from_json(result["results"]) if "results" in result else Landed.from_json(result["landed"])


def _title(work: Work) -> str:
    """What Spark's UI calls the application."""
    from airflow_provider_streams.spark.batch_spec import ChunkSpec  # noqa: PLC0415 - as above

    if isinstance(work, ChunkSpec):
        return f"streams {len(work.specs)} windows from {work.how.plan.window.label}"
    return f"streams {work.plan.fingerprint[:12]}"
