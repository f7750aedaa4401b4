"""Lands windows without Spark: what the job does, with Arrow, for tests of everything around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.model.basis import PublishTime
from airflow_provider_streams.model.landing import Landed, Landing, Schema
from airflow_provider_streams.model.receipt import Receipt, SplitReceipt, compare
from airflow_provider_streams.spark import sinks
from airflow_provider_streams.spark.batch_spec import ChunkSpec, WindowFailure, WindowResult, concerns_all
from airflow_provider_streams.spark.job import expected_rows
from airflow_provider_streams.spark.spec import SMALL_PLAN_BYTES, JobSpec
from airflow_provider_streams.systems.registry import load_system
from airflow_provider_streams.windows.acts import Acts
from airflow_provider_streams.windows.landing import Ask, enter
from airflow_provider_streams.windows.planning import WindowRead, pinned_plan
from airflow_provider_streams.windows.readiness import WindowQuestion
from airflow_provider_streams.windows.reading import Begin, RunIds, land
from airflow_provider_streams.windows.workplace import Workplace

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.model.plan import Plan
    from airflow_provider_streams.model.sink import Sink
    from airflow_provider_streams.model.source import Source
    from airflow_provider_streams.model.window import Window
    from airflow_provider_streams.systems.base import StreamSystem

Tamper = Callable[[list[SplitReceipt]], list[SplitReceipt]]


def land_without_spark(spec: JobSpec, tamper: Tamper | None = None) -> tuple[Landed, pa.Table]:
    """Read, prove, and let the sink's own writer put the window in place; and the rows.

    Args:
        spec: the job; its transform is not applied.
        tamper: changes what the readers report, before it is compared.
    """
    receipt, table = _read(spec, tamper)
    if spec.sink is None or spec.terms is None:
        return Landed(receipt), table
    writer: Any = sinks.writer_of(spec.sink, spec.plan.window, spec.terms)
    try:
        writer.prepare(table.column_names)
        _write(table, writer.staged)
        written = writer.commit(receipt, expected_rows(spec, receipt, None))
    finally:
        writer.discard()
    return Landed(receipt, written, _columns(table.schema)), table


def run_without_spark(work: JobSpec | ChunkSpec, before: Callable[[JobSpec], None] | None = None) -> Any:
    """As `Workplace.spark`: a `Landed` of a `JobSpec`, a list of `WindowResult` of a `ChunkSpec`.

    Args:
        work: what to do.
        before: called with each window's spec, before it is read.
    """
    if isinstance(work, JobSpec):
        if before is not None:
            before(work)
        return land_without_spark(work)[0]
    return [_attempt(spec, before) for spec in work.specs]


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


def cover_without_spark(
    journal: Journal,
    source: Source,
    window: Window,
    reader: str,
    options: Mapping[str, str],
    *,
    sink: Sink | None = None,
) -> Landed:
    """Plan, pin, read, land and record a window by publish time, without slack: as an earlier task of its reader.

    Args:
        journal: where it is recorded.
        source: what is read.
        window: which window.
        reader: for whom.
        options: the system's.
        sink: where its rows go; None: it is proven only.
    """
    landing, read = Landing(sink), WindowRead(WindowQuestion(source, window, PublishTime(timedelta(0))), reader)
    entered = enter(journal, Ask(source, reader, landing, read.basis), [window], Acts())
    begin = Begin(entered, RunIds("earlier", "earlier", "read", 1))
    stream = _Stream(source.system, options)
    place = Workplace(journal, stream, run_without_spark, _Figures(), SMALL_PLAN_BYTES)
    with closing(stream.system()) as system:
        plan = pinned_plan(journal, system, read, replan=False)
    return land(place, read, plan, landing, begin)


def _attempt(spec: JobSpec, before: Callable[[JobSpec], None] | None) -> WindowResult:
    try:
        landed: Landed = run_without_spark(spec, before)
    except StreamsError as error:
        if concerns_all(error):
            raise
        return WindowFailure.of(error)
    return landed


def _columns(schema: pa.Schema) -> Schema:
    """As Spark names the types: who lands here may be followed by a job."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return tuple((field.name, field.dataType.simpleString()) for field in from_arrow_schema(schema))


def _read(spec: JobSpec, tamper: Tamper | None) -> tuple[Receipt, pa.Table]:
    receipts, batches = [], []
    with closing(load_system(spec.plan.source.system).from_options(spec.options)) as system:
        system.check_origin(spec.plan)
        schema = system.schema(spec.columns)
        for split in spec.plan.splits:
            with closing(system.read(spec.plan, split, spec.columns)) as reader:
                batches += list(reader)
                receipts.append(reader.receipt)
        reports = tamper(receipts) if tamper else receipts
        explained = system.explain(spec.plan, reports, on_loss=spec.on_loss)
    return compare(spec.plan, explained, seconds=0.1), pa.Table.from_batches(batches, schema=schema)


def _write(table: pa.Table, staged: Path) -> None:
    staged.mkdir()
    pq.write_table(table, staged / "part-0.parquet")
    (staged / "_SUCCESS").touch()
