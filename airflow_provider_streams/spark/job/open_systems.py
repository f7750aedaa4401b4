"""The stream system of a job, connected once for all its steps."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Self

from airflow_provider_streams.spark.datasource.split_reading import schema_of
from airflow_provider_streams.spark.job.job_spec import WindowSpec
from airflow_provider_streams.systems.registry import load_system
from airflow_provider_streams.systems.system_pool import SystemPool

if TYPE_CHECKING:
    import pyarrow as pa


class OpenSystems(SystemPool):
    """The systems of a job, whose windows are all of one connection."""

    @classmethod
    def of(cls, spec: WindowSpec) -> Self:
        """For a job of which this is a window."""
        return cls(partial(load_system(spec.plan.source.system).from_options, spec.options))

    def schema_of(self, spec: WindowSpec) -> pa.Schema:
        """The columns of what a spec reads."""
        with self.one() as system:
            return schema_of(system, spec.plan, spec.columns)
