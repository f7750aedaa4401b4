"""The job: a plan in, a receipt out, inside a Spark program."""

from __future__ import annotations

import logging
import time
from contextlib import closing, nullcontext
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import FewerRows, LandingMismatch, SinkError
from airflow_provider_streams.model.landing import Landed, Schema, missing_columns
from airflow_provider_streams.model.plan import Plan
from airflow_provider_streams.model.receipt import Receipt, SplitReceipt, compare
from airflow_provider_streams.spark import ending, failures, preflight, reading, sinks
from airflow_provider_streams.spark.observing import observed
from airflow_provider_streams.spark.spec import JobSpec
from airflow_provider_streams.spark.transforms import Transform, unchanged
from airflow_provider_streams.systems.registry import load_system

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_log = logging.getLogger(__name__)


def run(spec: JobSpec, spark: SparkSession) -> Landed:
    """Read a plan, prove it, and only then put the window in place.

    Raises:
        PreflightFailed: this Spark cannot run the readers.
        OtherCluster: the plan was made of another cluster, or of an earlier life of its source.
        ReceiptMismatch: what was read does not agree with the plan; nothing was committed.
        DataLoss: events vanished, and `on_loss` is `fail`; nothing was committed.
        FewerRows: the table holds more rows of this window; nothing was committed.
        LandingMismatch: the rows lack columns that the table has; nothing was committed.
        SinkError: the window could not be written; the table is what it was.
        StreamsError: as the system's reader says.
    """
    try:
        return _run(spec, spark)
    except Exception as error:
        known = failures.typed(error, spec.secrets.values())
        if spec.transform:
            known = Transform(spec.transform, spec).blamed(known)
        if known is error:
            raise
        raise known from None  # Spark's text is pages of traceback, and may quote a secret


def _run(spec: JobSpec, spark: SparkSession) -> Landed:
    started = time.monotonic()
    preflight.check_driver(spark)
    check_origin(spec, spec.plan)
    if not spec.is_small and not spec.plan.is_empty:
        preflight.check_workers(spark)
    transform = Transform(spec.transform, spec) if spec.transform else None
    if transform:
        transform.rehearse(spark)
    plan = spec.plan
    _log.info("reading %d splits, about %d bytes, of plan %s", len(plan.splits), plan.estimate.bytes, plan.fingerprint)
    read = reading.read(spec, spark)
    with unchanged(spark) if transform else nullcontext():
        return _land(spec, read, transform, started)


def _land(spec: JobSpec, read: reading.Read, transform: Transform | None, started: float) -> Landed:
    df = transform(read.df) if transform else read.df
    read.expect_unread()
    if spec.sink is None or spec.terms is None:
        df.write.format("noop").mode("overwrite").save()
        return Landed(_proven(spec, read.receipts(), started))
    schema = schema_of(spec, df)
    writer = sinks.writer_of(spec.sink, spec.plan.window, spec.terms)
    try:
        rows = _stage(df, writer)
        receipt = _proven(spec, read.receipts(), started)
        written = writer.commit(receipt, expected_rows(spec, receipt, rows))
    except BaseException:
        writer.discard()
        raise
    _log.info("window %s is in place: %s rows read, %s written", spec.plan.window, receipt.rows, written)
    return Landed(receipt, written, schema)


def check_origin(how: JobSpec, plan: Plan) -> None:
    """Refuse a plan of another cluster, or of an earlier life of its source.

    Raises:
        OtherCluster: it is.
    """
    with closing(load_system(plan.source.system).from_options(how.options)) as system:
        system.check_origin(plan)


def schema_of(spec: JobSpec, df: DataFrame) -> Schema:
    """The columns to land, if a table that holds others can take them: they may only grow.

    Raises:
        LandingMismatch: a column of the table is missing, or of another type.
    """
    schema = tuple((field.name, field.dataType.simpleString()) for field in df.schema)
    before = spec.terms.columns if spec.terms else None
    lost = missing_columns(before, schema) if before else []
    if lost:
        source = ", ".join(spec.plan.source.names)
        raise LandingMismatch(source, spec.plan.reader, _columns_text(before or ()), _columns_text(schema), lost)
    return schema


def _columns_text(columns: Schema) -> str:
    return f"rows of {', '.join(f'{name} {kind}' for name, kind in columns)}"


def expected_rows(spec: JobSpec, receipt: Receipt, handed: int | None) -> int | None:
    """How many rows the table must hold of this window; None: a transform decides, and nobody counted.

    Args:
        spec: the job's.
        receipt: what was proven to have been read.
        handed: how many rows Spark says to have written; None: it did not say.

    Raises:
        FewerRows: the table holds more of this window now.
        SinkError: Spark wrote another number than was read, without a transform.
    """
    if spec.held is not None and receipt.rows < spec.held:
        raise FewerRows(", ".join(spec.plan.source.names), spec.plan.window, spec.held, receipt.rows)
    if spec.transform is not None:
        return handed
    if handed is not None and handed != receipt.rows:
        name = spec.sink.asset_uri if spec.sink else "nowhere"
        raise SinkError(name, f"{receipt.rows} rows were read and proven, but Spark wrote {handed} of them")
    return receipt.rows


def _stage(df: DataFrame, writer: sinks.Writer) -> int | None:
    """Stage, and count what Spark hands over in the same pass; None: Spark did not say."""
    from pyspark.sql import Observation  # noqa: PLC0415 - only where Spark runs
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    written = Observation("streams rows written")
    writer.stage(df.observe(written, F.count(F.lit(1)).alias("rows")))
    rows = observed(written).get("rows")
    return None if rows is None else int(rows)


def _proven(spec: JobSpec, receipts: list[SplitReceipt], started: float) -> Receipt:
    """The receipt, once every gap is explained and every count agrees, for a task that still wants it."""
    ending.check()
    system = load_system(spec.plan.source.system).from_options(spec.options)
    try:
        explained = system.explain(spec.plan, receipts, on_loss=spec.on_loss)
    finally:
        system.close()
    return compare(spec.plan, explained, seconds=time.monotonic() - started)
