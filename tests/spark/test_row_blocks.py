"""Rows that cross into Spark in blocks are the rows that were read, whatever their columns are called and hold."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from airflow_provider_streams.spark.datasource.row_blocks import RECEIPT, Blocks
from airflow_provider_streams.spark.job.dataframes import frame_of

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ROWS = pa.table(
    {
        "a.b": pa.array([1, None, 3], pa.int64()),
        "A": pa.array([b"x", b"", None]),
        "a": pa.array([[1.5], [], None], pa.list_(pa.float64())),
        "of `ticks`": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int32())),
        "${env:HOME}": pa.array(["topic"] * 3),
        "rows": pa.array(
            [{"é": {"c0": NOON}}, {"é": None}, None], pa.struct([("é", pa.struct([("c0", pa.timestamp("us", "UTC"))]))])
        ),
        "receipt": pa.array([Decimal("1.10"), None, Decimal("-2.00")], pa.decimal128(9, 2)),
    }
)


@pytest.mark.spark
@pytest.mark.parametrize("alike", [{4}, set(), {0, 4}], ids=["one", "none", "two"])
def test_rows_are_as_they_were(spark, alike: set[int]) -> None:
    rows = ROWS if 0 not in alike else ROWS.set_column(0, "a.b", pa.array([7] * 3, pa.int64()))
    blocks = Blocks(rows.schema, frozenset(alike))
    made = [
        blocks.block(rows.slice(0, 2).to_batches()[0].columns),
        blocks.receipt("told"),
        blocks.block(rows.slice(2).to_batches()[0].columns),
    ]
    crossed = frame_of(spark, pa.Table.from_batches(made))
    found = blocks.rows_of(crossed)
    assert found.columns == rows.column_names
    assert [tuple(row) for row in found.collect()] == [tuple(row) for row in frame_of(spark, rows).collect()]
    assert [row[0] for row in crossed.select(RECEIPT).collect()] == [None, "told", None]


@pytest.mark.spark
def test_rows_that_are_all_alike_are_counted_still(spark) -> None:
    blocks = Blocks(pa.schema([("shard", pa.string()), ("_window", pa.int32())]), frozenset({0, 1}))
    batch = pa.record_batch([pa.array(["topic"] * 3), pa.array([7] * 3, pa.int32())], schema=blocks.rows)
    found = blocks.rows_of(frame_of(spark, pa.Table.from_batches([blocks.block(batch.columns)])))
    assert [tuple(row) for row in found.collect()] == [("topic", 7)] * 3


@pytest.mark.spark
def test_a_python_function_meets_rows_and_not_the_blocks_they_came_in(spark) -> None:
    """Were each of these rows to carry the lists of its block, they would be 40 GB."""
    from pyspark.sql import functions as F  # noqa: N812

    count = 20_000
    rows = pa.table(
        {"id": pa.array(range(count), pa.int64()), "text": pa.array([f"{one:0100}" for one in range(count)])}
    )
    blocks = Blocks(rows.schema, frozenset())
    (batch,) = rows.to_batches()
    found = blocks.rows_of(frame_of(spark, pa.Table.from_batches([blocks.block(batch.columns)])))
    even = F.udf(lambda text: int(text) % 2 == 0, "boolean")
    assert found.filter(even("text")).agg(F.sum("id")).collect()[0][0] == sum(range(0, count, 2))
