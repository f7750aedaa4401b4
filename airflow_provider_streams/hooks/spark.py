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
import sys
import tempfile
import threading
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from airflow_provider_streams.errors import InvalidRequest, MissingDependency, PreflightFailed

if TYPE_CHECKING:
    from airflow.sdk import Connection
    from pyspark.sql import SparkSession

    from airflow_provider_streams.model.landing import Landed
    from airflow_provider_streams.spark.chunk import ChunkSpec, WindowResult
    from airflow_provider_streams.spark.spec import JobSpec

    Work = JobSpec | ChunkSpec

_log = logging.getLogger(__name__)

_SUBMIT_TYPES = {"spark", "yarn", "k8s", "local"}
_STOP_SECONDS = 10.0

_ENTRY = """\
import sys
from airflow_provider_streams.spark.job import main
sys.exit(main())
"""


class Launcher(Protocol):
    """One way to reach a Spark."""

    def run(self, work: Work) -> Any:
        """Run one job to its end: the receipt of a window, or the results of a chunk."""

    def stop(self) -> None:
        """End the running job from another thread or a signal handler; does nothing when none runs."""


_running: list[Launcher] = []


def launch(spec: JobSpec, conn_id: str | None = None, *, conf: Mapping[str, str] | None = None) -> Landed:
    """Run a job where the connection says, and wait for its end.

    Args:
        spec: the job.
        conn_id: a Spark connection; None: Spark inside this process.
        conf: Spark settings; must hold no secret. Spark Connect ignores those that only a server's start can set.

    Raises:
        InvalidRequest: no such connection, or not one of Spark.
        PreflightFailed: this Spark cannot run the job.
        StreamsError: as `spark.job.run`.
    """
    landed: Landed = _launch(spec, conn_id, conf)
    return landed


def launch_chunk(
    chunk: ChunkSpec, conn_id: str | None = None, *, conf: Mapping[str, str] | None = None
) -> list[WindowResult]:
    """As `launch`, for many windows; what became of each, in order.

    Raises:
        StreamsError: what concerns all windows alike, see `spark.many.run_chunk`.
    """
    results: list[WindowResult] = _launch(chunk, conn_id, conf)
    return results


def _launch(work: Work, conn_id: str | None, conf: Mapping[str, str] | None) -> Any:
    launcher = launcher_for(conn_id, conf=conf)
    _running.append(launcher)
    try:
        return launcher.run(work)
    finally:
        _running.remove(launcher)


def cancel() -> None:
    """End the jobs that `launch` runs in this process; for `on_kill`."""
    for launcher in tuple(_running):
        launcher.stop()


def launcher_for(conn_id: str | None, *, conf: Mapping[str, str] | None = None) -> Launcher:
    """The way that a connection's type names.

    Raises:
        InvalidRequest: no such connection, or not one of Spark.
        MissingDependency: Airflow's Spark provider is not installed.
    """
    settings = dict(conf or {})
    if conn_id is None:
        return EmbeddedLauncher(settings)
    connection = _connection(conn_id)
    _check_provider()
    if connection.conn_type == "spark_connect":
        return ConnectLauncher(conn_id, connection.password, settings)
    if connection.conn_type in _SUBMIT_TYPES:
        return SubmitLauncher(conn_id, connection, settings)
    raise InvalidRequest(
        f"connection {conn_id!r} is of type {connection.conn_type!r}: reading needs one of type 'spark' or "
        "'spark_connect', or none (Spark inside the task)"
    )


class _SessionLauncher:
    """Runs the job in this process, on some session; cancels by tag."""

    _session: SparkSession | None = None

    def __init__(self) -> None:
        self._tag = f"streams-{uuid.uuid4().hex}"

    def _run(self, work: Work, session: SparkSession) -> Any:
        from airflow_provider_streams.spark.chunk import ChunkSpec  # noqa: PLC0415 - PySpark is loaded when it is used
        from airflow_provider_streams.spark.job import run  # noqa: PLC0415
        from airflow_provider_streams.spark.many import run_chunk  # noqa: PLC0415

        self._session = session
        session.addTag(self._tag)
        try:
            return run_chunk(work, session) if isinstance(work, ChunkSpec) else run(work, session)
        finally:
            session.removeTag(self._tag)
            self._session = None

    def stop(self) -> None:
        """See `Launcher`."""
        session = self._session
        if session is None:
            return
        # a thread of its own: a signal handler would otherwise write into the socket its own thread waits on
        stopper = threading.Thread(target=session.interruptTag, args=(self._tag,), daemon=True)
        stopper.start()
        stopper.join(_STOP_SECONDS)
        _log.info("asked Spark to cancel the job")


class EmbeddedLauncher(_SessionLauncher):
    """Spark in this process."""

    def __init__(self, conf: Mapping[str, str]) -> None:
        super().__init__()
        self._conf = conf

    def run(self, work: Work) -> Any:
        """See `Launcher`."""
        from airflow_provider_streams.spark.embedded import embedded_session  # noqa: PLC0415 - as above

        session = embedded_session(self._conf, quick_start=work.is_small)
        _log.info("Spark %s runs in this process", session.version)
        return self._run(work, session)


class ConnectLauncher(_SessionLauncher):
    """A Spark Connect server."""

    def __init__(self, conn_id: str, token: str | None, conf: Mapping[str, str]) -> None:
        super().__init__()
        self._conn_id, self._token, self._conf = conn_id, token, conf

    def run(self, work: Work) -> Any:
        """See `Launcher`."""
        from airflow_provider_streams.spark.failures import typed  # noqa: PLC0415 - as above

        try:
            return self._run(work, self._connect())
        except Exception as error:
            known = typed(error, [self._token or "", *work.secrets.values()])
            if known is error:
                raise
            raise known from None

    def _connect(self) -> SparkSession:
        from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook  # noqa: PLC0415 - optional
        from pyspark.sql import SparkSession

        from airflow_provider_streams.spark.ring import ring_archive  # noqa: PLC0415

        session: SparkSession = SparkSession.builder.remote(
            SparkConnectHook(self._conn_id).get_connection_url()
        ).getOrCreate()
        for name, value in self._conf.items():
            session.conf.set(name, value)
        session.addArtifacts(str(ring_archive()), pyfile=True)
        _log.info("Spark %s is reached over Spark Connect", session.version)
        return session


class SubmitLauncher:
    """spark-submit in client mode: the driver program is a child of this process, on this machine."""

    def __init__(self, conn_id: str, connection: Connection, conf: Mapping[str, str]) -> None:
        self._conn_id, self._conf = conn_id, dict(conf)
        deploy_mode = self._conf.get("spark.submit.deployMode") or connection.extra_dejson.get("deploy-mode")
        if deploy_mode == "cluster":
            raise PreflightFailed(
                f"connection {conn_id!r} asks for deploy mode 'cluster', where a driver's secrets would stand on a "
                "command line and its receipt on another machine. Set deploy-mode to 'client' in the connection's "
                "extra, or reach the cluster over Spark Connect (connection type 'spark_connect')"
            )
        master = f"{connection.conn_type} {connection.host or ''}"
        self._is_local = "local" in master
        self._hook: Any = None

    def run(self, work: Work) -> Any:
        """See `Launcher`."""
        from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook  # noqa: PLC0415 - optional

        from airflow_provider_streams.spark.failures import typed  # noqa: PLC0415 - as above
        from airflow_provider_streams.spark.lifeline import Life  # noqa: PLC0415
        from airflow_provider_streams.spark.ring import ring_archive  # noqa: PLC0415

        with tempfile.TemporaryDirectory(prefix="streams-job-") as folder:  # mode 0700
            program, spec_file, result_file, wanted = (
                Path(folder) / name for name in ("job.py", "spec.json", "result.json", "wanted")
            )
            program.write_text(_ENTRY)
            spec_file.touch(mode=0o600)
            spec_file.write_text(json.dumps(work.to_json()))
            self._hook = SparkSubmitHook(
                conf=self._conf,
                conn_id=self._conn_id,
                name=_title(work),
                py_files=str(ring_archive()),
                application_args=["--spec", str(spec_file), "--result", str(result_file), "--lifeline", str(wanted)],
            )
            try:
                with Life(wanted).lived():  # spark-submit and its driver program outlive a killed task
                    self._hook.submit(str(program), env=self._environment(work))
            except Exception as error:
                known = _result(result_file) or typed(error, work.secrets.values())
                if known is error:
                    raise
                raise known from None
            finally:
                self._hook = None
            return _answer(result_file)

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


def _result(result_file: Path) -> Exception | None:
    """The typed error that the job left, if it came to that."""
    from airflow_provider_streams.spark.failures import rebuild  # noqa: PLC0415 - as above

    if not result_file.exists():
        return None
    error = json.loads(result_file.read_text()).get("error")
    return rebuild(error["type"], error["message"]) if error else None


def _answer(result_file: Path) -> Any:
    from airflow_provider_streams.model.landing import Landed  # noqa: PLC0415 - as above
    from airflow_provider_streams.spark.chunk import results_from_json  # noqa: PLC0415

    if not result_file.exists():
        raise PreflightFailed("spark-submit ended without an error and without a result: see its output above")
    result = json.loads(result_file.read_text())
    return results_from_json(result["results"]) if "results" in result else Landed.from_json(result["landed"])


def _title(work: Work) -> str:
    """What Spark's UI calls the application."""
    from airflow_provider_streams.spark.chunk import ChunkSpec  # noqa: PLC0415 - as above

    if isinstance(work, ChunkSpec):
        return f"streams {len(work.specs)} windows from {work.how.plan.window.label}"
    return f"streams {work.plan.fingerprint[:12]}"
