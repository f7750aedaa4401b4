"""Runs a job of one window, for tests and benchmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_streams.spark.job import job
from airflow_provider_streams.spark.job.job_spec import JobSpec, WindowSpec
from airflow_provider_streams.spark.job.outcomes import landed_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_provider_streams.model.sinks.landing import Landed


def run_window(spec: WindowSpec, spark: SparkSession) -> Landed:
    """What landed; a failure of the window is raised."""
    return landed_of(job.run(JobSpec((spec,)), spark))
