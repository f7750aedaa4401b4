"""Where the Spark of this machine is, of which version it is, and where it keeps its settings, as Spark finds them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from airflow_provider_streams.errors import PreflightFailed
from airflow_provider_streams.spark.settings.properties import read_properties
from airflow_provider_streams.spark.settings.spark_settings import SparkSettings

VARIABLE: Final = "SPARK_HOME"
_CORE: Final = re.compile(r"spark-core_[\d.]+-(\d.*)\.jar")
_OLDEST: Final = 4
_UNSET: Final = "Unset SPARK_HOME, and the Spark of this Python's package pyspark is used; or let it name a Spark"


def spark_home(environment: Mapping[str, str] | None = None) -> Path:
    """The Spark that PySpark starts in this process.

    Raises:
        PreflightFailed: `SPARK_HOME` names none, or one of another version; or this Python has none.
    """
    home = named_home(environment)
    if home is None:
        return _own_home()
    import pyspark  # noqa: PLC0415 - its version only

    found = version_of(home)
    if found and not same_version(pyspark.__version__, found):
        raise PreflightFailed(
            f"SPARK_HOME={home} is Spark {found}, but this Python has PySpark {pyspark.__version__}: both must be of "
            f"one version. {_UNSET} {pyspark.__version__}"
        )
    return home


def named_home(environment: Mapping[str, str] | None = None) -> Path | None:
    """What `SPARK_HOME` names; None: it is not set.

    Raises:
        PreflightFailed: there is no Spark.
    """
    given = (os.environ if environment is None else environment).get(VARIABLE)
    if given is None:
        return None
    home = Path(given)
    if not given:
        problem = "is set, but empty"
    elif not home.is_dir():
        problem = f"names {given}, which {'is no folder' if home.exists() else 'does not exist'}"
    elif not (home / "bin" / "spark-submit").is_file():
        problem = f"names {given}, which has no bin/spark-submit"
    elif not (home / "jars").is_dir():
        problem = f"names {given}, which has no folder jars"
    else:
        return home
    raise PreflightFailed(f"SPARK_HOME {problem}, so no Spark can start. {_UNSET}")


def version_of(home: Path) -> str:
    """The version of a Spark, by its jars or by its file `RELEASE`; empty: neither says it."""
    for jar in (home / "jars").glob("spark-core_*.jar"):
        if found := _CORE.fullmatch(jar.name):
            return found[1]
    release = home / "RELEASE"
    told = re.match(r"Spark (\S+)", release.read_text(errors="replace")) if release.is_file() else None
    return told[1] if told else ""


def check_recent(home: Path) -> None:
    """Check that a Spark can run our jobs.

    Raises:
        PreflightFailed: it is older than version 4.
    """
    found = version_of(home)
    if found and int(found.partition(".")[0]) < _OLDEST:
        raise PreflightFailed(
            f"{home}, which spark-submit would start, is Spark {found}, but Spark {_OLDEST} is needed. Set SPARK_HOME "
            f"to a Spark {_OLDEST}, or unset it and put the spark-submit of one first on PATH"
        )


def same_version(pyspark: str, spark: str) -> bool:
    """Whether a PySpark fits a Spark: vendors append their own, like `4.2.0-amzn-1`."""
    return pyspark == spark.partition("-")[0]


def defaults_of(home: Path | None, environment: Mapping[str, str] | None = None) -> SparkSettings:
    """The settings in `spark-defaults.conf`: of `SPARK_CONF_DIR` if that is set, else of this home."""
    given = (os.environ if environment is None else environment).get("SPARK_CONF_DIR")
    folder = Path(given) if given else home and home / "conf"
    file = folder and folder / "spark-defaults.conf"
    return settings_of(file) if file and file.is_file() else SparkSettings()


def settings_of(file: Path) -> SparkSettings:
    """The settings in a properties file; of a name that is there twice, the last line counts."""
    lines = read_properties(file)
    return SparkSettings(
        {one.name: one.value for one in lines}, {one.name: f"{file}, line {one.line}" for one in lines}
    )


def _own_home() -> Path:
    """Of this Python's package, as PySpark looks for it."""
    import pyspark  # noqa: PLC0415 - optional

    package = Path(pyspark.__file__).parent
    for home in (package / "spark-distribution", package):
        if (home / "jars").is_dir():
            return home
    raise PreflightFailed(
        "this Python has only pyspark-client, which talks to a Spark elsewhere. For Spark inside the task: "
        "pip install 'airflow-provider-streams[spark]'; else name a Spark connection with spark_conn_id"
    )
