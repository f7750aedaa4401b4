"""What a plan tells of its changes, for a table that they are applied to."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_streams.model.changes.change_terms import ChangeTerms
from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.systems.registry import declaration_of


def change_terms_of(plan: Plan, asked: Sequence[str] | None) -> ChangeTerms:
    """How the changes of a plan name their rows and places.

    Of database changes, the table gets the row's own columns, and those that were asked for. Of other events it gets
    all columns but their places.

    Args:
        plan: the rows to come.
        asked: the requested columns; None: the default ones.
    """
    declared = declaration_of(plan.source.system)
    named = declared.metadata_name if plan.decoding is not None else str
    position = tuple(map(named, declared.payload_columns.position)) if declared.payload_columns else ()
    if plan.changes is None:
        return ChangeTerms((), position, position, plan.is_empty)
    metadata = () if asked is not None else tuple(map(named, declared.default_columns or declared.columns))
    aside = tuple(name for name in metadata if name not in plan.changes.names)
    return ChangeTerms(plan.changes.keys, position, aside, plan.is_empty)
