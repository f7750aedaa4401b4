"""What a kind of table can do, and how windows get into it: one class per kind, found by `lake.registry`.

SinkWriter                what any table may be able to do; every method has a default
├── TableWriter           tasks write the window's files, and one commit puts them in place
└── DataFrameSinkWriter   Spark writes the window from a DataFrame
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow_provider_streams.model.sinks.custom_sink import CustomSink
from airflow_provider_streams.model.sinks.sink import Sink

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from airflow_provider_streams.lake.compaction import CompactableTable
    from airflow_provider_streams.lake.data_files import DataFile, FileTarget
    from airflow_provider_streams.lake.snapshot_expiry import Expired
    from airflow_provider_streams.lake.storage import Storage
    from airflow_provider_streams.model.plan.receipt import Receipt
    from airflow_provider_streams.model.sinks.landing import TableMark, TableState, TableTerms
    from airflow_provider_streams.model.window.window import Window

Unseen = Literal["unseen"]
"""A table that cannot say what it holds."""


class SinkWriter(ABC):
    """A kind of table. Class methods are about the table of any sink; an object is one attempt at one window.

    Inherit from `TableWriter` or `DataFrameSinkWriter`. Override what your tables can do: the defaults promise nothing.
    """

    sink_type: ClassVar[type[Sink]] = CustomSink
    """The class of the sinks that name such tables."""
    keeps_columns: ClassVar[bool] = False
    """Whether a table keeps its columns even if a full refresh sets all its rows aside: `check_rows` knows them."""

    @abstractmethod
    def __init__(self, sink: Any, window: Window, terms: TableTerms) -> None:
        """Touch nothing yet."""

    @classmethod
    def read_state(cls, sink: Any) -> TableState | Unseen | None:  # noqa: ARG003
        """Whose a table is, and which windows it holds; None: there is none, or an empty one without an owner.

        Windows that others removed from a table are missing again, unless it is "unseen".

        Raises:
            TableOwnedByOther: it holds data, and names no owner.
            SinkError: it cannot be read.
        """
        return "unseen"

    @classmethod
    def read_state_near(cls, sink: Any, window: Window) -> TableState | Unseen | None:  # noqa: ARG003
        """As `read_state`; windows that share no time with one may be missing.

        Each landing asks this, so it should cost the same however many windows the table holds.
        """
        return cls.read_state(sink)

    @classmethod
    def why_catalog_is_read_only(cls, sink: Any) -> str:  # noqa: ARG003
        """Why this user cannot change the catalog of tables, if that is known without a change; otherwise empty.

        Raises:
            SinkError: the catalog cannot be opened.
        """
        return ""

    @classmethod
    def lacks_catalog(cls, sink: Any) -> bool:  # noqa: ARG003
        """Whether the catalog of tables is not there yet, so that the first landing makes it.

        Raises:
            SinkError: that cannot be known.
        """
        return False

    @classmethod  # noqa: B027 - by default nothing is refused
    def check_rows(cls, sink: Any, schema: pa.Schema, terms: TableTerms | None) -> None:
        """Refuse rows that `open` or `stage` would refuse, and change nothing. A dry run calls this.

        If the class `keeps_columns`, a full refresh also calls this, with a mark that no table has.

        Args:
            sink: where the rows are to go.
            schema: of the rows.
            terms: whose the table would be, and with which columns; None: the table cannot be reached from here, so
                check only what holds for every table of this kind.

        Raises:
            SinkError: the rows cannot go in, or the table cannot be read.
        """

    @classmethod
    def storage(cls, sink: Any) -> Storage | None:  # noqa: ARG003
        """Where a table's files are, or would be; None: it cannot be known from here, or not before it is made.

        Raises:
            SinkError: the table cannot be read.
        """
        return None

    @classmethod
    def compactable(cls, sink: Any, mark: TableMark) -> CompactableTable:
        """A table whose files can be rewritten; only where `TableFormat.compacts`."""
        raise NotImplementedError

    @classmethod
    def expire(cls, sink: Any, mark: TableMark, before: datetime, *, dry_run: bool = False) -> Expired:
        """Remove what no read or write needs that begins at a moment or later; only where `TableFormat.expires`.

        Args:
            sink: names the table.
            mark: whose the table must be.
            before: the moment.
            dry_run: say what would go, and do nothing.

        Raises:
            TableOwnedByOther: the table does not bear the mark.
            SinkError: it cannot be read, or what it needs is unknown. Some of what is not needed may be gone.
        """
        raise NotImplementedError

    def open_quarantine(self) -> Path | None:
        """The folder where tasks write events that cannot be decoded; None: this kind of table keeps none.

        `commit` puts the files that the receipt names in place, with the window.

        Raises:
            SinkError: it cannot be made.
        """
        return None

    @abstractmethod
    def discard(self) -> None:
        """Remove what this attempt wrote and did not commit. Called last in any case; never raises."""


class TableWriter(SinkWriter):
    """Tasks write a window's files where no reader sees them; after the proof, one commit puts them in place."""

    @abstractmethod
    def open(self, schema: pa.Schema) -> FileTarget:
        """Make the table, or check that rows of a schema may go into it. Return where the window's files go.

        Raises:
            TableOwnedByOther: it is another reader's, or holds data and names no owner.
            SinkError: it cannot be reached or made; the rows have columns that it cannot hold.
        """

    @abstractmethod
    def commit(self, files: Sequence[DataFile], receipt: Receipt) -> None:
        """Replace the window by these files, in one step; without files, the window is empty from now on.

        The caller has checked that the files have as many rows as the receipt.

        Raises:
            SinkError: the table holds what it held before.
            TableOwnedByOther: it became another reader's meanwhile.
            WindowsOverlap: other windows of the table share time with it, and must stay.
        """


class DataFrameSinkWriter(SinkWriter):
    """Spark writes a window from a DataFrame where no reader sees it; a commit after the proof puts it in place."""

    @abstractmethod
    def stage(self, df: DataFrame) -> None:
        """Write the rows where no reader sees them; exactly one Spark action.

        Raises:
            SinkError: they cannot be written.
        """

    @abstractmethod
    def commit(self, receipt: Receipt, rows: int | None) -> int | None:
        """Replace the window by what was staged; a receipt exists only for a read that agrees with its plan.

        Args:
            receipt: of the rows before the transform.
            rows: how many rows there must be; None: not known, because a transform changed them and Spark did not
                count.

        Returns:
            How many rows of the window the table holds now; None: not counted.

        Raises:
            SinkError: the table holds what it held before.
            WindowsOverlap: other windows of the table share time with it, and must stay.
        """


Writer = TableWriter | DataFrameSinkWriter
