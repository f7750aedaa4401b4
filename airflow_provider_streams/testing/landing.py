"""Lands windows without Spark: what the job does, with Arrow, for tests of everything around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.lake.files import WindowFiles
from airflow_provider_streams.model.basis import Basis, PublishTime
from airflow_provider_streams.model.landing import Landed, Landing
from airflow_provider_streams.model.receipt import Receipt, SplitReceipt, compare
from airflow_provider_streams.model.undecodable import Undecodable
from airflow_provider_streams.spark import sinks
from airflow_provider_streams.spark.batch_spec import ChunkSpec, WindowFailure, WindowResult, concerns_all
from airflow_provider_streams.spark.job import check_schema, expected_rows
from airflow_provider_streams.spark.spec import SMALL_PLAN_BYTES, JobSpec
from airflow_provider_streams.spark.split_reading import open_split, schema_of
from airflow_provider_streams.spark.type_names import spark_name
from airflow_provider_streams.systems.registry import load_system
from airflow_provider_streams.windows.acts import Acts
from airflow_provider_streams.windows.landing import Ask, enter
from airflow_provider_streams.windows.planning import WindowRead, pinned_plan
from airflow_provider_streams.windows.readiness import WindowQuestion
from airflow_provider_streams.windows.reading import Begin, Entry, RunIds, land
from airflow_provider_streams.windows.workplace import Workplace

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.model.plan import Plan
    from airflow_provider_streams.model.sink import Sink
    from airflow_provider_streams.model.source import Source
    from airflow_provider_streams.model.window import Window
    from airflow_provider_streams.systems.base import StreamSystem

FAIL = Undecodable()
NO_SLACK = PublishTime(timedelta(0))

Tamper = Callable[[list[SplitReceipt]], list[SplitReceipt]]


def land_without_spark(spec: JobSpec, tamper: Tamper | None = None) -> tuple[Landed, pa.Table]:
    """Read, prove, and let the sink's own writer put the window in place; and the rows.

    Args:
        spec: the job; its transform is not applied.
        tamper: changes what the readers report, before it is compared.
    """
    if spec.sink is None or spec.terms is None:
        receipt, table = _read(spec, tamper)
        return Landed(receipt), table
    writer: Any = sinks.writer_of(spec.sink, spec.plan.window, spec.terms)
    try:
        receipt, table = _read(sinks.with_quarantine(spec, writer), tamper)
        schema = check_schema(spec, tuple((one.name, spark_name(one.type)) for one in table.schema))
        with closing(WindowFiles(writer.open(table.schema))) as files:
            for batch in table.to_batches():
                files.write(batch)
            written = files.finish()
        expected_rows(spec, receipt, sum(file.rows for file in written))
        writer.commit(written, receipt)
    finally:
        writer.discard()
    return Landed(receipt, receipt.rows, schema), table


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
    return [_attempt(spec, before, several_tables=work.has_several_tables) for spec in work.specs]


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


def _attempt(spec: JobSpec, before: Callable[[JobSpec], None] | None, *, several_tables: bool) -> WindowResult:
    try:
        landed: Landed = run_without_spark(spec, before)
    except StreamsError as error:
        if concerns_all(error, several_tables=several_tables):
            raise
        return WindowFailure.of(error)
    return landed


def _read(spec: JobSpec, tamper: Tamper | None) -> tuple[Receipt, pa.Table]:
    receipts, batches = [], []
    with closing(load_system(spec.plan.source.system).from_options(spec.options)) as system:
        system.check_origin(spec.plan)
        schema = schema_of(system, spec.plan, spec.columns)
        for split in spec.plan.splits:
            with closing(open_split(system, spec.plan, split, spec.manner)) as reader:
                batches += list(reader)
                receipts.append(reader.receipt)
        reports = tamper(receipts) if tamper else receipts
        explained = system.explain(spec.plan, reports, on_loss=spec.on_loss)
    receipt = compare(spec.plan, explained, seconds=0.1)
    spec.undecodable.check(spec.plan, receipt)
    return receipt, pa.Table.from_batches(batches, schema=schema)
