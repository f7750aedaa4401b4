"""Whether a table can take the columns of rows to come: they may only grow."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from airflow_provider_streams.errors import LAND_ANEW, LandingMismatch
from airflow_provider_streams.model.landing import Landing, Schema, missing_columns
from airflow_provider_streams.model.plan import Plan
from airflow_provider_streams.spark.sinks import check_columns
from airflow_provider_streams.spark.split_reading import schema_of
from airflow_provider_streams.spark.type_names import spark_names
from airflow_provider_streams.systems.base import StreamSystem


def columns_of(system: StreamSystem, plan: Plan, asked: Sequence[str] | None) -> Schema:
    """The columns of a plan's rows, which no transform has seen, as Spark names their types.

    Raises:
        InvalidRequest: an unknown column.
    """
    return spark_names(schema_of(system, plan, asked))


def check_anew(system: StreamSystem, plan: Plan, landing: Landing) -> None:
    """See that a plan's rows, which no transform sees, may take the place of all that a landing's table holds.

    Raises:
        SinkError: they may not, for it keeps its columns; or it cannot be looked at.
    """
    if landing.sink is not None:
        check_columns(landing.sink, schema_of(system, plan, landing.columns))


def check_fit(
    plan: Plan, table: Schema, rows: Schema, later: Collection[str] = (), *, hint: str = "", anew: str = LAND_ANEW
) -> None:
    """Refuse rows that lack columns of the table.

    Args:
        plan: what they are rows of.
        table: its columns.
        rows: theirs.
        later: see `missing_columns`.
        hint: what may mend it.
        anew: what is said of landing all windows anew; empty: it does not help.

    Raises:
        LandingMismatch: they do.
    """
    if lost := missing_columns(table, rows, later):
        source, shown = ", ".join(plan.source.names), (_text(table), _text(rows))
        raise LandingMismatch(source, plan.reader, *shown, lost, hint=hint, anew=anew)


def _text(columns: Schema) -> str:
    return f"rows of {', '.join(f'{name} {kind}' for name, kind in columns)}"
