"""The settings that a Spark started here really gets, wherever they were written.

Of a setting that is written several times, the first of these counts:

1. the operator's `spark=`
2. the connection's extra `spark`
3. `PYSPARK_SUBMIT_ARGS`, for Spark inside the task; there, an option like `--driver-memory` before `--conf`
4. our own, for Spark inside the task
5. the file that `PYSPARK_SUBMIT_ARGS` names with `--properties-file`
6. `spark-defaults.conf` of `SPARK_CONF_DIR`; if that is not set, of Spark's folder `conf`
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from airflow_provider_streams.errors import PreflightFailed
from airflow_provider_streams.spark.settings.setting_rules import WHERE_SPARK_IS
from airflow_provider_streams.spark.settings.spark_home import defaults_of, settings_of, spark_home
from airflow_provider_streams.spark.settings.spark_settings import SparkSettings
from airflow_provider_streams.spark.settings.submit_arguments import SubmitArguments, submit_arguments

LOCAL: Final = re.compile(r"local(\[.*\]|-cluster\[.*\])?")
"""A master whose workers run on this machine."""
OUR_ORIGIN: Final = "this package"
"""Where a setting is written that no user wrote, see `SparkSettings.origins`."""
_IN_THIS_PROCESS: Final = {"spark.submit.deployMode": "client", "spark.api.mode": "classic"}
_IN_THE_TASK: Final = {
    "spark.master": LOCAL,
    "spark.submit.deployMode": re.compile("client"),
    "spark.api.mode": re.compile("classic"),
    "spark.remote": re.compile(r"(?!)"),
}
"""What `PYSPARK_SUBMIT_ARGS` may say of where Spark is."""
_CONNECTION: Final = "To read on a cluster, name a Spark connection with spark_conn_id"

_log = logging.getLogger(__name__)


def of_embedded(
    given: SparkSettings, ours: SparkSettings, environment: Mapping[str, str] | None = None
) -> tuple[SparkSettings, SubmitArguments]:
    """Those of Spark inside the task, and what else `PYSPARK_SUBMIT_ARGS` says.

    Raises:
        PreflightFailed: a variable asks for what cannot be, or names no Spark; a file cannot be read.
    """
    arguments = submit_arguments(environment)
    _check_local(arguments.settings)
    home = spark_home(environment)
    files = _not_of_clusters(_files(arguments, home, environment), "Spark inside the task is local")
    found = given.over(arguments.settings).over(ours).over(files)
    ours_alone = SparkSettings(_IN_THIS_PROCESS, dict.fromkeys(_IN_THIS_PROCESS, OUR_ORIGIN))
    return ours_alone.over(found), arguments


def of_submitted(
    given: SparkSettings, home: Path | None, deploy_mode: str | None, environment: Mapping[str, str] | None = None
) -> SparkSettings:
    """Those of a driver program that spark-submit starts.

    Args:
        given: the operator's and the connection's.
        home: of the Spark whose spark-submit runs, if it is known.
        deploy_mode: what the connection says.
        environment: by default the process's.

    Raises:
        PreflightFailed: the driver program would run elsewhere; a file cannot be read.
    """
    defaults = defaults_of(home, environment)
    if deploy_mode is None and defaults.conf.get("spark.submit.deployMode") == "cluster":
        raise PreflightFailed(
            f"{defaults.origin('spark.submit.deployMode')}: spark.submit.deployMode is cluster, {WHY_CLIENT}. Set "
            "deploy-mode to 'client' in the connection's extra, which counts more than this file, or reach the cluster "
            "over Spark Connect (connection type 'spark_connect')"
        )
    found = given.over(_not_of_clusters(defaults, "the connection says where Spark is"))
    return SparkSettings({"spark.api.mode": "classic"}).over(found)


WHY_CLIENT: Final = "where a driver's secrets would stand on a command line and its receipt on another machine"


def _files(arguments: SubmitArguments, home: Path, environment: Mapping[str, str] | None) -> SparkSettings:
    named = SparkSettings()
    if arguments.properties_file is not None:
        named = settings_of(arguments.properties_file)
    return named.over(defaults_of(home, environment)) if arguments.loads_defaults else named


def _check_local(arguments: SparkSettings) -> None:
    """Refuse what `PYSPARK_SUBMIT_ARGS` cannot mean for Spark inside the task."""
    for name in WHERE_SPARK_IS:
        value = arguments.conf.get(name)
        if value is not None and not _IN_THE_TASK[name].fullmatch(value):
            raise PreflightFailed(
                f"{arguments.origin(name)} sets {name} to {without_token(value)!r}, but Spark inside the task runs in "
                f"the task's own process. Remove it there. {_CONNECTION}"
            )


def _not_of_clusters(files: SparkSettings, why: str) -> SparkSettings:
    """A machine's files without what they say of where Spark is: they say it for programs that name no place."""
    for name in files.conf.keys() & WHERE_SPARK_IS.keys():
        _note_unused(name, files.origin(name), why)
    return files.without(*WHERE_SPARK_IS)


@cache  # settings are gathered more than once as Spark starts
def _note_unused(name: str, origin: str, why: str) -> None:
    _log.info("%s is not used (%s): %s", name, origin, why)


def without_token(address: str) -> str:
    """An address of a Spark as a message may show it: `sc://host:port/;token=..` without what follows the port."""
    shown = re.sub(r"//[^/@]*@", "//***@", address)
    return re.sub(r"/?;.*", "/;***", shown, flags=re.DOTALL)
