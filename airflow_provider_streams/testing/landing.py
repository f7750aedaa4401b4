"""Lands windows by the job itself, where it needs no Spark; for tests of everything around it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_streams.errors import PreflightFailed
from airflow_provider_streams.model.basis import Basis, PublishTime
from airflow_provider_streams.model.landing import Landed, Landing
from airflow_provider_streams.model.undecodable import Undecodable
from airflow_provider_streams.spark.batch_job import run_chunk
from airflow_provider_streams.spark.batch_spec import ChunkSpec
from airflow_provider_streams.spark.job import run
from airflow_provider_streams.spark.session_when_needed import SessionWhenNeeded
from airflow_provider_streams.spark.spec import SMALL_PLAN_BYTES, JobSpec
from airflow_provider_streams.systems.registry import load_system
from airflow_provider_streams.windows.acts import Acts
from airflow_provider_streams.windows.ask import Ask
from airflow_provider_streams.windows.landing import enter
from airflow_provider_streams.windows.planning import WindowRead, pinned_plan
from airflow_provider_streams.windows.readiness import WindowQuestion
from airflow_provider_streams.windows.reading import Begin, Entry, RunIds, land
from airflow_provider_streams.windows.workplace import Workplace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.model.plan import Plan
    from airflow_provider_streams.model.receipt import Receipt
    from airflow_provider_streams.model.sink import Sink
    from airflow_provider_streams.model.source import Source
    from airflow_provider_streams.model.window import Window
    from airflow_provider_streams.systems.base import StreamSystem

FAIL = Undecodable()
NO_SLACK = PublishTime(timedelta(0))


def run_without_spark(work: JobSpec | ChunkSpec) -> Any:
    """As `Workplace.spark`: the job itself, in this process, on work that needs no Spark.

    Raises:
        PreflightFailed: it needs one.
        StreamsError: as `spark.job.run` and `spark.batch_job.run_chunk`.
    """
    session = cast("SparkSession", SessionWhenNeeded(_no_session))
    return run_chunk(work, session) if isinstance(work, ChunkSpec) else run(work, session)


def without_transforms(work: JobSpec | ChunkSpec) -> JobSpec | ChunkSpec:
    """The same work on the rows as they are read: a transform needs Spark, however small the window."""
    if isinstance(work, ChunkSpec):
        return replace(work, specs=tuple(replace(spec, transform=None) for spec in work.specs))
    return replace(work, transform=None)


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
    """Nobody looks at them."""

    def covered(self, source_key: str, plan: Plan, receipt: Receipt) -> None: ...

    def recounted(self, source: Source, reader: str, late_rows: int) -> None: ...

    def replayed(self, source: Source, reader: str, rows: int) -> None: ...


def place_without_spark(journal: Journal, system: str, options: Mapping[str, str]) -> Workplace:
    """Where windows of a system are worked on, by nothing but its settings."""
    return Workplace(journal, _Stream(system, options), run_without_spark, _Figures(), SMALL_PLAN_BYTES)


def cover_without_spark(
    journal: Journal,
    source: Source,
    window: Window,
    reader: str,
    options: Mapping[str, str],
    *,
    sink: Sink | None = None,
    undecodable: Undecodable = FAIL,
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
    read = WindowRead(question, reader, undecodable=undecodable)
    entered = enter(journal, Ask(source, reader, landing, read.basis), [window], Acts())
    begin = Begin(entered, RunIds("earlier", "earlier", "read", 1))
    place = place_without_spark(journal, source.system, options)
    with closing(place.stream.system()) as system:
        plan = pinned_plan(journal, system, read, replan=False)
    return land(place, Entry(read, plan, landing, begin))
