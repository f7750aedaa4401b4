"""What a table of Spark's catalogs learns, by a session that only notes it."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from airflow_provider_streams.errors import SinkError, TableOwnedByOther
from airflow_provider_streams.lake.table_properties import properties_of
from airflow_provider_streams.model.sinks.landing import TableMark, TableTerms
from airflow_provider_streams.model.sinks.table_sink import TableSink
from airflow_provider_streams.spark.catalog.table import SparkTable

TERMS = TableTerms(TableMark("a" * 32, "pulsar://shop/orders", "d.read"))
ROWS = StructType([StructField("id", LongType()), StructField("value", StringType())])


class Session:
    """A session with one table, which notes the changes that it learns."""

    def __init__(self, columns: StructType, rows: int = 0, properties: dict[str, str] | None = None) -> None:
        self.schema, self._rows, self.properties = columns, rows, properties or {}
        self.changes: list[str] = []
        self.catalog = self.conf = self

    def tableExists(self, _name: str) -> bool:  # noqa: N802 - as Spark calls it
        return True

    def get(self, _name: str, default: Any = None) -> Any:
        return default

    def unset(self, *_setting: str) -> None:
        """No setting matters here."""

    def set(self, *_setting: str) -> None:
        """No setting matters here."""

    def table(self, _name: str) -> Session:
        return self

    def limit(self, _count: int) -> Session:
        return self

    def count(self) -> int:
        return self._rows

    def sql(self, text: str) -> Session:
        if not text.startswith("SHOW"):
            self.changes.append(text)
        if "SET TBLPROPERTIES" in text:
            self.properties |= properties_of(TERMS.mark)
        if "ADD COLUMNS" in text:
            self.schema = ROWS
        return self

    def collect(self) -> list[tuple[str, str]]:
        return list(self.properties.items())


def opened(session: Session, *, widen: bool = False) -> StructType:
    spark: Any = session
    return SparkTable(TableSink("prod.shop.orders", widen=widen), spark).opened(ROWS, TERMS)


@pytest.mark.parametrize(
    ("own", "widen", "said"), [("id bigint", False, "it lacks value string"), ("id string", True, "id is string")]
)
def test_a_refused_table_stays_as_it_was(own: str, widen: bool, said: str) -> None:  # noqa: FBT001
    name, type_ = own.split()
    types: dict[str, Any] = {"bigint": LongType(), "string": StringType()}
    session = Session(StructType([StructField(name, types[type_])]))
    with pytest.raises(SinkError, match=said):
        opened(session, widen=widen)
    assert session.changes == []


def test_a_table_with_rows_and_without_an_owner_is_refused_before_its_columns_are() -> None:
    session = Session(StructType([StructField("id", LongType())]), rows=1)
    with pytest.raises(TableOwnedByOther, match="nothing in it says whose"):
        opened(session)
    assert session.changes == []


def test_an_empty_table_is_claimed_before_it_gets_columns() -> None:
    session = Session(StructType([StructField("id", LongType())]))
    assert opened(session, widen=True) == ROWS
    assert [" ".join(text.split()[3:5]) for text in session.changes] == ["SET TBLPROPERTIES", "ADD COLUMNS"]
