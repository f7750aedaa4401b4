"""How rows cross into Spark: in blocks, each a row of its own that holds a list of each column's values.

Whatever Spark does with each row of a Data Source is dear: to look for receipts among all rows takes a third of a read.
So it looks at blocks, and compiled code takes them apart.

| column | in a block | in a receipt's row |
|---|---|---|
| those that differ in the rows of a block | the list of its values | null |
| those that are alike in all rows of a block | its value | null |
| `receipt` | null | text |

Columns are named by their places, for what users call theirs may hold dots, or differ by case alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from airflow_provider_streams.spark.tables.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RECEIPT = "receipt"
"""The column of receipts."""


@dataclass(frozen=True)
class Blocks:
    """How rows of some columns cross.

    Args:
        rows: the columns.
        alike: the places of those that are alike in all rows of a batch.
    """

    rows: pa.Schema
    alike: frozenset[int]

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of blocks."""
        crossing = [
            pa.field(_name(place), one.type if place in self._beside else pa.list_(one.type))
            for place, one in enumerate(self.rows)
        ]
        return pa.schema([*crossing, pa.field(RECEIPT, pa.string())])

    def block(self, columns: Sequence[pa.Array[Any]]) -> pa.RecordBatch:
        """Rows, of which there is one at least.

        Args:
            columns: their values; of columns that are alike in all rows, but for the first column, one is enough.
        """
        ends = pa.array([0, len(columns[self._first])], pa.int32())
        crossing: list[pa.Array[Any]] = [
            values.slice(0, 1) if place in self._beside else pa.ListArray.from_arrays(ends, values)
            for place, values in enumerate(columns)
        ]
        return pa.RecordBatch.from_arrays([*crossing, pa.nulls(1, pa.string())], schema=self.schema)

    def receipt(self, text: str) -> pa.RecordBatch:
        """A row that is no block."""
        nulls: list[pa.Array[Any]] = [pa.nulls(1, one.type) for one in self.schema][:-1]
        return pa.RecordBatch.from_arrays([*nulls, pa.array([text], pa.string())], schema=self.schema)

    def rows_of(self, blocks: DataFrame) -> DataFrame:
        """The rows again."""
        # expressions in text: a tenth of the calls into the JVM that columns take
        others = [_name(place) for place in range(len(self.rows)) if place != self._first]
        rows = blocks.selectExpr(f"posexplode({_name(self._first)}) AS (place, {_name(self._first)})", *others)
        return rows.selectExpr(
            *(f"{self._value(place)} AS {quoted(name)}" for place, name in enumerate(self.rows.names))
        )

    def _value(self, place: int) -> str:
        is_value = place in self._beside or place == self._first
        return _name(place) if is_value else f"get({_name(place)}, place)"

    @cached_property
    def _first(self) -> int:
        """The first list: a block has one at least, which says how many rows it has."""
        return next((place for place in range(len(self.rows)) if place not in self.alike), 0)

    @cached_property
    def _beside(self) -> frozenset[int]:
        return self.alike - {self._first}


def _name(place: int) -> str:
    return f"c{place}"
