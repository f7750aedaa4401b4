"""Commits to a catalog, and the one that puts files in a window's place: judged on the very metadata it is made on."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.table import Table, Transaction
from pyiceberg.table.snapshots import Snapshot

from airflow_provider_streams.errors import (
    CommitUnknown,
    LandedMeanwhile,
    SinkError,
    StreamsError,
    TableUnavailable,
    WindowsOverlap,
)
from airflow_provider_streams.lake.iceberg import metrics
from airflow_provider_streams.lake.iceberg.catalog import errors_of, words_of
from airflow_provider_streams.lake.iceberg.table import (
    IcebergTable,
    Watched,
    change_for,
    files_of,
    is_owned,
    mark_of,
    overlapping,
    storage_of,
    windows_of,
)
from airflow_provider_streams.lake.iceberg.types import check_same_columns
from airflow_provider_streams.lake.owner import properties_of
from airflow_provider_streams.model.landing import TableTerms
from airflow_provider_streams.model.sink import IcebergSink
from airflow_provider_streams.model.window import Window

ATTEMPT, WINDOW, FINGERPRINT = "streams.attempt", "streams.window", "streams.fingerprint"
"""What each snapshot of ours says of itself."""

_PAUSES_SECONDS = (0.0, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Before each try, while nobody can say what became of the last one, or others are first."""

_log = logging.getLogger(__name__)


def _tells(record: logging.LogRecord) -> bool:
    """Columns without statistics are so on purpose: pyiceberg would warn of each, in each file."""
    return not record.getMessage().startswith("PyArrow statistics missing")


logging.getLogger("pyiceberg.io.pyarrow").addFilter(_tells)
metrics.make_right()


@dataclass(frozen=True)
class Commit:
    """One change of a table, made once, whatever becomes of answers.

    Each of its commits makes a snapshot that bears the attempt's name: so whoever lost the answer finds out, and the
    catalog refuses a commit that was made on older metadata, whatever changed in them.
    """

    sink: IcebergSink
    attempt: str
    change: Callable[[Table, dict[str, str]], Transaction | None]
    """Of a table, with the facts for the snapshots that it makes; None: there is nothing to change any more."""
    judge: Callable[[Table], None]
    """See that it may still be made as it is, after another commit came first; raises otherwise."""

    def send(self, table: IcebergTable, facts: Mapping[str, str]) -> None:
        """Make it.

        Raises:
            CommitUnknown: nobody can say whether it is made.
            TableUnavailable: it is not: nobody answers, or others were first again and again.
            StreamsError: as `change` and `judge` say, and it is not made.
        """
        told = {ATTEMPT: self.attempt, **facts}
        sent = _Sent()
        for pause in _PAUSES_SECONDS:
            time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - so that those who wait do not meet again
            try:
                now = table.loaded()
                sent.settle(now)
                if self._is_made(now):
                    return
                with errors_of(self.sink, is_lent=storage_of(now).lent):
                    change = self.change(Watched(now, self._judge_again), told)
            except TableUnavailable as error:
                sent.failure = error
                continue
            except StreamsError as error:
                if sent.unclear:  # whatever is in the way of another try, the one before may still come through
                    raise CommitUnknown(str(self.sink), words_of(error)) from error
                raise
            if change is None or self._is_through(change, sent, now):
                return
        raise sent.unsettled(self.sink)

    def _is_made(self, table: Table) -> bool:
        return any(_facts(one).get(ATTEMPT) == self.attempt for one in table.snapshots())

    def _is_through(self, change: Transaction, sent: _Sent, now: Table) -> bool:
        """Whether a commit came through. False: look."""
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
        except Exception as error:  # noqa: BLE001 - whatever it is, the commit may have come through
            _log.warning("%s: a commit failed, looking whether it came through: %s", self.sink, words_of(error))
            sent.failure, sent.unclear, sent.head = error, True, _head(now)
            return False
        return True

    def _judge_again(self, table: Table) -> None:
        """After another commit came first.

        Raises:
            _IsMade: it was an earlier try of this attempt, of which nobody knew; once more would double its rows.
        """
        if self._is_made(table):
            raise _IsMade
        with errors_of(self.sink):
            self.judge(table)


@dataclass(frozen=True)
class Replacement:
    """One attempt at one window; it makes a snapshot also where the window is emptied."""

    sink: IcebergSink
    window: Window
    terms: TableTerms
    attempt: str
    known: frozenset[int]
    """The table's snapshots when the attempt began."""
    columns: pa.Schema
    """Of its files, with the field ids that they have in them."""

    def commit(self, table: IcebergTable, files: Sequence[str], fingerprint: str) -> None:
        """Put files in the window's place.

        Raises:
            CommitUnknown: nobody can say whether they are.
            TableUnavailable, LandedMeanwhile, ForeignTable, WindowsOverlap, SinkError: nothing was changed.
        """
        facts = {WINDOW: str(self.window), FINGERPRINT: fingerprint}

        def change(now: Table, facts: dict[str, str]) -> Transaction:
            self._judge(now)
            return self._change(now, files, facts)

        Commit(self.sink, self.attempt, change, self._judge).send(table, facts)

    def _judge(self, table: Table) -> None:
        """See that the window may be replaced in these very metadata.

        Raises:
            ForeignTable: the table is somebody else's.
            TableUnavailable: its columns are other ones by now.
            LandedMeanwhile: the window has rows of a later attempt.
            WindowsOverlap: other windows share time with it, and shall stay.
        """
        is_ours = is_owned(str(self.sink), table, self.terms)
        to_come = change_for(self.sink, table, self.columns, self.terms).table_metadata.schema()
        check_same_columns(str(self.sink), self.columns, to_come)
        if not is_ours:
            return  # all that it holds goes
        for one in table.snapshots():
            landed = _facts(one).get(WINDOW)
            if landed is not None and one.snapshot_id not in self.known and Window.parse(landed).overlaps(self.window):
                raise LandedMeanwhile(str(self.sink), self.window, landed)
        if self.terms.replace_overlaps:
            return
        held = windows_of(table, files_of(table, overlapping(self.window)))
        in_the_way = sorted(one for one in held if one != self.window and one.overlaps(self.window))
        if in_the_way:
            raise WindowsOverlap(self.terms.mark.source, self.window, in_the_way)

    def _change(self, table: Table, files: Sequence[str], facts: dict[str, str]) -> Transaction:
        """What is to be committed as one: the old files out, the new ones in, whose table it is, and its columns."""
        is_ours = mark_of(table) == self.terms.mark
        old = overlapping(self.window) if is_ours else AlwaysTrue()
        change = change_for(self.sink, table, self.columns, self.terms)
        if files_of(table, old):
            change.delete(old, snapshot_properties=facts)
        if not is_ours:
            change.set_properties(properties_of(self.terms.mark))
        if files:
            change.add_files(list(files), snapshot_properties=facts, check_duplicate_files=False)
        else:
            with change.update_snapshot(snapshot_properties=facts).fast_append():
                pass
        return change


class _IsMade(Exception):
    """There is nothing left to do."""


@dataclass
class _Sent:
    """What is known of the commits that were tried."""

    failure: Exception | None = None
    unclear: bool = False
    """One may have come through, or may still."""
    head: int | None = None
    """The snapshot that it was made on."""

    def settle(self, now: Table) -> None:
        """A catalog refuses what was made on a snapshot that is no longer the newest one."""
        if self.unclear and _head(now) != self.head:
            self.unclear = False

    def unsettled(self, sink: IcebergSink) -> SinkError:
        """What to say when no try is left."""
        words = words_of(self.failure) if self.failure is not None else "no answer"
        if self.unclear:
            return CommitUnknown(str(sink), words)
        return TableUnavailable(str(sink), f"the window could not be put in place, and is what it was: {words}")


def _head(table: Table) -> int | None:
    newest = table.current_snapshot()
    return None if newest is None else newest.snapshot_id


def _facts(snapshot: Snapshot) -> Mapping[str, str]:
    return {} if snapshot.summary is None else snapshot.summary.additional_properties
