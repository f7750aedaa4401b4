"""How rows cross into Spark: in blocks, each one row that holds a list of rows.

All that Spark does with each row of a Data Source is slow: to look for receipts among all rows takes a third of a read.
So it looks at blocks, and compiled code takes them apart.

| column | in a block | in a receipt's row |
|---|---|---|
| `rows` | a list of structs | null |
| columns that are alike in all rows of a block | one value | null |
| `receipt` | null | text |

There is one list, which ends where it is taken apart. With a list for each column, rows would hold the whole lists
until their values are picked, and a transform's Python function in between would copy them for each row.

Columns are named by their places, for users' names may hold dots, or differ by case alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RECEIPT = "receipt"
"""The column of receipts."""
_ROWS = "rows"


@dataclass(frozen=True)
class Blocks:
    """How rows of some columns cross.

    Args:
        rows: the columns.
        alike: the places of columns that are alike in all rows of a batch.
    """

    rows: pa.Schema
    alike: frozenset[int]

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of blocks."""
        named = [pa.field(_name(place), one.type) for place, one in enumerate(self.rows)]
        own, alike = ([named[place] for place in some] for some in (self._inside, self._outside))
        return pa.schema([pa.field(_ROWS, pa.list_(pa.struct(own))), *alike, pa.field(RECEIPT, pa.string())])

    def block(self, columns: Sequence[pa.Array[Any]]) -> pa.RecordBatch:
        """One block of at least one row. Columns that are alike in all rows may have one value, except the first."""
        names = [_name(place) for place in self._inside]
        structs = pa.StructArray.from_arrays([columns[place] for place in self._inside], names=names)
        ends = pa.array([0, len(structs)], pa.int32())
        alike = [columns[place].slice(0, 1) for place in self._outside]
        blocks: list[pa.Array[Any]] = [pa.ListArray.from_arrays(ends, structs), *alike, pa.nulls(1, pa.string())]
        return pa.RecordBatch.from_arrays(blocks, schema=self.schema)

    def receipt(self, text: str) -> pa.RecordBatch:
        """A row with a receipt."""
        nulls: list[pa.Array[Any]] = [pa.nulls(1, one.type) for one in self.schema][:-1]
        return pa.RecordBatch.from_arrays([*nulls, pa.array([text], pa.string())], schema=self.schema)

    def rows_of(self, blocks: DataFrame) -> DataFrame:
        """The rows in blocks."""
        # expressions in text need a tenth of the JVM calls of columns. Users' names are no part of them, for Spark
        # replaces `${..}` by settings and environment variables
        apart = blocks.selectExpr(f"inline({_ROWS})", *map(_name, self._outside))
        return apart.selectExpr(*map(_name, range(len(self.rows)))).toDF(*self.rows.names)

    @cached_property
    def _inside(self) -> list[int]:
        """The list has at least one column, which says how many rows there are."""
        return [place for place in range(len(self.rows)) if place not in self.alike] or [0]

    @cached_property
    def _outside(self) -> list[int]:
        return sorted(self.alike - set(self._inside))


def _name(place: int) -> str:
    return f"c{place}"
