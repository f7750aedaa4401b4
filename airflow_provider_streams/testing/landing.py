"""Lands windows by the job itself, where it needs no Spark; for tests of everything around it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, cast

from airflow_provider_streams.errors import PreflightFailed
from airflow_provider_streams.journal.runs.run_records import TaskInstanceKey
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy
from airflow_provider_streams.model.sinks.landing import Landed, Landing
from airflow_provider_streams.model.window.basis import Basis, PublishTime
from airflow_provider_streams.spark.job.job import run
from airflow_provider_streams.spark.job.job_spec import JobSpec
from airflow_provider_streams.spark.job.outcomes import landed_of
from airflow_provider_streams.spark.launch.lazy_session import LazySession
from airflow_provider_streams.spark.settings.spark_settings import SMALL_PLAN_BYTES
from airflow_provider_streams.systems.registry import load_system
from airflow_provider_streams.windows.claim.claim import claim_table
from airflow_provider_streams.windows.claim.landing_request import LandingRequest
from airflow_provider_streams.windows.claim.overrides import Overrides
from airflow_provider_streams.windows.plan.planning import WindowRead, pinned_plan
from airflow_provider_streams.windows.plan.readiness import WindowQuestion
from airflow_provider_streams.windows.run.job_landing import PinnedWindow, land_together
from airflow_provider_streams.windows.run.recording import RunStart
from airflow_provider_streams.windows.run.unplanned_columns import land_unplanned
from airflow_provider_streams.windows.run.window_context import WindowContext

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.model.plan.plan import Plan
    from airflow_provider_streams.model.sinks.sink import Sink
    from airflow_provider_streams.model.stream.source import Source
    from airflow_provider_streams.model.window.window import Window
    from airflow_provider_streams.spark.job.outcomes import WindowResult
    from airflow_provider_streams.systems.base import StreamSystem

FAIL = DecodeErrorPolicy()
NO_SLACK = PublishTime(timedelta(0))


def run_without_spark(job: JobSpec) -> list[WindowResult]:
    """As `WindowContext.spark`: the job itself, in this process, on work that needs no Spark.

    Raises:
        PreflightFailed: it needs one.
        StreamsError: as `spark.job.job.run`.
    """
    return run(job, cast("SparkSession", LazySession(_no_session)))


def without_transforms(job: JobSpec) -> JobSpec:
    """The same work on the rows as they are read: a transform needs Spark, however small the window."""
    return replace(job, specs=tuple(replace(spec, transform=None) for spec in job.specs))


def _no_session() -> SparkSession:
    raise PreflightFailed("this work needs Spark: it is not small, has a transform, or its sink is Spark's")


@dataclass(frozen=True, slots=True)
class _Stream:
    """A connection that is nothing but its settings."""

    name: str
    settings: Mapping[str, str]

    def system(self) -> StreamSystem:
        return load_system(self.name).from_options(self.settings)

    def options(self) -> dict[str, str]:
        return dict(self.settings)


class _Figures:
    """Metrics that no test reads."""

    def covered(self, source_key: str, plan: Plan, landed: Landed) -> None: ...

    def recounted(self, source: Source, reader: str, late_rows: int) -> None: ...

    def replayed(self, source: Source, reader: str, rows: int) -> None: ...

    def missing(self, source: Source, reader: str, windows: int) -> None: ...


def context_without_spark(journal: Journal, system: str, options: Mapping[str, str]) -> WindowContext:
    """Where windows of a system are worked on, by nothing but its settings."""
    return WindowContext(journal, _Stream(system, options), run_without_spark, _Figures(), SMALL_PLAN_BYTES)


def cover_without_spark(
    journal: Journal,
    source: Source,
    window: Window,
    reader: str,
    options: Mapping[str, str],
    *,
    sink: Sink | None = None,
    undecodable: DecodeErrorPolicy = FAIL,
    basis: Basis = NO_SLACK,
) -> Landed:
    """Plan, pin, read, land and record a window: as an earlier task of its reader.

    Args:
        journal: where it is recorded.
        source: what is read.
        window: which window.
        reader: for whom.
        options: the system's.
        sink: where its rows go; None: it is proven only.
        undecodable: what becomes of events that its source cannot decode.
        basis: how its edges become positions; by default by publish time, without slack.
    """
    landing = Landing(sink)
    question = WindowQuestion(source, window, basis)
    read = WindowRead(question, reader, undecodable=undecodable, landing=landing)
    claim = claim_table(journal, LandingRequest(source, reader, landing, read.basis), [window], Overrides())
    begin = RunStart(claim, TaskInstanceKey("earlier", "earlier", "read", 1))
    window_context = context_without_spark(journal, source.system, options)
    with closing(window_context.stream.system()) as system:
        plan = pinned_plan(journal, system, read, replan=False)
    entries = [PinnedWindow(read, plan, begin)]
    ((_, result),) = land_unplanned(window_context, entries, land_together(window_context, entries))
    return landed_of([result])
