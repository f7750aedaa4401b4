"""Which columns an Iceberg table must get before rows go into it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.io.pyarrow import pyarrow_to_schema, schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.types import ListType, LongType, MapType, NestedField, StringType, StructType

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.iceberg.column_types import columns_of_rows, columns_of_table, columns_to_add


def columns(*given: tuple[str, pa.DataType]) -> pa.Schema:
    return columns_of_rows("t", pa.schema(given))


def refusal(table: Schema, rows: pa.Schema, *, widen: bool = False) -> str:
    with pytest.raises(SinkError) as raised:
        columns_to_add("t", table, rows, widen=widen)
    return str(raised.value).partition("rows: ")[2]


def test_differences_name_columns_and_types_and_no_ids():
    point = pa.struct([("x", pa.int64()), ("at", pa.list_(pa.struct([("y", pa.string())])))])
    wider = pa.struct([*point, ("z", pa.map_(pa.string(), pa.int32()))])
    table = pyarrow_to_schema(columns_of_table(columns(("id", pa.int64()), ("place", point), ("other", point))))
    rows = columns(("id", pa.int64()), ("place", wider), ("other", pa.int64()), ("new", point))
    text = "struct<x long, at list<struct<y string>>{}>"
    assert refusal(table, rows).startswith(
        f"other is {text.format('')}, the rows have long; it lacks place as {text.format(', z map<string, int>')}; "
        f"it lacks new {text.format('')}. "
    )


def test_lists_of_numbers_and_of_structs_grow():
    point = pa.struct([("x", pa.int32())])
    table = pyarrow_to_schema(columns_of_table(columns(("n", pa.list_(pa.int32())), ("at", pa.list_(point)))))
    same = columns(("n", pa.list_(pa.int32())), ("at", pa.list_(point)))
    assert not len(columns_to_add("t", table, same, widen=False))
    wide = pa.struct([("x", pa.int64()), ("y", pa.list_(pa.int32()))])
    assert refusal(table, columns(("n", pa.list_(pa.int64())), ("at", pa.list_(wide)))) == (
        "it lacks n as list<long>; it lacks at as list<struct<x long, y list<int>>>; widen=True adds what is lacking"
    )
    widest = pyarrow_to_schema(columns_of_table(columns(("at", wide))))
    assert not len(columns_to_add("t", widest, columns(("at", point)), widen=False))


def test_a_field_that_must_not_be_null_is_not_left_out():
    table = Schema(NestedField(1, "at", StructType(NestedField(2, "x", LongType(), required=True)), required=False))
    rows = columns(("at", pa.struct([("y", pa.int64())])))
    assert refusal(table, rows, widen=True).startswith("at is struct<x long>, the rows have struct<y long>")


@pytest.mark.parametrize(
    ("type_", "path"),
    [
        (StructType(NestedField(2, "x", LongType(), required=True)), "a.x"),
        (ListType(2, LongType(), element_required=True), "a.element"),
        (MapType(2, StringType(), 3, LongType(), value_required=True), "a.value"),
    ],
)
def test_a_field_within_a_column_that_must_have_values_is_refused(type_, path):
    table = Schema(*pyarrow_to_schema(columns_of_table(columns())).fields, NestedField(9, "a", type_, required=False))
    rows = columns(
        ("a", schema_to_pyarrow(Schema(NestedField(9, "a", type_)), include_field_ids=False).field("a").type)
    )
    assert refusal(table, rows, widen=True).startswith(f"{path} may not be null there. Land in another table")
    assert columns_to_add("t", table, columns(("b", pa.int64())), widen=True).names == ["b"]
