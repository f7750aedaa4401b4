"""One attempt at one window of a table in Spark's catalogs: its rows are kept, proven, and then put in place.

| step | what happens |
|---|---|
| read | the executors write the rows to their disks (a local checkpoint); the stream is not read again |
| proof | receipts agree with the plan; as many rows are kept as were handed over |
| commit | one `overwrite` from the kept rows replaces all windows that share time with this one |

If an executor is lost with its rows, the attempt fails. What a killed attempt leaves ends with Spark's program.
"""

from __future__ import annotations

import json
import logging
import random
import time
import uuid
from typing import TYPE_CHECKING, ClassVar, Final

from airflow_provider_streams.errors import CommitStateUnknown, SinkError, TableUnavailable
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.lake.table_properties import commit_facts, in_the_way
from airflow_provider_streams.lake.writer import DataFrameSinkWriter
from airflow_provider_streams.model.plan.receipt import Receipt
from airflow_provider_streams.model.sinks.landing import TableTerms
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.model.sinks.table_sink import TableSink
from airflow_provider_streams.model.window.window import Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from airflow_provider_streams.spark.catalog.table import SparkTable

_PAUSES_SECONDS: Final = (0.0, 0.5, 2.0, 4.0)
"""Before each try, while others are first, or the outcome of the last one is unknown."""

_log = logging.getLogger(__name__)


class SparkTableWriter(DataFrameSinkWriter):
    """See `DataFrameSinkWriter`."""

    sink_type: ClassVar[type[Sink]] = TableSink

    def __init__(self, sink: TableSink, window: Window, terms: TableTerms) -> None:
        self._sink, self._window, self._terms = sink, window, terms
        self._attempt = uuid.uuid4().hex
        self._table: SparkTable | None = None
        self._rows: DataFrame | None = None

    def stage(self, df: DataFrame) -> None:
        """See `DataFrameSinkWriter`. Refuses what the table cannot hold before a row is read."""
        from airflow_provider_streams.spark.catalog.cached_rows import kept  # noqa: PLC0415
        from airflow_provider_streams.spark.catalog.columns import columns_of_rows  # noqa: PLC0415 - only where Spark runs
        from airflow_provider_streams.spark.catalog.table import SparkTable  # noqa: PLC0415

        self._table = SparkTable(self._sink, df.sparkSession)
        self._table.opened(columns_of_rows(str(self._sink), df.schema), self._terms)
        self._rows = kept(df)

    def commit(self, receipt: Receipt, rows: int | None) -> int:
        """See `DataFrameSinkWriter`.

        After an unclear try, it overwrites the window again, for that changes nothing.

        Raises:
            CommitStateUnknown: the window may have been replaced.
            TableUnavailable: the store fails, other commits were first again and again, or rows were lost.
        """
        held = self._count(rows)
        failure: SinkError | None = None
        for pause in _PAUSES_SECONDS:
            time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - so that waiting writers do not meet again
            try:
                self._replace(receipt)
            except (TableUnavailable, CommitStateUnknown) as error:
                _log.warning("%s: window %s is not known to be in place: %s", self._sink, self._window, error)
                # an unclear try stays unclear, whatever the next one meets
                failure = failure if isinstance(failure, CommitStateUnknown) else error
            else:
                return held
        raise failure or TableUnavailable(str(self._sink), "no try was made")

    def discard(self) -> None:
        """See `DataFrameSinkWriter`."""
        if self._rows is not None:
            from airflow_provider_streams.spark.catalog.cached_rows import released  # noqa: PLC0415 - only where Spark runs

            released(self._rows)
            self._rows = None

    def _count(self, rows: int | None) -> int:
        """How many rows are kept. `TableUnavailable`: not as many as were proven."""
        from airflow_provider_streams.spark.catalog.spark_errors import errors_of  # noqa: PLC0415 - only where Spark runs

        with errors_of(self._sink):
            held = self._staged()[0].count()
        if rows is not None and held != rows:
            raise TableUnavailable(
                str(self._sink),
                f"of {counted(rows, 'proven row')}, Spark keeps {held:,}: an executor was lost? Nothing was changed, "
                "and landing the window again settles it",
            )
        return held

    def _replace(self, receipt: Receipt) -> None:
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 - only where Spark runs

        from airflow_provider_streams.spark.catalog.columns import as_stored  # noqa: PLC0415
        from airflow_provider_streams.spark.catalog.spark_errors import commit_errors_of, errors_of  # noqa: PLC0415
        from airflow_provider_streams.spark.catalog.table import overlap  # noqa: PLC0415

        rows, table = self._staged()
        with errors_of(self._sink):
            is_ours = table.is_ours(self._terms)
            if is_ours:
                in_the_way(self._window, table.overlapping(self._window), self._terms)
            write = as_stored(rows, self._window, table.columns()).writeTo(table.name)
        facts = commit_facts(self._window, receipt.fingerprint, self._attempt)
        write = write.option("userMetadata", json.dumps(facts))  # Delta's option; the others are Iceberg's
        for name, value in facts.items():
            write = write.option(f"snapshot-property.{name}", value)
        with commit_errors_of(self._sink):
            write.overwrite(overlap(self._window) if is_ours else F.lit(True))
        if not is_ours:
            with errors_of(self._sink):
                table.claim(self._terms.mark)

    def _staged(self) -> tuple[DataFrame, SparkTable]:
        if self._rows is None or self._table is None:
            raise SinkError(str(self._sink), "commit comes after stage")
        return self._rows, self._table
