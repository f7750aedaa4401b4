"""Whether this Spark can run our readers, checked before anything is read."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import logging
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from airflow_provider_streams.errors import PreflightFailed
from airflow_provider_streams.model.optional_dependencies import require
from airflow_provider_streams.spark.settings.configured_classes import missing_classes
from airflow_provider_streams.spark.settings.setting_rules import broken_rules
from airflow_provider_streams.spark.settings.spark_home import same_version
from airflow_provider_streams.spark.settings.spark_settings import SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGE = "airflow_provider_streams"
SET_WORKERS_PYTHON: Final = "set spark.pyspark.python (--conf), which counts more than PYSPARK_PYTHON,"
"""How the executors' Python is chosen. With a local master, we set the variable ourselves."""
_log = logging.getLogger(__name__)


def check_installed() -> None:
    """The PySpark of this Python, before anything is started or imported of it.

    Raises:
        MissingDependency: there is none.
        PreflightFailed: its two parts are not of one version.
    """
    found = _installed("pyspark", "pyspark-client")
    if not found and importlib.util.find_spec("pyspark") is None:
        require("spark")
    versions = set(found.values())
    if len(versions) > 1:
        names = " and ".join(f"{name} {version}" for name, version in found.items())
        oldest = min(versions, key=lambda version: [int(part) for part in re.findall(r"\d+", version)])
        both = " ".join(f"{name}=={oldest}" for name in found)
        raise PreflightFailed(
            f"this Python has {names}, which own the same files and must be of one version (your cluster's, if Spark "
            "runs elsewhere). Run: "
            f"{shlex.quote(sys.executable)} -m pip install --force-reinstall --no-deps {both}"
        )


def check_driver(spark: SparkSession) -> None:
    """The Python of this process and the Spark it talks to.

    Raises:
        PreflightFailed: they are not of one version; or pyarrow is not installed.
    """
    check_installed()
    if importlib.util.find_spec("pyarrow") is None:
        raise PreflightFailed(
            f"the Python of the Spark driver program, {sys.executable}, has no module pyarrow: install it there, or "
            "set PYSPARK_DRIVER_PYTHON (spark.pyspark.driver.python) to a Python that has it"
        )
    import pyspark  # noqa: PLC0415 - its version only

    if not same_version(pyspark.__version__, spark.version):
        wanted = spark.version.partition("-")[0]
        parts = " ".join(f"{name}=={wanted}" for name in _installed("pyspark", "pyspark-client") or ["pyspark"])
        raise PreflightFailed(
            f"this Python has PySpark {pyspark.__version__}, but the Spark it talks to is {spark.version}. Run: "
            f"{shlex.quote(sys.executable)} -m pip install --force-reinstall --no-deps {parts}"
        )


def settle(spark: SparkSession, where: str) -> list[str]:
    """Replace settings of a session under which a window would lose or change rows; says which.

    Args:
        spark: the session, which keeps the replacements.
        where: whose settings they are, for messages.

    Raises:
        PreflightFailed: one of them has no replacement.
    """
    replaced = []
    for rule, value in broken_rules(lambda name: spark.conf.get(name, None)):
        if rule.instead is None:
            raise PreflightFailed(f"{rule.broken_by(value, where)} Remove it where that Spark is started")
        spark.conf.set(rule.name, rule.instead)
        replaced.append(rule.broken_by(value, where))
        _log.warning("%s", replaced[-1])
    return replaced


def set_late(
    spark: SparkSession, settings: SparkSettings, why: str, *, begun_with: Mapping[str, str] | None = None
) -> None:
    """Apply settings to a running session.

    Args:
        spark: the session.
        settings: the settings.
        why: begins the error message.
        begun_with: what the session was started with, as it was written: Spark may show it differently (a path as a
            URI). None: it is not known.

    Raises:
        PreflightFailed: some can be set only before Spark starts.
    """
    refused = []
    for name, value in settings.conf.items():
        try:
            if spark.conf.get(name, None) != value:
                spark.conf.set(name, value)
        except Exception:  # noqa: BLE001 - classic and Connect have errors of their own: it cannot be modified
            if (begun_with or {}).get(name) != value:
                refused.append(name)
    refuse_late(refused, why)


def refuse_late(names: Sequence[str], why: str) -> None:
    """Refuse settings that can be set only before Spark starts.

    Raises:
        PreflightFailed: there are some.
    """
    if names:
        raise PreflightFailed(f"{why} no longer takes {', '.join(names)}: set it where Spark is started")


def check_workers(spark: SparkSession, *, needs: tuple[str, ...] = ("pyarrow", _PACKAGE)) -> None:
    """The Python that executors start, by running it once in a session.

    Raises:
        PreflightFailed: it does not start, is of another version, or lacks a module.
    """
    if _run_before.get(spark) == needs:
        return
    _judge(_answer_of_worker(spark, needs))
    _run_before[spark] = needs


def examine(spark: SparkSession) -> dict[str, Any]:
    """The versions on both sides: `spark, java, pyspark, python`; `java` is empty where the driver does not say it.

    `replaced` has a sentence on each setting that jobs replace, see `settle`; `lacking` on each missing class, see
    `missing_classes`.

    Raises:
        PreflightFailed: driver or workers cannot run reads.
    """
    check_driver(spark)
    answer = _answer_of_worker(spark, ("pyarrow",))
    _judge(answer)
    replaced = settle(spark, "the Spark of this connection")
    jvm = getattr(getattr(spark, "_sc", None), "_jvm", None)  # Spark Connect has none
    java = jvm.System.getProperty("java.version") if jvm is not None else ""
    versions = {"spark": spark.version, "java": java, "pyspark": answer["pyspark"], "python": answer["python"]}
    return {**versions, "replaced": replaced, "lacking": missing_classes(spark)}


def _answer_of_worker(spark: SparkSession, needs: tuple[str, ...]) -> dict[str, Any]:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark's own habit; only where Spark runs

    # nested, so that it travels by value: the worker may not have this package
    def describe(modules: str) -> str:
        import importlib.util  # noqa: PLC0415 - runs in the worker
        import json  # noqa: PLC0415
        import sys  # noqa: PLC0415

        import pyspark  # noqa: PLC0415

        missing = [name for name in modules.split(",") if importlib.util.find_spec(name) is None]
        return json.dumps({"python": sys.executable, "pyspark": pyspark.__version__, "missing": missing})

    asked = F.udf(describe, "string", useArrow=False)(F.lit(",".join(needs)))
    try:
        answer: dict[str, Any] = json.loads(
            spark.range(0, 1, 1, 1).select(asked.alias("answer")).collect()[0]["answer"]
        )
    except Exception as error:
        raise PreflightFailed(
            "the Python of Spark's workers does not run: check spark.pyspark.python (else PYSPARK_PYTHON), which must "
            f"be the same minor version as this process. Spark says: {' '.join(str(error).split())[:500]}"
        ) from error
    return answer


_run_before: WeakKeyDictionary[SparkSession, tuple[str, ...]] = WeakKeyDictionary()
"""What the workers of a session had."""


def _judge(answer: dict[str, Any]) -> None:
    import pyspark  # noqa: PLC0415 - its version only

    if answer["missing"]:
        raise PreflightFailed(
            f"the Python of Spark's workers, {answer['python']}, has no module {' and no '.join(answer['missing'])}, "
            f"which windows above small_plan_bytes need: install it there, or {SET_WORKERS_PYTHON} to one that has it"
        )
    if answer["pyspark"] != pyspark.__version__:
        raise PreflightFailed(
            f"Spark's workers run PySpark {answer['pyspark']}, this process {pyspark.__version__}: use one version"
        )


def _installed(*distributions: str) -> dict[str, str]:
    found = {}
    for name in distributions:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
