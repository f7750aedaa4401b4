"""Whether a table can take the columns of new rows: they may only grow."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from airflow_provider_streams.errors import FULL_REFRESH_HINT, LandingMismatch
from airflow_provider_streams.lake.registry import writer_of
from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.model.sinks.landing import Landing, Schema, TableMark, TableTerms, missing_columns
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.spark.datasource.split_reading import schema_of
from airflow_provider_streams.spark.type_names import spark_names
from airflow_provider_streams.systems.base import StreamSystem
from airflow_provider_streams.systems.planned_changes import change_terms_of


def columns_of(system: StreamSystem, plan: Plan, asked: Sequence[str] | None) -> Schema:
    """The columns of a plan's rows before any transform, as Spark names their types.

    Raises:
        InvalidRequest: an unknown column.
    """
    return spark_names(schema_of(system, plan, asked))


def check_full_refresh(system: StreamSystem, plan: Plan, landing: Landing) -> None:
    """Check that a plan's rows, without a transform, may replace all that a landing's table holds.

    Raises:
        SinkError: they may not, because the table keeps its columns; or it cannot be read.
    """
    if landing.sink is not None and (writer := writer_of(landing.sink)).keeps_columns:
        mark = TableMark("", plan.source.system, plan.reader)  # no table has it
        terms = TableTerms(mark, set_aside=True, changes=change_terms_of(plan, landing.columns))
        writer.check_rows(landing.sink, schema_of(system, plan, landing.columns), terms)


def check_fit(
    plan: Plan,
    table: Schema,
    rows: Schema,
    sink: Sink | None,
    later: Collection[str] = (),
    *,
    hint: str = "",
    refresh: str = FULL_REFRESH_HINT,
) -> None:
    """Refuse rows that lack columns of the table, or have wider numbers than it has and may get.

    Args:
        plan: of the rows.
        table: the table's columns.
        rows: the rows' columns.
        sink: the table.
        later: see `missing_columns`.
        hint: what helps.
        refresh: the hint on a full refresh; empty: it does not help.

    Raises:
        LandingMismatch: they do.
    """
    if lost := missing_columns(table, rows, later, widen=bool(sink and sink.widen)):
        if sink and sink.widen is not None and not missing_columns(table, rows, later, widen=True):
            hint = _WIDEN
        source, shown = ", ".join(plan.source.names), (_text(table), _text(rows))
        raise LandingMismatch(source, plan.reader, *shown, lost, hint=hint, refresh=refresh)


_WIDEN: Final = "let the sink promote the table's numbers (widen=True)"


def _text(columns: Schema) -> str:
    return f"rows of {', '.join(f'{name} {kind}' for name, kind in columns)}"
