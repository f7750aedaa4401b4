"""A table of Spark's catalogs by SQL: its owner, columns and windows."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from airflow_provider_streams.errors import SinkError, TableOwnedByOther, TableUnavailable
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS
from airflow_provider_streams.lake.table_properties import check_owner, mark_in, properties_of
from airflow_provider_streams.model.sinks.landing import TableMark, TableTerms
from airflow_provider_streams.model.sinks.table_sink import TableSink
from airflow_provider_streams.model.window.window import EPOCH, Window
from airflow_provider_streams.spark.catalog.columns import Change, additions, changes, ddl, quoted
from airflow_provider_streams.spark.catalog.spark_errors import errors_of
from airflow_provider_streams.spark.session_setting import setting

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

_ROUNDS: Final = 5
"""How often others may change the table between our look and our act."""

KEPT_IN: Final = "the table's earlier snapshots or versions, where its format has them"


class SparkTable:
    """The table of a sink. Its calls raise `TableUnavailable` where a catalog or store fails, else `SinkError`."""

    def __init__(self, sink: TableSink, spark: SparkSession) -> None:
        self._sink, self._spark = sink, spark
        self.name = quoted(*sink.table.split("."))

    def opened(self, columns: StructType, terms: TableTerms) -> StructType:
        """Make the table if there is none, check that it can hold such rows by the terms, and return its columns.

        A table that is refused stays as it was.

        Raises:
            TableOwnedByOther: it is another reader's, or holds data and names no owner.
            SinkError: it is gone, or it lacks columns and must not get any, or has them in other types.
        """
        for _ in range(_ROUNDS):
            with errors_of(self._sink):
                if self._spark.catalog.tableExists(self.name):
                    is_unclaimed = self._is_unclaimed(terms)
                    self._lacking(columns)
                    if is_unclaimed:
                        self.claim(terms.mark)
                    return self._fitted(columns)
            self._make(columns, terms)
        raise TableUnavailable(str(self._sink), f"others changed the table {_ROUNDS} times at once")

    def is_ours(self, terms: TableTerms) -> bool:
        """See `check_owner`."""
        return check_owner(str(self._sink), self._mark(), terms, KEPT_IN)

    def claim(self, mark: TableMark) -> None:
        """Write the mark into its properties. `SinkError`: the catalog keeps no properties."""
        pairs = ", ".join(f"{_text(name)} = {_text(value)}" for name, value in properties_of(mark).items())
        self._sql(f"ALTER TABLE {self.name} SET TBLPROPERTIES ({pairs})")
        if self._mark() != mark:
            raise SinkError(
                str(self._sink),
                "its catalog keeps no properties of tables, so nothing could say whose it is: land in another kind",
            )

    def overlapping(self, window: Window) -> set[Window]:
        """Its windows that share time with one."""
        # as numbers, for a timestamp would come in the time zone of this process
        edges = [F.unix_micros(F.col(name)) for name in WINDOW_COLUMNS]
        rows = self._spark.table(self.name).where(overlap(window)).select(*edges).distinct().collect()
        return {Window(*(EPOCH + timedelta(microseconds=edge) for edge in row)) for row in rows}

    def columns(self) -> StructType:
        """The table's columns as they are now."""
        return self._spark.table(self.name).schema

    def _mark(self) -> TableMark | None:
        return mark_in(dict(tuple(row) for row in self._sql(f"SHOW TBLPROPERTIES {self.name}")))

    def _is_unclaimed(self, terms: TableTerms) -> bool:
        """Whether it has neither rows nor owner, so it becomes the reader's if its rows fit. See `check_owner`."""
        if self._mark() is None and not self._spark.table(self.name).limit(1).count():
            return True
        self.is_ours(terms)
        return False

    def _fitted(self, columns: StructType) -> StructType:
        """Its columns, after it got what it lacks."""
        new = self._lacking(columns)
        if new:
            listed = ", ".join(f"{one.path} {ddl(one.type)}" for one in new)
            try:
                self._sql(f"ALTER TABLE {self.name} ADD COLUMNS ({listed})")
            except Exception:
                if self._lacking(columns):  # otherwise another attempt added them meanwhile
                    raise
        for one in changes(self.columns(), columns):
            if not one.is_new:
                self._sql(f"ALTER TABLE {self.name} ALTER COLUMN {one.path} TYPE {ddl(one.type)}")
        return self.columns()

    def _lacking(self, columns: StructType) -> list[Change]:
        """What it must get before such rows land; `SinkError`: it must not get it, or holds other types."""
        return additions(str(self._sink), self.columns(), columns, widen=self._sink.widen)

    def _make(self, columns: StructType, terms: TableTerms) -> None:
        if terms.columns is not None and not terms.set_aside:
            raise TableOwnedByOther(
                str(self._sink),
                "the table is gone, and the journal holds windows of it as covered. Put it back; or full_refresh=True "
                "makes it again, and every window is missing again",
            )
        with errors_of(self._sink):
            self._sql(f"CREATE NAMESPACE IF NOT EXISTS {quoted(*self._sink.table.split('.')[:-1])}")
            none = (F.lit(None).cast(one.dataType).alias(one.name) for one in columns)
            made = self._spark.range(0).select(*none).writeTo(self.name)
            if self._sink.using is not None:
                made = made.using(self._sink.using)
            if self._sink.partition_by is not None:
                start = F.col(WINDOW_COLUMNS[0])
                by = {"window": lambda: start, "hour": lambda: F.hours(start), "day": lambda: F.days(start)}
                made = made.partitionedBy(by[self._sink.partition_by]())
            for name, value in properties_of(terms.mark).items():
                made = made.tableProperty(name, value)
            try:
                made.create()
            except Exception:
                if not self._spark.catalog.tableExists(self.name):  # otherwise another run made it meanwhile
                    raise

    def _sql(self, text: str) -> list[Any]:
        with setting(self._spark, "spark.sql.variable.substitute", "false"):  # a name may hold `${env:..}`
            return self._spark.sql(text).collect()


def overlap(window: Window) -> Column:
    """The rows of all windows that share time with one."""
    first, last = map(F.col, WINDOW_COLUMNS)
    return (first < F.lit(window.end)) & (last > F.lit(window.start))


def _text(words: str) -> str:
    """A literal in SQL."""
    return "'" + words.replace("\\", "\\\\").replace("'", "\\'") + "'"
