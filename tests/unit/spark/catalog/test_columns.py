import pytest
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructField, StructType, TimestampType

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.spark.catalog.columns import additions, columns_of_rows, ddl, quoted


def columns(**types):
    return StructType([StructField(name, type_) for name, type_ in types.items()])


POINT = columns(x=LongType())
SPACE = columns(x=LongType(), **{"odd `name": StringType()})
EDGES = {"window_start": TimestampType(), "window_end": TimestampType()}


def test_a_table_lacks_columns_and_fields_wherever_they_are():
    table = columns(id=LongType(), points=ArrayType(POINT), named=MapType(StringType(), POINT), **EDGES)
    rows = columns(id=LongType(), points=ArrayType(SPACE), named=MapType(StringType(), SPACE), more=SPACE)
    wanted = columns_of_rows("t", rows)
    found = additions("t", table, wanted, widen=True)
    assert [(one.path, ddl(one.type)) for one in found] == [
        ("`points`.`element`.`odd ``name`", "string"),
        ("`named`.`value`.`odd ``name`", "string"),
        ("`more`", "struct<`x`:bigint,`odd ``name`:string>"),
    ]
    with pytest.raises(SinkError, match=r"^t: the table cannot hold these rows: it lacks .*widen=True"):
        additions("t", table, wanted, widen=False)
    assert additions("t", wanted, wanted, widen=False) == []


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (columns(id=StringType(), **EDGES), "id is string, the rows have long"),
        (columns(ID=LongType(), **EDGES), "id is called ID there"),
        (columns(id=LongType(), window_start=StringType(), window_end=TimestampType()), "window_start is string"),
        (
            StructType([*columns(id=LongType(), **EDGES), StructField("must", LongType(), nullable=False)]),
            "must may not",
        ),
    ],
)
def test_what_cannot_hold_the_rows_is_refused_even_if_it_may_get_more(table, words):
    with pytest.raises(SinkError, match=words):
        additions("t", table, columns_of_rows("t", columns(id=LongType())), widen=True)


@pytest.mark.parametrize("name", ["Window_Start", "window_end"])
def test_rows_have_no_column_of_the_windows(name):
    with pytest.raises(SinkError, match="gives to every window"):
        columns_of_rows("t", columns(**{name: LongType()}))


def test_names_are_quoted_part_by_part():
    assert quoted("prod", "shop", "a`b") == "`prod`.`shop`.`a``b`"
