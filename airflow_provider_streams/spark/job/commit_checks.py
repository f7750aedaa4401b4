"""What must hold before a window is committed: its columns fit the table, and all its rows are there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from airflow_provider_streams.errors import (
    FULL_REFRESH_HINT,
    InvalidRequest,
    RowCountDecreased,
    SinkError,
    TransformFailed,
    foreseen,
)
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.lake.writer import TableWriter, Writer
from airflow_provider_streams.model.plan.receipt import Receipt
from airflow_provider_streams.model.sinks.landing import Held, Schema, new_columns, rows_text
from airflow_provider_streams.spark.catalog.columns import table_columns
from airflow_provider_streams.spark.job import staging
from airflow_provider_streams.spark.job.columns_fit_table import check_fit
from airflow_provider_streams.spark.job.file_writing_tasks import Staged
from airflow_provider_streams.spark.job.job_spec import WindowSpec
from airflow_provider_streams.spark.job.open_systems import OpenSystems
from airflow_provider_streams.spark.type_names import spark_names

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_log = logging.getLogger(__name__)


def with_quarantine(spec: WindowSpec, writer: Writer | None) -> WindowSpec:
    """The spec with the folder where tasks keep events that cannot be decoded; made if the policy asks for it.

    Raises:
        InvalidRequest: the sink keeps no such events.
        SinkError: the folder cannot be made.
    """
    if spec.undecodable.then != "quarantine" or spec.plan.decoding is None or writer is None:
        return replace(spec, quarantine=None)
    if (folder := writer.open_quarantine()) is None:
        raise InvalidRequest(
            f"a sink of kind {spec.sink.kind if spec.sink else None!r} keeps no undecodable events: "
            "use on_decode_error='fail' or 'drop', or land in a ParquetSink"
        )
    return replace(spec, quarantine=str(folder))


def commit(
    spec: WindowSpec, staged: Staged, writer: Writer, receipt: Receipt, touching: Callable[[], None]
) -> int | None:
    """Commit a proven window; how many rows it has in the table now, None: not counted.

    `touching` is called just before the table changes.

    Raises:
        RowCountDecreased: the table holds more rows of it.
        SinkError: other rows were written than were read; or as the writer says.
    """
    if isinstance(writer, TableWriter):
        written: int | None = staged.rows
        expected_rows(spec, receipt, written)
        touching()
        writer.commit(staged.files, receipt)
    else:
        expected = expected_rows(spec, receipt, staged.handed)
        touching()
        written = writer.commit(receipt, expected)
    _log.info("window %s is in place: %s", spec.plan.window, rows_text(receipt.rows, written))
    return written


def arrow_schema(spec: WindowSpec, df: DataFrame) -> pa.Schema:
    """The columns of a transform's rows.

    Raises:
        TransformFailed: no data file holds one of them.
    """
    try:
        return staging.arrow_schema(df)
    except staging.UnfitColumn as error:
        raise TransformFailed(str(spec.transform), spec.plan.window, str(error)) from None


def schema_of(spec: WindowSpec, df: DataFrame, systems: OpenSystems) -> Schema:
    """The columns to land, if the table can take them: they may only grow.

    Raises:
        LandingMismatch: a column of the table is missing, or of another type.
    """
    return check_schema(spec, table_columns(df.schema), systems)


def check_schema(spec: WindowSpec, schema: Schema, systems: OpenSystems) -> Schema:
    """As `schema_of`, for columns that are known by name and type. The plan does not tell those of a transform.

    Raises:
        LandingMismatch: as there.
    """
    before = (spec.terms.columns if spec.terms else None) or ()
    later, hint, refresh = spec.terms.later if spec.terms else (), _REPLAN, FULL_REFRESH_HINT
    if spec.transform is not None:  # its columns are first known here, which is too late for a full refresh
        later, hint, refresh = _lacked(spec, before, later, systems), _TRANSFORMED, ""
    with foreseen() if spec.transform is None else nullcontext():
        check_fit(spec.plan, before, schema, spec.sink, later, hint=hint, refresh=refresh)
    if lacking := sorted(new_columns(schema, before)):
        text = "window %s was planned before the table got %s: null in its rows, until replan=True plans it again"
        _log.warning(text, spec.plan.window, ", ".join(lacking))
    return schema


def _lacked(spec: WindowSpec, table: Schema, later: Collection[str], systems: OpenSystems) -> tuple[str, ...]:
    """Columns that the table got later, and that a transform does not get: others, the transform itself has dropped."""
    if not later:
        return ()
    given = spark_names(systems.schema_of(spec))
    return tuple(name for name in new_columns(given, table) if name in later)


_REPLAN: Final = "plan the window again with replan=True, if what its events are decoded to now has all of these"
_TRANSFORMED: Final = (
    "have the transform give all of these, plan the window again with replan=True if the events of its plan lack them"
)


def expected_rows(spec: WindowSpec, receipt: Receipt, handed: int | None) -> int | None:
    """How many rows the table must hold of this window; None: a transform decides, and they were not counted.

    Args:
        spec: the job's.
        receipt: what was proven to have been read.
        handed: how many rows were written; None: Spark did not say.

    Raises:
        RowCountDecreased: the table holds more of this window now.
        SinkError: another number was written than was read, without a transform.
    """
    if spec.held is not None and (missing := spec.held.missing(receipt)):
        names, why = ", ".join(spec.plan.source.names), _unaccounted(spec.held, receipt, missing)
        raise RowCountDecreased(names, spec.plan.window, spec.held.rows, receipt.rows, why)
    if spec.transform is not None:
        return handed
    if handed is not None and handed != receipt.rows:
        name = spec.sink.asset_uri if spec.sink else "nowhere"
        raise SinkError(name, f"{counted(receipt.rows, 'row')} read and proven, but {handed:,} written")
    return receipt.rows


def _unaccounted(held: Held, receipt: Receipt, missing: int) -> str:
    """Why a window lacks earlier events, although it keeps its rows."""
    if receipt.rows < held.rows:
        return ""
    return (
        f"{missing:,} of the {counted(held.undecodable, 'event')} that could not be decoded are neither rows of it now "
        "nor counted: their own times are those of other windows, which must be read again with it"
    )
