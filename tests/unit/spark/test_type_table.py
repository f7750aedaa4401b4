"""The table of types agrees with what each format's own library makes of a column."""

from __future__ import annotations

import io
import json
import re

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import pyarrow_to_schema
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import LongType, StructField, StructType

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.formats.arrow.arrow_types import SIMPLE
from airflow_provider_streams.lake.column_types import stored_schema
from airflow_provider_streams.lake.delta import column_types as delta
from airflow_provider_streams.lake.iceberg import column_types as iceberg
from airflow_provider_streams.model.schema.ddl import parse_type
from airflow_provider_streams.model.schema.type_table import DECIMAL, SIMPLE_TYPES
from airflow_provider_streams.model.schema.types import Decimal, Simple
from airflow_provider_streams.model.sinks.landing import missing_columns, new_columns
from airflow_provider_streams.spark.catalog.columns import table_columns
from airflow_provider_streams.spark.type_names import spark_names

EACH = pytest.mark.parametrize("names", SIMPLE_TYPES, ids=lambda one: one.word)


def column(names) -> pa.Schema:
    return pa.schema([("a", SIMPLE[names.word])])


@EACH
def test_every_spelling_means_the_type(names):
    for text in (names.word, names.spark, *names.also, names.spark.upper()):
        assert parse_type(text) == Simple(names.word)


def test_every_spelling_of_decimals_means_them():
    assert {parse_type(f"{word}(9,2)") for word in ("decimal", *DECIMAL.also)} == {Decimal(9, 2)}


@EACH
def test_arrow_and_spark_name_it_so(names):
    assert str(SIMPLE[names.word]) == names.arrow
    assert from_arrow_type(SIMPLE[names.word], prefer_timestamp_ntz=True).simpleString() == names.spark
    assert spark_names(column(names)) == (("a", names.spark),)


@EACH
def test_iceberg_names_it_so(names):
    table = pyarrow_to_schema(iceberg.columns_of_table(iceberg.columns_of_rows("t", column(names))))
    assert str(table.find_type("a")) == names.iceberg


@EACH
def test_delta_names_it_so(names):
    if not names.delta:
        with pytest.raises(SinkError, match="Delta has no such type"):
            delta.columns_of_rows("t", column(names))
        return
    rows = deltalake.Schema.from_arrow(delta.columns_of_rows("t", column(names)))
    assert json.loads(rows.to_json())["fields"][0]["type"] == names.delta


@EACH
def test_parquet_names_it_so(names):
    file = io.BytesIO()
    pq.write_table(stored_schema(column(names)).empty_table(), file)
    found = pq.ParquetFile(file).schema.column(0)
    physical, _, logical = names.parquet.partition(", ")
    assert found.physical_type == physical
    assert str(found.logical_type).partition("(")[0] == (re.sub(r"\(.*", "", logical) or "None")
    assert ("isAdjustedToUTC=true" in str(found.logical_type)) == ("UTC" in logical)


@pytest.mark.parametrize("name", ["b", "b c", "b:c", "b<c>", "b,c", "`b`", "Ünï", "b ", "not null"])
def test_fields_of_structs_grow_whatever_they_are_called(name):
    def table(*fields):
        inner = StructType([StructField(one, LongType()) for one in fields])
        return table_columns(StructType([StructField("s", inner)]))

    assert new_columns(table("a"), table("a", name)) == (f"s.{name}",)
    assert missing_columns(table("a", name), table("a")) == [f"s.{name} is missing, it was bigint"]
    assert table("a", name) == spark_names(pa.schema([("s", pa.struct([("a", pa.int64()), (name, pa.int64())]))]))
