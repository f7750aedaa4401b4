"""What an engine knows of a window whose changes it applies, and of the table's rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from airflow_provider_streams.lake.changes.columns import UnusableChanges
from airflow_provider_streams.lake.changes.latest_and_history import application_for
from airflow_provider_streams.lake.changes.states import history, stored_latest
from airflow_provider_streams.lake.changes.states.change_states import Rules
from airflow_provider_streams.lake.changes.states.events import starts_of
from airflow_provider_streams.model.changes.auto_cdc import HISTORY, START_COLUMN
from airflow_provider_streams.model.window.window import Window


@dataclass(frozen=True, slots=True)
class ChangeWindow:
    """A window whose changes are applied.

    Args:
        window: the window.
        fingerprint: of its plan.
        holes: the positions at which spans of the stream begin that no covered window reads, once this one is covered,
            before the newest covered one. None: they are not known, so all markers stay.
        resent_from: changes of this sequence or a lower one will not be sent again; None: nothing is sent again.
    """

    window: Window
    fingerprint: str
    holes: tuple[str, ...] | None = None
    resent_from: str | None = None


def columns_and_start(changes: Sequence[pa.Table], rules: Rules) -> tuple[pa.Schema, pa.DataType | None]:
    """The columns of the table, and the type of `__START_AT` if it has history.

    A window without changes may not know its columns yet, and does not know the order, so neither that type.

    Raises:
        UnusableChanges: tables of one window have different columns, or there is none.
        InvalidRequest: the rows lack a column that the declaration names.
    """
    if not changes:
        raise UnusableChanges("a window has no table of changes, not even an empty one, so its columns are not known")
    first = changes[0]
    if any(one.schema.remove_metadata() != first.schema.remove_metadata() for one in changes):
        raise UnusableChanges("the changes of one window have different columns")
    if any(map(len, changes)):
        return columns_of(first, rules), starts_of(first, rules).type if _has_history(rules) else None
    is_complete = is_known(first.schema, rules) and not _has_history(rules)
    return columns_of(first, rules) if is_complete else pa.schema([]), None


def columns_of(rows: pa.Table, rules: Rules) -> pa.Schema:
    """The table's own columns; raises `InvalidRequest` if the rows lack a column that the declaration names."""
    return pa.schema([pa.field(name, rows.schema.field(name).type) for name in rules.columns(rows)])


def is_known(rows: pa.Schema, rules: Rules) -> bool:
    """Whether rows have the columns of their key. Those of a stream without any change so far do not."""
    return bool(rules.keys) and set(rules.keys) <= set(rows.names)


def new_table(rows: pa.Schema, rules: Rules) -> pa.Schema:
    """The schema of a new table, as far as it is known before changes are: own columns may be missing.

    Without `sequence_by`, the type of `__START_AT` depends on the source, which only changes name.
    """
    empty = rows.empty_table()
    if not is_known(rows, rules) or (_has_history(rules) and rules.cdc.sequence is None):
        return without_unknown(application_for(rules, pa.schema([])).row_schema)
    start = starts_of(empty, rules).type if _has_history(rules) else None
    return application_for(rules, columns_of(empty, rules), start).row_schema


def without_unknown(columns: pa.Schema) -> pa.Schema:
    """The columns whose type is known."""
    return pa.schema([one for one in columns if not pa.types.is_null(one.type)])


def _has_history(rules: Rules) -> bool:
    return rules.cdc.stored_as_scd_type == HISTORY


def without_versions(columns: pa.Schema, rules: Rules) -> pa.Schema:
    """A table's columns but for those that say of which changes a row is."""
    nothing = pa.schema([])
    own = history.row_schema(nothing, pa.null()) if _has_history(rules) else stored_latest.row_schema(nothing)
    return pa.schema([one for one in columns if one.name not in own.names])


def start_type(table: pa.Schema, start: pa.DataType | None) -> pa.DataType | None:
    """The type of `__START_AT` in a table, which may be wider than the one of a window."""
    return table.field(START_COLUMN).type if START_COLUMN in table.names else start


def rules_json(rules: Rules) -> dict[str, Any]:
    """The rules that the rows of a table depend on, as plain JSON; none if the keys are not known yet.

    The order of the source is not among them: the life of the source, which may not change, has it.
    """
    cdc = rules.cdc.to_json()
    kept = ("sequence_by", "ignore_null_updates", "stored_as_scd_type", "track_history_column_list")
    return {"keys": list(rules.keys), **{name: cdc[name] for name in kept}} if rules.keys else {}
