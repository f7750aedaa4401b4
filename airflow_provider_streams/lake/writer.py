"""What puts a window's files in its place: one class per kind of table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from airflow_provider_streams.lake.files import DataFile, FileTarget
from airflow_provider_streams.model.landing import TableState, TableTerms
from airflow_provider_streams.model.receipt import Receipt
from airflow_provider_streams.model.window import Window


@runtime_checkable
class TableWriter(Protocol):
    """One attempt at one window of one table: files where no reader sees them, then one commit after the proof.

    A sink of your own is a class like this one, or like `FrameWriter`, and a line that names it: an `OwnSink`.
    """

    def __init__(self, sink: Any, window: Window, terms: TableTerms) -> None:
        """Nothing is touched yet."""

    def open(self, schema: pa.Schema) -> FileTarget:
        """Make the table, or see that rows of a schema may go into it; where the window's files go.

        Raises:
            ForeignTable: it is another reader's, or holds data and nobody knows whose.
            SinkError: it cannot be reached or made; the rows have columns that it cannot hold.
        """

    def commit(self, files: Sequence[DataFile], receipt: Receipt) -> None:
        """Replace the window by these files, in one step; no files: it is empty from now on.

        Files and receipt agree: whoever calls has counted.

        Raises:
            SinkError: the table holds what it held before.
            ForeignTable: it became somebody else's meanwhile.
            WindowsOverlap: other windows of the table share time with it, and shall stay.
        """

    def discard(self) -> None:
        """Called last, whatever happened: remove what this attempt left and did not commit; never raises."""


class LookingWriter(TableWriter, Protocol):
    """One whose table can be asked what it holds: windows that somebody took out of it are missing again."""

    @classmethod
    def look(cls, sink: Any) -> TableState | None:
        """What a table says of itself; None: there is none, or an empty one of nobody.

        Raises:
            ForeignTable: it holds data, and does not say whose.
            SinkError: it cannot be looked at.
        """


class ForeseeingWriter(TableWriter, Protocol):
    """One that can say before a job runs which rows it would refuse: so does a dry run then."""

    @classmethod
    def check_rows(cls, sink: Any, schema: pa.Schema, terms: TableTerms | None) -> None:
        """See that `open` would take rows of a schema; nothing is made or changed.

        Args:
            sink: where they are to go.
            schema: theirs.
            terms: whose the table would be, and with which columns; None: it cannot be looked at from here, so only
                what holds for every table of this kind counts.

        Raises:
            SinkError: it would not.
        """


class ColumnKeepingWriter(TableWriter, Protocol):
    """One whose table keeps its columns also when all that it holds is set aside."""

    @classmethod
    def check_columns(cls, sink: Any, schema: pa.Schema) -> None:
        """See that rows of a schema may go into the table, before all windows are landed anew; nothing is changed.

        Raises:
            SinkError: they may not, or it cannot be looked at.
        """
