"""What work on windows needs, from Airflow: connections, configuration, metrics, Spark."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import conf

from airflow_provider_streams.airflow_runtime import metrics, spark_launch
from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.hooks.base import hook_for
from airflow_provider_streams.model.optional_dependencies import MODULES, require
from airflow_provider_streams.spark.settings.spark_settings import SMALL_PLAN_BYTES, SparkSettings
from airflow_provider_streams.systems.source_json import source_to_json
from airflow_provider_streams.windows.run.window_context import WindowContext

if TYPE_CHECKING:
    from airflow_provider_streams.model.sinks.sink import Sink
    from airflow_provider_streams.model.stream.source import Source
    from airflow_provider_streams.model.window.missing_rows import OnMissing


@contextmanager
def open_context(
    source: Source,
    spark_conn_id: str | None = None,
    spark: Mapping[str, Any] | None = None,
    *,
    lands_in: Sink | None = None,
    on_missing: OnMissing | None = None,
) -> Iterator[WindowContext]:
    """What work on windows of a source needs; the journal is open meanwhile.

    Args:
        source: the source of the windows.
        spark_conn_id: a Spark connection; None: Spark inside this process.
        spark: the user's settings of Spark, see `spark.settings.spark_settings`.
        lands_in: the table where rows will land; None: nothing lands.
        on_missing: the user's callback, see `WindowContext`.

    Raises:
        InvalidRequest: unknown settings.
        MissingDependency: a package that will be used is not installed.
        JournalError: the journal cannot be used.
    """
    settings = SparkSettings.of(spark)
    if lands_in is not None:
        check_installed(source, lands_in, spark_conn_id)
    with open_journal() as journal:
        journal.store_source(source.key, source_to_json(source))
        yield WindowContext(
            journal,
            hook_for(source),
            lambda job: spark_launch.launch(job, spark_conn_id, settings),
            metrics,
            conf.getint("streams", "small_plan_bytes", fallback=SMALL_PLAN_BYTES),
            on_missing,
        )


def check_installed(source: Source, sink: Sink, spark_conn_id: str | None) -> None:
    """Check before anything is planned that the packages for landing are installed.

    A Spark driver program with a Python of its own reports later what that Python lacks.

    Raises:
        MissingDependency: one is not.
        PreflightFailed: a mix of PySpark versions.
    """
    spark_launch.check_installed(spark_conn_id)
    runs_here = spark_conn_id is None or os.environ.get("PYSPARK_DRIVER_PYTHON") in (None, sys.executable)
    for extra in (source.system, sink.kind if runs_here else ""):
        if extra in MODULES:
            require(extra)
