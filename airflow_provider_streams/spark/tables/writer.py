"""One attempt at one window of a table of Spark's catalogs: its rows are kept, proven, and then put in its place.

| step | what is where |
|---|---|
| read | the rows are written to the executors' disks (a local checkpoint), and nothing reads again |
| proof | receipts agree with the plan; as many rows are kept as were handed over |
| commit | one `overwrite` of all windows that share time with this one, from the rows that are kept |

Rows that are lost with an executor fail the attempt. What a killed attempt leaves ends with Spark's program.
"""

from __future__ import annotations

import json
import logging
import random
import time
import uuid
from typing import TYPE_CHECKING, ClassVar, Final

from airflow_provider_streams.errors import CommitUnknown, SinkError, TableUnavailable, WindowsOverlap
from airflow_provider_streams.model.landing import TableTerms
from airflow_provider_streams.model.receipt import Receipt
from airflow_provider_streams.model.sink import Sink
from airflow_provider_streams.model.table_sink import TableSink
from airflow_provider_streams.model.window import Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from airflow_provider_streams.spark.tables.table import SparkTable

_PAUSES_SECONDS: Final = (0.0, 0.5, 2.0, 4.0)
"""Before each try, while others are first, or nobody can say what became of the last one."""

_log = logging.getLogger(__name__)


class SparkTableWriter:
    """See `FrameWriter`."""

    sink_type: ClassVar[type[Sink]] = TableSink

    def __init__(self, sink: TableSink, window: Window, terms: TableTerms) -> None:
        self._sink, self._window, self._terms = sink, window, terms
        self._attempt = uuid.uuid4().hex
        self._table: SparkTable | None = None
        self._rows: DataFrame | None = None

    def stage(self, df: DataFrame) -> None:
        """See `FrameWriter`. What the table cannot hold is refused before a row is read.

        Raises:
            ForeignTable: it is another reader's, or holds data and nobody knows whose.
            SinkError: it cannot be reached or made; the rows have columns that it cannot hold.
        """
        from airflow_provider_streams.spark.tables.columns import columns_of_rows  # noqa: PLC0415 - only where Spark runs
        from airflow_provider_streams.spark.tables.keeping import kept  # noqa: PLC0415
        from airflow_provider_streams.spark.tables.table import SparkTable  # noqa: PLC0415

        self._table = SparkTable(self._sink, df.sparkSession)
        self._table.opened(columns_of_rows(str(self._sink), df.schema), self._terms)
        self._rows = kept(df)

    def commit(self, receipt: Receipt, rows: int | None) -> int:
        """See `FrameWriter`. Overwriting a window again changes nothing, so what is unclear is settled that way.

        Raises:
            CommitUnknown: nobody can say whether the window was replaced.
            TableUnavailable: the store fails, other commits were first again and again, or rows were lost.
        """
        held = self._count(rows)
        failure: SinkError | None = None
        for pause in _PAUSES_SECONDS:
            time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - so that those who wait do not meet again
            try:
                self._replace(receipt)
            except (TableUnavailable, CommitUnknown) as error:
                _log.warning("%s: window %s is not known to be in place: %s", self._sink, self._window, error)
                # one that is unclear stays so, whatever the next try met
                failure = failure if isinstance(failure, CommitUnknown) else error
            else:
                return held
        raise failure or TableUnavailable(str(self._sink), "no try was made")

    def discard(self) -> None:
        """See `FrameWriter`."""
        if self._rows is not None:
            from airflow_provider_streams.spark.tables.keeping import released  # noqa: PLC0415 - only where Spark runs

            released(self._rows)
            self._rows = None

    def _count(self, rows: int | None) -> int:
        """How many rows are kept.

        Raises:
            TableUnavailable: others than were proven.
        """
        from airflow_provider_streams.spark.tables.failures import errors_of  # noqa: PLC0415 - only where Spark runs

        with errors_of(self._sink):
            held = self._staged()[0].count()
        if rows is not None and held != rows:
            raise TableUnavailable(
                str(self._sink),
                f"of {rows} rows that were proven, Spark keeps {held}: an executor was lost? Nothing was changed, and "
                "landing the window again settles it",
            )
        return held

    def _replace(self, receipt: Receipt) -> None:
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 - only where Spark runs

        from airflow_provider_streams.spark.tables.columns import as_stored  # noqa: PLC0415
        from airflow_provider_streams.spark.tables.failures import commit_errors_of, errors_of  # noqa: PLC0415
        from airflow_provider_streams.spark.tables.table import overlap  # noqa: PLC0415

        rows, table = self._staged()
        with errors_of(self._sink):
            is_ours = table.is_ours(self._terms)
            others = table.overlapping(self._window) if is_ours else []
            if others and not self._terms.replace_overlaps:
                raise WindowsOverlap(self._terms.mark.source, self._window, others)
            write = as_stored(rows, self._window, table.columns()).writeTo(table.name)
        for name, value in self._facts(receipt).items():
            write = write.option(name, value)
        with commit_errors_of(self._sink):
            write.overwrite(overlap(self._window) if is_ours else F.lit(True))
        if not is_ours:
            with errors_of(self._sink):
                table.claim(self._terms.mark)

    def _facts(self, receipt: Receipt) -> dict[str, str]:
        """What the commit says of itself, as Iceberg and Delta take it; others do not listen."""
        facts = {
            "streams.fingerprint": receipt.fingerprint,
            "streams.window": str(self._window),
            "streams.attempt": self._attempt,
        }
        return {**{f"snapshot-property.{name}": one for name, one in facts.items()}, "userMetadata": json.dumps(facts)}

    def _staged(self) -> tuple[DataFrame, SparkTable]:
        if self._rows is None or self._table is None:
            raise SinkError(str(self._sink), "commit comes after stage")
        return self._rows, self._table
