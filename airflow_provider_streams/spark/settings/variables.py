"""Variables of a process that change how Spark starts in it, and what is wrong with them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import Final

from airflow_provider_streams.errors import PreflightFailed
from airflow_provider_streams.spark.settings import submit_arguments
from airflow_provider_streams.spark.settings.effective_settings import without_token

REMOTE, CONNECT_MODE = "SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"

OF_OTHER_LAUNCHES: Final = (REMOTE, CONNECT_MODE, "SPARK_LOCAL_REMOTE", "SPARK_API_MODE", "MASTER", "DEPLOY_MODE")
"""Where Spark is, for programs that name no place; PySpark itself sets some once Spark Connect was used."""

_OF_THE_JVM: Final = (
    "SPARK_HOME",
    "SPARK_CONF_DIR",
    "SPARK_SUBMIT_OPTS",
    "SPARK_LAUNCHER_OPTS",
    "SPARK_DRIVER_MEMORY",
    "SPARK_LOCAL_IP",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
)
"""Variables that a starting JVM of Spark takes options from."""


def check_classic(environment: Mapping[str, str] | None = None) -> None:
    """Check that PySpark would start a Spark in this process, instead of reaching one elsewhere.

    Raises:
        PreflightFailed: a variable asks for Spark Connect.
    """
    given = os.environ if environment is None else environment
    if (mode := given.get(CONNECT_MODE)) is not None:
        raise PreflightFailed(
            f"{CONNECT_MODE}={mode!r} tells PySpark that this process uses Spark Connect, so no Spark can start in it. "
            f"Unset {CONNECT_MODE} where Airflow's workers start. If it is not set there, a session of Spark Connect "
            "in this process set it: run this task in another process, or name the connection with spark_conn_id"
        )
    if (remote := given.get(REMOTE)) is not None:
        raise PreflightFailed(
            f"{REMOTE}={without_token(remote)!r} sends PySpark to a Spark Connect server, but Spark inside the task "
            f"runs in the task's own process. Unset {REMOTE} where Airflow's workers start. To read there, name a "
            "connection of type 'spark_connect' with spark_conn_id"
        )


def of_the_jvm(environment: Mapping[str, str] | None = None) -> list[str]:
    """The variables that are set and count as a JVM of Spark starts, with their values but without secrets."""
    given = os.environ if environment is None else environment
    return [f"{name}={_shown(given[name])}" for name in _OF_THE_JVM if name in given]


def _shown(value: str) -> str:
    try:
        return repr(submit_arguments.shown(shlex.split(value)))
    except ValueError:
        return "(not shown)"
