"""What the engines share when they apply changes: the rules, the errors, and the files of an attempt."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Self, TypeVar

import pyarrow as pa

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.changes.columns import UnusableChanges
from airflow_provider_streams.lake.changes.copy_on_write import RANGE_BYTES
from airflow_provider_streams.lake.changes.landed_changes import ChangeWindow
from airflow_provider_streams.lake.changes.marker_files import MarkerList
from airflow_provider_streams.lake.changes.order import check_one_life, check_one_table
from airflow_provider_streams.lake.changes.states.change_states import Rules
from airflow_provider_streams.lake.commit_outcome import CommitOutcome
from airflow_provider_streams.lake.data_files import FileTarget
from airflow_provider_streams.lake.file_rewriting import remove_attempt
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.lake.table_properties import in_the_way
from airflow_provider_streams.model.changes.source_order import order_of_life
from airflow_provider_streams.model.sinks.landing import TableTerms

S = TypeVar("S")


@dataclass(frozen=True)
class ChangeApplier(ABC, Generic[S]):
    """Applies the changes of windows to one table, which is made when it does not exist.

    Args:
        sink: names the table.
        terms: whose the table is, and what may be replaced in it.
        rules: how its changes are applied; they must stay the same.
        range_bytes: of a file's rows in memory.
    """

    sink: S
    terms: TableTerms
    rules: Rules
    range_bytes: int = RANGE_BYTES

    @property
    @abstractmethod
    def table_name(self) -> str:
        """As errors name the table."""

    @abstractmethod
    def open(self, columns: pa.Schema) -> Storage:
        """Make the table, or check that rows of these columns may be applied to it. Return the folder of its data.

        Raises:
            TableOwnedByOther: it is another reader's, or holds data and names no owner.
            SinkError: it cannot be reached or made; the rows have columns that it cannot hold.
        """

    @abstractmethod
    def apply_in_order(self, window: ChangeWindow, changes: Sequence[pa.Table]) -> None:
        """As `apply`, by rules that have the order of the source. `UnusableChanges` does not name the table yet."""

    def apply(self, window: ChangeWindow, changes: Iterable[pa.Table]) -> None:
        """Join a window's changes to the table, in one commit. A window may be applied again.

        Args:
            window: what the commit says of itself, and which markers may go.
            changes: change rows, in tables of any size; at least one, which may have no rows.

        Raises:
            SinkError: the changes cannot be ordered, or the table cannot hold them, or cannot be written.
            TableOwnedByOther: it is another reader's.
            WindowsOverlap: other windows that were applied share time with it, and must stay.
            CommitStateUnknown: the commit may have come through.
            TableUnavailable: catalog or store fail, or other commits were first again and again.
        """
        every = list(changes)
        try:
            life = check_one_life(every, None)
            rules = self.rules if life is None else replace(self.rules, order=order_of_life(life))
            replace(self, rules=rules).apply_in_order(window, every)
        except UnusableChanges as error:
            raise SinkError(self.table_name, str(error)) from error

    def becomes(self, held: MarkerList, window: ChangeWindow, changes: Sequence[pa.Table]) -> MarkerList:
        """The table's list once a window is applied, but for its markers.

        A window that takes the place of others has their changes as well.

        Raises:
            WindowsOverlap: other windows share time with it, and must stay.
            UnusableChanges: the changes are of another life of the source, or of another table.
        """
        others = in_the_way(window.window, held.windows, self.terms)
        return replace(
            held,
            life=check_one_life(changes, held.life),
            table=check_one_table(changes, held.table, self.rules.keys),
            windows=(held.windows - set(others)) | {window.window},
        )


@dataclass(kw_only=True)
class AttemptFiles(CommitOutcome):
    """The new files of one attempt. At its end they are removed, unless a commit names them, or may name them."""

    target: FileTarget

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.may_be_landed:
            remove_attempt(self.target, self.target.storage)
