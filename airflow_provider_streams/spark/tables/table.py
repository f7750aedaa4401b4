"""A table of Spark's catalogs by SQL: whose it is, which columns and windows it has."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.types import StructType

from airflow_provider_streams.errors import ForeignTable, SinkError, TableUnavailable
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS
from airflow_provider_streams.lake.owner import check_owner, mark_in, properties_of
from airflow_provider_streams.model.landing import TableMark, TableTerms
from airflow_provider_streams.model.table_sink import TableSink
from airflow_provider_streams.model.window import EPOCH, Window
from airflow_provider_streams.spark.session_setting import setting
from airflow_provider_streams.spark.tables.columns import Addition, additions, ddl, quoted
from airflow_provider_streams.spark.tables.failures import errors_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_ROUNDS: Final = 5
"""So often may others change the table between a look and an act of ours."""

KEPT_IN: Final = "the table's earlier snapshots or versions, where its format has them"


class SparkTable:
    """The table of a sink. Its calls raise `TableUnavailable` where a catalog or store fails, else `SinkError`."""

    def __init__(self, sink: TableSink, spark: SparkSession) -> None:
        self._sink, self._spark = sink, spark
        self.name = quoted(*sink.table.split("."))

    def opened(self, columns: StructType, terms: TableTerms) -> StructType:
        """The columns of the table, made if there is none, which can hold such rows, and may, by the terms.

        Raises:
            ForeignTable: it is somebody else's, or holds data and nobody knows whose.
            SinkError: it lacks columns, and shall get none; or has them otherwise; or it is gone.
        """
        for _ in range(_ROUNDS):
            with errors_of(self._sink):
                if self._spark.catalog.tableExists(self.name):
                    self._claim(terms)
                    return self._fitted(columns)
            self._make(columns, terms)
        raise TableUnavailable(str(self._sink), f"others changed the table {_ROUNDS} times at once")

    def is_ours(self, terms: TableTerms) -> bool:
        """Whether it says so. Otherwise all that it holds may be set aside.

        Raises:
            ForeignTable: it may not.
        """
        return check_owner(str(self._sink), self._mark(), terms, KEPT_IN)

    def claim(self, mark: TableMark) -> None:
        """Write into its properties whose it is.

        Raises:
            SinkError: the catalog keeps no properties.
        """
        pairs = ", ".join(f"{_text(name)} = {_text(value)}" for name, value in properties_of(mark).items())
        self._sql(f"ALTER TABLE {self.name} SET TBLPROPERTIES ({pairs})")
        if self._mark() != mark:
            raise SinkError(
                str(self._sink),
                "its catalog keeps no properties of tables, so nothing could say whose it is: land in another kind",
            )

    def overlapping(self, window: Window) -> list[Window]:
        """Its other windows that share time with one."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 - only where Spark runs

        # numbers: a timestamp would come in the time zone of this process
        edges = [F.unix_micros(F.col(name)) for name in WINDOW_COLUMNS]
        rows = self._spark.table(self.name).where(overlap(window)).select(*edges).distinct().collect()
        found = {Window(*(EPOCH + timedelta(microseconds=edge) for edge in row)) for row in rows}
        return sorted(found - {window})

    def columns(self) -> StructType:
        """As they are now."""
        return self._spark.table(self.name).schema

    def _mark(self) -> TableMark | None:
        return mark_in(dict(tuple(row) for row in self._sql(f"SHOW TBLPROPERTIES {self.name}")))

    def _claim(self, terms: TableTerms) -> None:
        """See that it may be ours. One without rows and owner becomes so."""
        if self._mark() is not None or self._spark.table(self.name).limit(1).count():
            self.is_ours(terms)
        else:
            self.claim(terms.mark)

    def _fitted(self, columns: StructType) -> StructType:
        """Its columns, after it got those that it lacks, where it may."""
        new = self._lacking(columns)
        if new:
            listed = ", ".join(f"{path} {ddl(type_)}" for path, type_ in new)
            try:
                self._sql(f"ALTER TABLE {self.name} ADD COLUMNS ({listed})")
            except Exception:
                if self._lacking(columns):  # otherwise another attempt added them meanwhile
                    raise
        return self.columns()

    def _lacking(self, columns: StructType) -> list[Addition]:
        return additions(str(self._sink), self.columns(), columns, widen=self._sink.widen)

    def _make(self, columns: StructType, terms: TableTerms) -> None:
        if terms.columns is not None and not terms.set_aside:
            raise ForeignTable(
                str(self._sink),
                "the table is gone, and the journal holds windows of it as covered. Put it back; or reland=True makes "
                "it anew, and every window is missing again",
            )
        with errors_of(self._sink):
            self._sql(f"CREATE NAMESPACE IF NOT EXISTS {quoted(*self._sink.table.split('.')[:-1])}")
            made = self._without_rows(columns).writeTo(self.name)
            if self._sink.using is not None:
                made = made.using(self._sink.using)
            if self._sink.partition_by is not None:
                made = made.partitionedBy(_partition(self._sink.partition_by))
            for name, value in properties_of(terms.mark).items():
                made = made.tableProperty(name, value)
            try:
                made.create()
            except Exception:
                if not self._spark.catalog.tableExists(self.name):  # another one made it meanwhile
                    raise

    def _without_rows(self, columns: StructType) -> DataFrame:
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 - only where Spark runs

        return self._spark.range(0).select(*(F.lit(None).cast(one.dataType).alias(one.name) for one in columns))

    def _sql(self, text: str) -> list[Any]:
        with setting(self._spark, "spark.sql.variable.substitute", "false"):  # a name may hold `${env:..}`
            return self._spark.sql(text).collect()


def overlap(window: Window) -> Column:
    """The rows of all windows that share time with one."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - only where Spark runs

    first, last = map(F.col, WINDOW_COLUMNS)
    return (first < F.lit(window.end)) & (last > F.lit(window.start))


def _partition(by: str) -> Column:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - only where Spark runs

    start = F.col(WINDOW_COLUMNS[0])
    return {"window": lambda: start, "hour": lambda: F.hours(start), "day": lambda: F.days(start)}[by]()


def _text(words: str) -> str:
    """As SQL takes it."""
    return "'" + words.replace("\\", "\\\\").replace("'", "\\'") + "'"
