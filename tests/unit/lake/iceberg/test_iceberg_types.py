"""What an Iceberg table lacks of rows is said as people write types."""

from __future__ import annotations

import pyarrow as pa
from pyiceberg.io.pyarrow import pyarrow_to_schema

from airflow_provider_streams.lake.iceberg.types import columns_of_rows, columns_of_table, differences


def columns(*given: tuple[str, pa.DataType]) -> pa.Schema:
    return columns_of_rows("t", pa.schema(given))


def test_differences_name_columns_and_types_and_no_ids():
    point = pa.struct([("x", pa.int64()), ("at", pa.list_(pa.struct([("y", pa.string())])))])
    wider = pa.struct([*point, ("z", pa.map_(pa.string(), pa.int32()))])
    table = pyarrow_to_schema(columns_of_table(columns(("id", pa.int64()), ("place", point), ("other", point))))
    rows = columns(("id", pa.int64()), ("place", wider), ("other", pa.int64()), ("new", point))
    lacking, wrong = differences(table, rows)
    text = "struct<x long, at list<struct<y string>>{}>"
    assert lacking == [f"place as {text.format(', z map<string, int>')}", f"new {text.format('')}"]
    assert wrong == [f"other is {text.format('')}, the rows have long"]
