"""An Arrow table becomes a DataFrame with every row, whatever its batches are."""

from __future__ import annotations

import random

import pyarrow as pa

from airflow_provider_streams.spark.job.dataframes import frame_of
from tests.seeds import chosen_seed

SCHEMA = pa.schema([("value", pa.binary()), ("number", pa.int64())])


def table_of(sizes: list[int]) -> pa.Table:
    batches, first = [], 0
    for size in sizes:
        numbers = range(first, first + size)
        columns = [pa.array([b"%d" % n for n in numbers], pa.binary()), pa.array(numbers, pa.int64())]
        batches.append(pa.RecordBatch.from_arrays(columns, schema=SCHEMA))
        first += size
    return pa.Table.from_batches(batches, SCHEMA)


def test_no_row_is_lost_behind_a_batch_without_rows(spark) -> None:
    seed = chosen_seed()
    draw = random.Random(seed)  # noqa: S311 - repeatable by its seed
    cases = [[8, 0, 14, 16, 18, 18], [0, 0, 3], [0], [], [5, 0]]
    cases += [[draw.choice([0, 0, 1, 7, 9_999, 10_000, 10_001]) for _ in range(draw.randrange(9))] for _ in range(6)]
    for sizes in cases:
        rows = frame_of(spark, table_of(sizes)).collect()
        assert [row["number"] for row in rows] == list(range(sum(sizes))), f"seed {seed}: {sizes}"
        assert all(bytes(row["value"]) == b"%d" % row["number"] for row in rows)


def test_no_rows_of_any_type_are_an_empty_frame(spark) -> None:
    schema = pa.schema([("value", pa.binary()), ("properties", pa.map_(pa.string(), pa.string()))])
    frame = frame_of(spark, pa.Table.from_batches([], schema))
    assert frame.columns == ["value", "properties"]
    assert frame.collect() == []
