"""The job: a plan in, a receipt out, inside a Spark program."""

from __future__ import annotations

import logging
import time
from contextlib import closing, nullcontext
from typing import TYPE_CHECKING, Final

from airflow_provider_streams.errors import LAND_ANEW, FewerRows, SinkError, TransformFailed
from airflow_provider_streams.lake.writer import TableWriter
from airflow_provider_streams.model.landing import Held, Landed, Schema, new_columns
from airflow_provider_streams.model.plan import Plan
from airflow_provider_streams.model.receipt import Receipt, SplitReceipt, compare
from airflow_provider_streams.spark import ending, failures, preflight, reading, sinks, staging
from airflow_provider_streams.spark.fitting import check_fit
from airflow_provider_streams.spark.observing import observed
from airflow_provider_streams.spark.session_setting import with_times_of_day
from airflow_provider_streams.spark.spec import JobSpec
from airflow_provider_streams.spark.split_reading import schema_of as read_schema
from airflow_provider_streams.spark.split_tasks import Staged
from airflow_provider_streams.spark.transforms import Transform, unchanged
from airflow_provider_streams.spark.type_names import spark_names
from airflow_provider_streams.systems.registry import load_system

if TYPE_CHECKING:
    import pyarrow as pa
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
        times = nullcontext() if spec.is_direct else with_times_of_day(spark, [spec.plan.decoding])
        with times, sinks.connected(spec.sink, spec.table):
            return _run(spec, spark)
    except Exception as error:
        known = failures.typed(error, spec.hidden)
        if spec.transform:
            known = Transform(spec.transform, spec).blamed(known)
        if known is error:
            raise
        raise known from None  # Spark's text is pages of traceback, and may quote a secret


def _run(spec: JobSpec, spark: SparkSession) -> Landed:
    started = time.monotonic()
    check_origin(spec, spec.plan)
    if not spec.is_small and not spec.plan.is_empty:
        preflight.check_workers(spark)
    transform = Transform(spec.transform, spec) if spec.transform else None
    if transform:
        transform.rehearse(spark)
    plan = spec.plan
    _log.info("reading %d splits, about %d bytes, of plan %s", len(plan.splits), plan.estimate.bytes, plan.fingerprint)
    writer = sinks.writer_of(spec.sink, plan.window, spec.terms) if spec.sink and spec.terms else None
    try:
        spec = sinks.with_quarantine(spec, writer)
        if transform is None and isinstance(writer, TableWriter):
            return _land_directly(spec, spark, writer, started)
        read = reading.read(spec, spark)
        if transform is None and writer is None:
            read.pass_over()
            return Landed(_proven(spec, read.receipts(), started))
        with unchanged(spark) if transform else nullcontext():
            return _land(spec, read, transform, writer, started)
    finally:
        if writer is not None:
            writer.discard()


def _land_directly(spec: JobSpec, spark: SparkSession, writer: TableWriter, started: float) -> Landed:
    """Whoever reads the rows writes them: they never cross into Spark."""
    rows = row_schema(spec)
    schema = check_schema(spec, spark_names(rows))
    staged = staging.stage(spec, writer.open(rows), spark)
    return _commit(spec, staged, writer, schema, started)


def _land(
    spec: JobSpec, read: reading.Read, transform: Transform | None, writer: sinks.Writer | None, started: float
) -> Landed:
    df = transform(read.df) if transform else read.df
    read.expect_unread()
    if writer is None:
        df.write.format("noop").mode("overwrite").save()
        return Landed(_proven(spec, read.receipts(), started))
    schema = schema_of(spec, df)
    if isinstance(writer, TableWriter):
        staged = staging.stage_frame(df, {0: writer.open(arrow_schema(spec, df))})[0]
        staged.receipts = read.receipts()
        return _commit(spec, staged, writer, schema, started)
    rows = _stage(df, writer)
    receipt = _proven(spec, read.receipts(), started)
    written = writer.commit(receipt, expected_rows(spec, receipt, rows))
    _log.info("window %s is in place: %s rows read, %s written", spec.plan.window, receipt.rows, written)
    return Landed(receipt, written, schema)


def _commit(spec: JobSpec, staged: Staged, writer: TableWriter, schema: Schema, started: float) -> Landed:
    receipt = _proven(spec, staged.receipts, started)
    commit(spec, staged, writer, receipt)
    return Landed(receipt, staged.rows, schema)


def commit(spec: JobSpec, staged: Staged, writer: TableWriter, receipt: Receipt) -> None:
    """Put a proven window's files in its place.

    Raises:
        FewerRows: the table holds more rows of it.
        SinkError: the files hold other rows than were read; or as the writer says.
    """
    expected_rows(spec, receipt, staged.rows)
    writer.commit(staged.files, receipt)
    _log.info("window %s is in place: %s rows read, %s written", spec.plan.window, receipt.rows, staged.rows)


def arrow_schema(spec: JobSpec, df: DataFrame) -> pa.Schema:
    """The columns of a transform's rows.

    Raises:
        TransformFailed: no data file holds one of them.
    """
    try:
        return staging.arrow_schema(df)
    except staging.UnfitColumn as error:
        raise TransformFailed(str(spec.transform), spec.plan.window, str(error)) from None


def row_schema(spec: JobSpec) -> pa.Schema:
    """The columns of what a spec reads."""
    with closing(load_system(spec.plan.source.system).from_options(spec.options)) as system:
        return read_schema(system, spec.plan, spec.columns)


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
    return check_schema(spec, tuple((field.name, field.dataType.simpleString()) for field in df.schema))


def check_schema(spec: JobSpec, schema: Schema) -> Schema:
    """As `schema_of`, for columns that are known by name and type. A transform's are not known by the plan alone.

    Raises:
        LandingMismatch: as there.
    """
    before = (spec.terms.columns if spec.terms else None) or ()
    later, hint, anew = spec.terms.later if spec.terms else (), _PLANNED_ANEW, LAND_ANEW
    if spec.transform is not None:  # its columns are known here first, which is too late to land anew
        later, hint, anew = (), _TRANSFORMED, ""
    check_fit(spec.plan, before, schema, later, hint=hint, anew=anew)
    if lacking := sorted(new_columns(schema, before)):
        text = "window %s was planned before the table got %s: null in its rows, until replan=True plans it anew"
        _log.warning(text, spec.plan.window, ", ".join(lacking))
    return schema


_PLANNED_ANEW: Final = "plan the window anew with replan=True, if what its events are decoded to now has all of these"
_TRANSFORMED: Final = (
    "have the transform give all of these, plan the window anew with replan=True if the events of its plan lack them"
)


def expected_rows(spec: JobSpec, receipt: Receipt, handed: int | None) -> int | None:
    """How many rows the table must hold of this window; None: a transform decides, and nobody counted.

    Args:
        spec: the job's.
        receipt: what was proven to have been read.
        handed: how many rows were written; None: Spark did not say.

    Raises:
        FewerRows: the table holds more of this window now.
        SinkError: another number was written than was read, without a transform.
    """
    if spec.held is not None and (missing := spec.held.missing(receipt)):
        names, why = ", ".join(spec.plan.source.names), _unaccounted(spec.held, receipt, missing)
        raise FewerRows(names, spec.plan.window, spec.held.rows, receipt.rows, why)
    if spec.transform is not None:
        return handed
    if handed is not None and handed != receipt.rows:
        name = spec.sink.asset_uri if spec.sink else "nowhere"
        raise SinkError(name, f"{receipt.rows} rows were read and proven, but {handed} were written")
    return receipt.rows


def _unaccounted(held: Held, receipt: Receipt, missing: int) -> str:
    """Of a window that keeps its rows, but not its events."""
    if receipt.rows < held.rows:
        return ""
    return (
        f"{missing} of the {held.undecodable} events that could not be decoded are neither rows of it now nor told of: "
        "their own times are other windows', which must be read anew with it"
    )


def _stage(df: DataFrame, writer: sinks.FrameWriter) -> int | None:
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
    receipt = compare(spec.plan, explained, seconds=time.monotonic() - started)
    spec.undecodable.check(spec.plan, receipt)
    return receipt
