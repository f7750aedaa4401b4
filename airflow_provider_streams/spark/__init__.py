"""What runs on the cluster: PySpark Data Sources, the job, the sinks. Never imports Airflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_streams.systems.registry import known

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make every system, like `spark.read.format("pulsar")` and `format("pravega")`, known to this session.

    The sources then also stand alone, without Airflow. A StreamNative jar on the same session owns the name `pulsar`
    as well: use one of them.
    """
    from airflow_provider_streams.spark.source import data_source  # noqa: PLC0415 - the package imports without PySpark

    for system in known():
        spark.dataSource.register(data_source(system))
