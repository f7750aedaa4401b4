"""Lands windows without Spark: what the job does, with Arrow, for tests of everything around it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.model.landing import Landed
from airflow_provider_streams.model.receipt import Receipt, SplitReceipt, compare
from airflow_provider_streams.spark import sinks
from airflow_provider_streams.spark.chunk import ChunkSpec, WindowFailure, WindowResult, concerns_all
from airflow_provider_streams.spark.job import expected_rows
from airflow_provider_streams.spark.spec import JobSpec
from airflow_provider_streams.systems.base import load_system

if TYPE_CHECKING:
    from pathlib import Path

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
    return Landed(receipt, written, tuple((field.name, str(field.type)) for field in table.schema)), table


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


def _attempt(spec: JobSpec, before: Callable[[JobSpec], None] | None) -> WindowResult:
    try:
        landed: Landed = run_without_spark(spec, before)
    except StreamsError as error:
        if concerns_all(error):
            raise
        return WindowFailure.of(error)
    return landed


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
