"""Commits to a catalog, and the commit that replaces a window: judged on exactly the metadata that it is made on."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.table import Table, TableProperties, Transaction

from airflow_provider_streams.errors import (
    CommitStateUnknown,
    ConcurrentCommit,
    SinkError,
    StreamsError,
    TableUnavailable,
)
from airflow_provider_streams.lake.columns import without_window
from airflow_provider_streams.lake.iceberg.catalogs.catalog_errors import errors_of, words_of
from airflow_provider_streams.lake.iceberg.catalogs.commit_answers import refusal_of
from airflow_provider_streams.lake.iceberg.column_types import check_same_columns
from airflow_provider_streams.lake.iceberg.dropped_columns import check_partition_columns
from airflow_provider_streams.lake.iceberg.files.column_metrics import manifest_entries
from airflow_provider_streams.lake.iceberg.files.locations import check_places
from airflow_provider_streams.lake.iceberg.files.table_files import files_of, rows_beside, storage_of
from airflow_provider_streams.lake.iceberg.files.window_files import HeldFiles, files_sharing_time
from airflow_provider_streams.lake.iceberg.longest_window import facts_of, length_facts
from airflow_provider_streams.lake.iceberg.overwrite import overwrite_of
from airflow_provider_streams.lake.iceberg.table import IcebergTable, Watched, change_for, is_owned
from airflow_provider_streams.lake.table_properties import ATTEMPT, WINDOW, commit_facts, in_the_way, properties_of
from airflow_provider_streams.model.sinks.landing import TableTerms
from airflow_provider_streams.model.sinks.sink import IcebergSink
from airflow_provider_streams.model.window.window import Window

_PAUSES_SECONDS = (0.0, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Before each try, while the outcome of the last one is unknown, or others are first."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Commit:
    """One change of a table, made once, even if answers get lost.

    Each of its commits makes a snapshot that bears the attempt's name. By it, an attempt that lost the answer finds its
    commit. And because of the snapshot, the catalog refuses a commit on older metadata, whatever changed in them.
    """

    sink: IcebergSink
    attempt: str
    change: Callable[[Table, Mapping[str, str]], Transaction | None]
    """Makes the change from the table and the facts for its snapshots; None: there is nothing left to change."""
    judge: Callable[[Table], object]
    """Called if another commit came first; raises if the change may not be made as it is."""

    def send(self, table: IcebergTable, facts: Mapping[str, str]) -> None:
        """Make it.

        Raises:
            CommitStateUnknown: it may have come through.
            TableUnavailable: it was not made: catalog or store do not answer, or others were first again and again.
            StreamsError: it was not made, because `change` or `judge` raised this.
        """
        facts = {**facts, ATTEMPT: self.attempt}
        sent = _Sent()
        for pause in _PAUSES_SECONDS:
            time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - so that waiting writers do not meet again
            try:
                now = table.loaded()
                sent.settle(now)
                if self._is_made(now):
                    return
                with errors_of(self.sink, uses_vended_credentials=storage_of(now).is_vended):
                    check_partition_columns(str(self.sink), now)
                    change = self.change(Watched(now, partial(self._judge_again, sent)), facts)
                if change is None or self._is_through(change, sent, now):
                    return
            except TableUnavailable as error:
                sent.failure = error
            except StreamsError as error:
                if sent.unclear:  # whatever stops another try, the last one may still come through
                    raise CommitStateUnknown(str(self.sink), words_of(error)) from error
                raise
        raise sent.unsettled(self.sink)

    def _is_made(self, table: Table) -> bool:
        return any(facts_of(one).get(ATTEMPT) == self.attempt for one in table.snapshots())

    def _is_through(self, change: Transaction, sent: _Sent, now: Table) -> bool:
        """Whether a commit came through. False: look again."""
        try:
            change.commit_transaction()
        except _IsMade:
            return True
        except (CommitFailedException, ValidationException) as error:
            _log.info("%s: others changed the table first, looking again: %s", self.sink, words_of(error))
            sent.failure = error
            return False
        except StreamsError:
            raise
        except Exception as error:
            if refusal := refusal_of(self.sink, error):
                raise refusal from error
            # whatever it is, the commit may have come through
            _log.warning("%s: a commit failed, looking whether it came through: %s", self.sink, words_of(error))
            sent.failure, sent.unclear, sent.head = error, True, newest_id(now)
            return False
        return True

    def _judge_again(self, sent: _Sent, table: Table) -> None:
        """Judge after another commit. `_IsMade`: it was an earlier try of ours, and another would double its rows."""
        sent.settle(table)
        if self._is_made(table):
            raise _IsMade
        check_places(str(self.sink), table)
        with errors_of(self.sink):
            check_partition_columns(str(self.sink), table)
            self.judge(table)


@dataclass(frozen=True)
class Replacement:
    """One attempt at one window; it also makes a snapshot if it empties the window."""

    sink: IcebergSink
    window: Window
    terms: TableTerms
    attempt: str
    known: frozenset[int]
    """The table's snapshots when the attempt began."""
    columns: pa.Schema
    """Of its files, the window columns too, with the field ids that they have in them."""

    def commit(self, table: IcebergTable, files: Sequence[str], fingerprint: str) -> None:
        """Put files in the window's place. After any error but `CommitStateUnknown`, nothing was changed."""

        def change(now: Table, facts: Mapping[str, str]) -> Transaction:
            return self._change(now, files, facts, self._judge(now))

        facts = commit_facts(self.window, fingerprint, self.attempt)
        Commit(self.sink, self.attempt, change, self._judge).send(table, facts)

    def _judge(self, table: Table) -> HeldFiles | None:
        """Check that the window may be replaced in exactly these metadata; raises as `IcebergWriter.commit`.

        Returns:
            what the window replaces; None: all that the table holds.
        """
        is_ours = is_owned(str(self.sink), table, self.terms)
        to_come = change_for(self.sink, table, without_window(self.columns), self.terms).table_metadata.schema()
        check_same_columns(str(self.sink), self.columns, to_come)
        if not is_ours:
            return None  # all its rows are set aside
        for one in table.snapshots():
            landed = facts_of(one).get(WINDOW)
            if landed is not None and one.snapshot_id not in self.known and Window.parse(landed).overlaps(self.window):
                raise ConcurrentCommit(str(self.sink), self.window, landed)
        held = files_sharing_time(table, self.window)
        in_the_way(self.window, frozenset(held.windows()), self.terms)
        return held

    def _change(
        self, table: Table, files: Sequence[str], facts: Mapping[str, str], held: HeldFiles | None
    ) -> Transaction:
        """One transaction: remove the old files, add the new ones, write the mark, and change the columns."""
        length = self.window.end - self.window.start
        longest = length if held is None else max(length, held.longest)
        facts = {**facts, **length_facts(table, longest)}
        change = change_for(self.sink, table, without_window(self.columns), self.terms)
        if held is not None:
            self._remove(change, table.io, held, facts)
        elif files_of(table):
            change.delete(AlwaysTrue(), snapshot_properties=facts)
        change.set_properties(self._properties(change, has_files=bool(files), is_ours=held is not None))
        with change.update_snapshot(snapshot_properties=facts).merge_append() as append:
            for file in manifest_entries(str(self.sink), table.io, change.table_metadata, files, self.window):
                append.append_data_file(file)
        return change

    def _remove(self, change: Transaction, io: FileIO, held: HeldFiles, facts: dict[str, str]) -> None:
        """Remove the files that share time with the window, and write again what else is in them.

        In one snapshot, so that none lacks rows of other windows.
        """
        if not held.files:
            return
        with overwrite_of(change, facts) as overwrite:
            overwrite.delete_by_predicate(held.manifests)  # which manifests are opened; all, without it
            for one in held.files:
                overwrite.delete_data_file(one.task.file)
                if one.is_within(self.window):
                    continue
                # compacted into one file with other rows, or written so by others; one after the other in memory
                others = rows_beside(change.table_metadata, io, one.task, self.window)
                for file in _dataframe_to_data_files(change.table_metadata, others, io) if len(others) else ():
                    overwrite.append_data_file(file)

    def _properties(self, change: Transaction, *, has_files: bool, is_ours: bool) -> dict[str, str]:
        """What the table's properties lack."""
        lacking = {} if is_ours else properties_of(self.terms.mark)
        if has_files and change.table_metadata.name_mapping() is None:
            names = change.table_metadata.schema().name_mapping.model_dump_json()
            lacking[TableProperties.DEFAULT_NAME_MAPPING] = names
        return {**lacking, **merging(change)}


def merging(change: Transaction) -> dict[str, str]:
    """The property that lets commits merge manifests, if the table does not say: pyiceberg's default differs."""
    name = TableProperties.MANIFEST_MERGE_ENABLED
    return {} if name in change.table_metadata.properties else {name: "true"}


class _IsMade(Exception):
    """The commit came through."""


@dataclass
class _Sent:
    """What is known of the tries so far."""

    failure: Exception | None = None
    unclear: bool = False
    """The last one may have come through, or still may."""
    head: int | None = None
    """The snapshot that it was made on."""

    def settle(self, now: Table) -> None:
        """Know that a try failed: catalogs refuse commits on a snapshot that is no longer the newest."""
        self.unclear = self.unclear and newest_id(now) == self.head

    def unsettled(self, sink: IcebergSink) -> SinkError:
        """The error when no try is left."""
        words = words_of(self.failure) if self.failure is not None else "no answer"
        if self.unclear:
            return CommitStateUnknown(str(sink), words)
        return TableUnavailable(str(sink), f"the window could not be put in place, and is what it was: {words}")


def newest_id(table: Table) -> int | None:
    """The table's newest snapshot; None: it has none."""
    newest = table.current_snapshot()
    return None if newest is None else newest.snapshot_id
