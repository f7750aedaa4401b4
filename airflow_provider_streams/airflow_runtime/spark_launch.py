"""Runs the job as a Spark connection says: in this process, over Spark Connect, or by spark-submit.

| connection | where |
|---|---|
| none | `local[*]` in the task's own process |
| type `spark_connect` | a Spark Connect server; the task's process is its client |
| type `spark` (also `yarn`, `k8s`, `local`) | spark-submit in client mode, through Airflow's own hook |
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from airflow_provider_streams.airflow_features import supervisor_turn
from airflow_provider_streams.airflow_runtime.spark_session_launchers import ConnectLauncher, EmbeddedLauncher
from airflow_provider_streams.airflow_runtime.spark_submit import SubmitLauncher
from airflow_provider_streams.connections.extra import extra_of
from airflow_provider_streams.connections.spark_connection import CONNECT, TYPES, check_spark_connection
from airflow_provider_streams.errors import InvalidRequest, foreseen
from airflow_provider_streams.model.optional_dependencies import require
from airflow_provider_streams.model.sinks.untouched_table import left_untouched, mark_untouched, table_untouched
from airflow_provider_streams.spark.launch import cancellation, preflight
from airflow_provider_streams.spark.settings.spark_settings import SparkSettings

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from airflow_provider_streams.spark.job.job_spec import JobSpec
    from airflow_provider_streams.spark.job.outcomes import WindowResult

T = TypeVar("T")

EXAMINE_SECONDS = 180.0
"""How long the small job of an examination may take: a cluster may have to start its executors."""


class Launcher(Protocol):
    """One way to reach a Spark."""

    secrets: tuple[str, ...]
    """Values that must not be shown."""

    def run(self, job: JobSpec) -> list[WindowResult]:
        """Run one job to its end; what became of each window."""

    def examine(self) -> dict[str, Any]:
        """What driver and executors have, by one small job; see `preflight.examine`."""

    def stop(self) -> None:
        """End the running job from another thread or a signal handler; does nothing when none runs."""


_running: list[Launcher] = []


def launch(job: JobSpec, conn_id: str | None = None, settings: SparkSettings | None = None) -> list[WindowResult]:
    """Run a job as the connection says, and wait for its end; what became of each window, in order.

    Args:
        job: the windows.
        conn_id: a Spark connection; None: Spark inside this process.
        settings: the user's; they count more than the connection's own.

    Raises:
        InvalidRequest: no such connection, or not one of Spark; unknown settings in its extra.
        PreflightFailed: this Spark cannot run the job.
        TaskCancelled: `cancel` was called meanwhile.
        StreamsError: what concerns all windows alike, see `spark.job.job.run`.
    """
    from airflow_provider_streams.model.sinks.landing import Landed  # noqa: PLC0415 - what runs on the cluster, when used

    with table_untouched():
        launcher = launcher_for(conn_id, settings)
    hidden = [*job.how.hidden, *launcher.secrets]
    results = _guarded(launcher, lambda: launcher.run(job), hidden)
    return [one if isinstance(one, Landed) else one.without(hidden) for one in results]


def examine(conn_id: str | None, settings: SparkSettings | None = None) -> dict[str, Any]:
    """What driver and executors of a connection's Spark have, by one small job, see `preflight.examine`.

    Without a connection, a process of its own runs it, and starts Spark as a task would.

    Raises:
        TaskCancelled: it did not end in `EXAMINE_SECONDS`.
        InvalidRequest, PreflightFailed, StreamsError: as `launch`.
    """
    launcher = launcher_for(conn_id, settings)
    timer = threading.Timer(EXAMINE_SECONDS, cancel)
    timer.daemon = True
    timer.start()
    try:
        return _guarded(launcher, launcher.examine, launcher.secrets)
    finally:
        timer.cancel()


def _guarded(launcher: Launcher, act: Callable[[], T], hidden: Sequence[str]) -> T:
    """What a launcher does, which `cancel` can end; its errors are typed, and hold none of the hidden texts."""
    from airflow_provider_streams.spark.error_transport import typed  # noqa: PLC0415 - what runs on the cluster, when used

    _mask(launcher.secrets)
    _running.append(launcher)
    try:
        return act()
    except Exception as error:
        known = typed(error, hidden)
        if known is error:
            raise
        if left_untouched(error):
            mark_untouched(known)
        raise known from None  # Spark's text is pages of traceback, and may quote a secret
    except BaseException:
        launcher.stop()  # the task's time is over: it does not wait for what Spark still does
        raise
    finally:
        _running.remove(launcher)
        if not _running:
            cancellation.forget()


def _mask(secrets: tuple[str, ...]) -> None:
    """Airflow hides them in the task's log from now on, which has Spark's output."""
    if not any(secrets):
        return
    from airflow.providers.common.compat.sdk import mask_secret  # noqa: PLC0415 - tests of the launchers need no Airflow

    with supervisor_turn():
        for secret in filter(None, secrets):
            mask_secret(secret)


def cancel() -> None:
    """End the jobs that `launch` runs in this process, which then raises `TaskCancelled`; for `on_kill`."""
    if _running:
        cancellation.end()
    for launcher in tuple(_running):
        launcher.stop()


def launcher_for(conn_id: str | None, settings: SparkSettings | None = None) -> Launcher:
    """The launcher for a connection's type.

    Raises:
        InvalidRequest: no such connection, or not one of Spark; unknown settings in its extra.
        MissingDependency: Airflow's Spark provider is not installed.
        PreflightFailed: a mix of PySpark versions, or a driver program that would run elsewhere.
    """
    given = settings or SparkSettings()
    if conn_id is None:
        return EmbeddedLauncher(given)
    with foreseen():
        connection = _connection(conn_id)
        check_spark_connection(connection)
        check_installed(conn_id)
        given = given.over(_settings_of(conn_id, connection))
    if connection.conn_type == CONNECT:
        return ConnectLauncher(conn_id, connection.password, given)
    return SubmitLauncher(conn_id, connection, given)


def _settings_of(conn_id: str, connection: Connection) -> SparkSettings:
    """Those in the connection's extra `spark`, which has the shape of the operators' argument."""
    try:
        return SparkSettings.of(extra_of(connection).get("spark"), f"the extra of connection {conn_id!r}")
    except InvalidRequest as error:
        raise InvalidRequest(f"connection {conn_id!r}, extra 'spark': {error}") from None


def launch_method(conn_id: str | None) -> str:
    """How the job reaches Spark, in words.

    Raises:
        InvalidRequest: no such connection, or not one of Spark that can be used.
    """
    if conn_id is None:
        return "Spark inside the task: local[*] in this process"
    connection = _connection(conn_id)
    check_spark_connection(connection)
    where = f"{connection.host or ''}{f':{connection.port}' if connection.port else ''}"
    if connection.conn_type == CONNECT:
        return f"a Spark Connect server at {where}"
    return f"spark-submit in client mode to the master {where or connection.conn_type}"


def _connection(conn_id: str) -> Connection:
    from airflow.providers.common.compat.sdk import AirflowNotFoundException  # noqa: PLC0415
    from airflow.sdk import BaseHook  # noqa: PLC0415 - tests of the launchers need no Airflow

    from airflow_provider_streams.connections.missing_connection import no_connection  # noqa: PLC0415

    try:
        with supervisor_turn():
            return BaseHook.get_connection(conn_id)
    except AirflowNotFoundException as error:
        raise no_connection(conn_id, TYPES, "create one of type 'spark' or 'spark_connect', or name none") from error


def check_installed(conn_id: str | None) -> None:
    """Check that this Python can run Spark, or reach the one that a connection names; nothing is started.

    Raises:
        MissingDependency: PySpark or Airflow's Spark provider is not installed.
        PreflightFailed: a mix of PySpark versions.
    """
    preflight.check_installed()
    if conn_id is not None:
        require("spark")
