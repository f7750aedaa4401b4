"""Windows of change rows: tasks write them where no reader of the table sees them, and the commit applies them.

    <folder of the data>/_changes/<attempt>-*.parquet    change rows of an attempt that has not ended

An attempt that was killed leaves such files. No table names them, and expiry removes them.
"""

from __future__ import annotations

import uuid
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_streams.errors import InvalidRequest, SinkError
from airflow_provider_streams.lake.changes.arrow_compute import pc
from airflow_provider_streams.lake.changes.change_applier import ChangeApplier
from airflow_provider_streams.lake.changes.columns import CHANGE_COLUMNS, POSITION, UnusableChanges
from airflow_provider_streams.lake.changes.landed_changes import ChangeWindow
from airflow_provider_streams.lake.changes.states.change_states import Rules, changes_of
from airflow_provider_streams.lake.data_files import DataFile, FileTarget
from airflow_provider_streams.lake.file_rewriting import remove_attempt
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.lake.writer import TableWriter
from airflow_provider_streams.model.changes.auto_cdc import AutoCdc
from airflow_provider_streams.model.plan.receipt import Receipt
from airflow_provider_streams.model.sinks.landing import TableTerms
from airflow_provider_streams.model.window.window import Window

FOLDER: Final = "_changes"
_DIGITS: Final = 20
"""Of a part of a place, as `_position` of change rows has it."""


class ChangeWriter(TableWriter):
    """One attempt to apply a window's changes; see `TableWriter`."""

    def __init__(self, sink: Any, window: Window, terms: TableTerms) -> None:
        self._sink, self._window, self._terms = sink, window, terms
        self._attempt = uuid.uuid4().hex
        self._target: FileTarget | None = None
        self._applier = self.applier(sink, terms)

    @classmethod
    @abstractmethod
    def applier(cls, sink: Any, terms: TableTerms) -> ChangeApplier[Any]:
        """What applies changes to the sink's table."""

    def open(self, schema: pa.Schema) -> FileTarget:
        """See `TableWriter`."""
        storage = self._applier.open(change_columns(str(self._sink), schema, self._applier.rules, self._terms))
        self._target = FileTarget(storage, FOLDER, f"{self._attempt}-", schema)
        storage.make_folder(FOLDER)
        return self._target

    def commit(self, files: Sequence[DataFile], receipt: Receipt) -> None:
        """See `TableWriter`. Changes that were applied before stay as they are.

        Raises:
            CommitStateUnknown: the changes may have been applied.
            TableUnavailable: catalog or store fail, or other commits were first again and again.
        """
        if self._target is None:
            raise SinkError(str(self._sink), "commit comes after open")
        target = self._target
        written = [_rows_of(target.storage, file, target.schema) for file in files] or [target.schema.empty_table()]
        changes = [_as_changes(str(self._sink), rows, self._terms) for rows in written]
        self._applier.apply(ChangeWindow(self._window, receipt.fingerprint), changes)

    def discard(self) -> None:
        """See `TableWriter`. The table does not name the files of change rows."""
        if self._target is not None:
            remove_attempt(self._target, self._target.storage)


def rules_of(cdc: AutoCdc, terms: TableTerms) -> Rules:
    """How changes are applied to a table: by the keys of the declaration, or else by those of the changes."""
    return Rules(cdc, cdc.keys or terms.changes.keys)


def change_columns(target: str, rows: pa.Schema, rules: Rules, terms: TableTerms) -> pa.Schema:
    """The columns of rows as changes.

    Raises:
        SinkError: they have no key, or nothing that orders them, or lack a column that the declaration names.
    """
    changes = _as_changes(target, rows.empty_table(), terms).schema
    own = set(changes.names) - CHANGE_COLUMNS
    if not rules.keys and terms.changes.no_events:
        return changes
    if not rules.keys and own:
        raise SinkError(
            target,
            "nothing says which row a change is of, because messages have no key, or none is known: name the columns "
            "of the key, like apply=AutoCdc(keys=['id'])",
        )
    if own:  # else no change was seen so far
        try:
            changes_of(changes.empty_table(), rules)
        except (InvalidRequest, UnusableChanges) as error:
            raise SinkError(target, str(error)) from error
    return changes


def _rows_of(storage: Storage, file: DataFile, schema: pa.Schema) -> pa.Table:
    system, root = storage.open()
    with storage.errors(f"{file.path}, which holds changes, cannot be read"):
        rows: Any = pq.read_table(f"{root}/{file.path}", filesystem=system, partitioning=None)
    return pa.table(rows.select(schema.names).cast(schema))


def _as_changes(target: str, rows: pa.Table, terms: TableTerms) -> pa.Table:
    """Rows with `_position`, and without the columns that the table does not get."""
    if POSITION not in rows.column_names:
        if lacking := [name for name in terms.changes.position or (POSITION,) if name not in rows.column_names]:
            raise SinkError(target, f"the rows have no column {lacking[0]!r}, by which changes are ordered: ask for it")
        rows = rows.append_column(POSITION, positions([rows[name] for name in terms.changes.position]))
    return rows.drop_columns([name for name in terms.changes.aside if name in rows.column_names])


def positions(parts: Sequence[Any]) -> Any:
    """Places in the stream as text of fixed width, like `_position` of database changes.

    Args:
        parts: whole numbers, of which the first decides. A missing or negative one counts as 0.
    """
    numbers = (pc.max_element_wise(pc.cast(pc.fill_null(one, 0), pa.int64()), 0) for one in parts)
    return pc.binary_join_element_wise(*(pc.utf8_lpad(pc.cast(one, pa.string()), _DIGITS, "0") for one in numbers), ".")
