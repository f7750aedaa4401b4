from __future__ import annotations

import re

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.delta.column_types import (
    columns_of_rows,
    columns_of_table,
    columns_to_add,
    has_local_times,
)

KEPT = {
    "bool": (pa.bool_(), pa.bool_()),
    "byte": (pa.int8(), pa.int8()),
    "unsigned byte": (pa.uint8(), pa.int16()),
    "unsigned short": (pa.uint16(), pa.int32()),
    "unsigned int": (pa.uint32(), pa.int64()),
    "unsigned long": (pa.uint64(), pa.decimal128(20, 0)),
    "double": (pa.float64(), pa.float64()),
    "text": (pa.large_string(), pa.string()),
    "bytes": (pa.large_binary(), pa.binary()),
    "decimal": (pa.decimal128(38, 10), pa.decimal128(38, 10)),
    "day": (pa.date32(), pa.date32()),
    "moment": (pa.timestamp("ns", "Europe/Paris"), pa.timestamp("us", "UTC")),
    "local time": (pa.timestamp("ms"), pa.timestamp("us")),
    "words": (pa.dictionary(pa.int32(), pa.string()), pa.string()),
    "list": (pa.large_list(pa.uint8()), pa.list_(pa.field("element", pa.int16()))),
    "map": (pa.map_(pa.string(), pa.uint32()), pa.map_(pa.string(), pa.int64())),
    "struct": (pa.struct([("a", pa.uint8())]), pa.struct([("a", pa.int16())])),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_column_is_kept_so_that_its_values_are_what_they_were(name, tmp_path):
    given, kept = KEPT[name]
    rows = columns_of_rows("t", pa.schema([pa.field("one", given, nullable=False)]))
    assert rows == pa.schema([pa.field("one", kept)])
    table = DeltaTable.create(str(tmp_path / "t"), columns_of_table(rows), partition_by=["window_start", "window_end"])
    read = pa.schema(table.schema().to_arrow())
    assert columns_to_add("t", read, rows, widen=False) == pa.schema([])


@pytest.mark.parametrize(
    "lacking",
    [
        pa.time64("us"),
        pa.null(),
        pa.float16(),
        pa.duration("us"),
        pa.decimal256(50, 2),
        pa.decimal128(5, -2),
        pa.struct([]),
        pa.list_(pa.time64("us")),
        pa.map_(pa.string(), pa.null()),
        pa.struct([("a", pa.struct([("b", pa.time64("us"))]))]),
        pa.struct([("a", pa.int8()), ("A", pa.int8())]),
    ],
    ids=str,
)
def test_a_column_that_delta_lacks_is_refused_by_name(lacking):
    with pytest.raises(SinkError, match="column 'opened' is"):
        columns_of_rows("t", pa.schema([("id", pa.int64()), ("opened", lacking)]))


@pytest.mark.parametrize("name", ["", "a b", "a,b", "a=b", "a\tb", "a(b)", "a\x00b"])
def test_a_name_that_other_engines_refuse_is_refused(name):
    refused = "has a name that other engines refuse"
    with pytest.raises(SinkError, match=re.escape(f"t: column {name!r} {refused}")):
        columns_of_rows("t", pa.schema([(name, pa.int64())]))
    within = pa.list_(pa.struct([("a", pa.map_(pa.string(), pa.struct([(name, pa.int64())])))]))
    with pytest.raises(SinkError, match=re.escape(f"t: field {name!r} of column 'opened' {refused}")):
        columns_of_rows("t", pa.schema([("opened", within)]))


def test_what_the_parts_of_a_list_are_called_is_the_tables_matter():
    rows = columns_of_rows("t", pa.schema([("one", pa.list_(pa.field("a b", pa.int64())))]))
    assert rows.field("one").type.value_field.name == "element"


@pytest.mark.parametrize(
    ("names", "match"), [(("id", "ID"), "ignore case"), (("Window_End",), "gives to every window")]
)
def test_a_name_that_is_there_already_is_refused(names, match):
    with pytest.raises(SinkError, match=match):
        columns_of_rows("t", pa.schema([(name, pa.int64()) for name in names]))


def test_a_column_that_must_have_values_is_refused():
    table = columns_of_table(pa.schema([pa.field("id", pa.int64(), nullable=False)]))
    with pytest.raises(SinkError, match="id may not be null"):
        columns_to_add("t", table, pa.schema([]), widen=True)


REQUIRED = pa.field("x", pa.int64(), nullable=False)


@pytest.mark.parametrize(
    ("type_", "path"),
    [
        (pa.struct([REQUIRED]), "a.x"),
        (pa.list_(pa.struct([REQUIRED])), "a.item.x"),
        (pa.list_(pa.field("element", pa.int64(), nullable=False)), "a.element"),
        (pa.map_(pa.string(), pa.struct([REQUIRED])), "a.value.x"),
    ],
)
def test_a_field_within_a_column_that_must_have_values_is_refused(type_, path):
    """Fields of rows may be null, even if the table was made for rows whose fields were not."""
    table = columns_of_table(pa.schema([pa.field("a", type_)]))
    rows = columns_of_rows("t", pa.schema([("a", type_)]))
    with pytest.raises(SinkError, match=rf"{path} may not be null there"):
        columns_to_add("t", table, rows, widen=True)
    others = columns_of_rows("t", pa.schema([("b", pa.int64())]))
    assert columns_to_add("t", table, others, widen=True).names[:1] == ["b"]


def test_local_times_are_found_within_other_types():
    assert has_local_times(pa.schema([("a", pa.list_(pa.struct([("b", pa.timestamp("us"))])))]))
    assert not has_local_times(pa.schema([("a", pa.timestamp("us", "UTC"))]))


def test_what_grows_is_the_union_of_both():
    def one(type_):
        return pa.schema([("a", type_)])

    def union(own, new):
        return columns_to_add("t", columns_of_table(one(own)), columns_of_rows("t", one(new)), widen=True)

    def struct(*names):
        return pa.struct([(name, pa.int64()) for name in names])

    def listed(inner):
        return pa.list_(pa.field("element", inner))

    assert union(struct("x"), struct("y")) == one(struct("x", "y"))
    assert union(listed(struct("x")), listed(struct("x", "y"))) == one(listed(struct("x", "y")))
    assert union(pa.map_(pa.string(), struct("x")), pa.map_(pa.string(), struct("y"))) == one(
        pa.map_(pa.string(), struct("x", "y"))
    )
    assert union(struct("x", "y"), struct("y")) == pa.schema([])
    for new in (pa.int64(), struct("X"), pa.struct([("x", pa.string())])):
        with pytest.raises(SinkError, match="the rows have"):
            union(struct("x"), new)
