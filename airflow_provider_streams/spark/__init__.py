"""What runs on the cluster: PySpark Data Sources, the job, and tables of Spark's catalogs. Never imports Airflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_streams.systems.registry import known

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Register the formats of all systems, like `pulsar` and `pravega`, with this session, for use without Airflow.

    A StreamNative jar on the same session also registers the name `pulsar`: use one of them.
    """
    from airflow_provider_streams.spark.datasource.source import data_source  # noqa: PLC0415 - the package imports without PySpark

    for system in known():
        spark.dataSource.register(data_source(system))
