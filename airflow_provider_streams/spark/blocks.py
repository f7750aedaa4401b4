"""How rows cross into Spark: in blocks, each a row of its own that holds a list of them.

Whatever Spark does with each row of a Data Source is dear: to look for receipts among all rows takes a third of a read.
So it looks at blocks, and compiled code takes them apart.

| column | in a block | in a receipt's row |
|---|---|---|
| `rows` | a list of structs | null |
| those that are alike in all rows of a block | its value | null |
| `receipt` | null | text |

One list, which ends where it is taken apart: of a list for each column, rows would hold the whole ones until their
values are picked, and what stands in between (a Python function of a transform) would copy them for each row.

Columns are named by their places, for what users call theirs may hold dots, or differ by case alone.
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
        alike: the places of those that are alike in all rows of a batch.
    """

    rows: pa.Schema
    alike: frozenset[int]

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of blocks."""
        named = [pa.field(_name(place), one.type) for place, one in enumerate(self.rows)]
        own, beside = ([named[place] for place in some] for some in (self._inside, self._beside))
        return pa.schema([pa.field(_ROWS, pa.list_(pa.struct(own))), *beside, pa.field(RECEIPT, pa.string())])

    def block(self, columns: Sequence[pa.Array[Any]]) -> pa.RecordBatch:
        """Rows, of which there is one at least.

        Args:
            columns: their values; of columns that are alike in all rows, but for the first column, one is enough.
        """
        structs = pa.StructArray.from_arrays([columns[place] for place in self._inside], names=self._names)
        ends = pa.array([0, len(structs)], pa.int32())
        beside = [columns[place].slice(0, 1) for place in self._beside]
        blocks: list[pa.Array[Any]] = [pa.ListArray.from_arrays(ends, structs), *beside, pa.nulls(1, pa.string())]
        return pa.RecordBatch.from_arrays(blocks, schema=self.schema)

    def receipt(self, text: str) -> pa.RecordBatch:
        """A row that is no block."""
        nulls: list[pa.Array[Any]] = [pa.nulls(1, one.type) for one in self.schema][:-1]
        return pa.RecordBatch.from_arrays([*nulls, pa.array([text], pa.string())], schema=self.schema)

    def rows_of(self, blocks: DataFrame) -> DataFrame:
        """The rows again."""
        # expressions in text: a tenth of the calls into the JVM that columns take. Users' names are no part of them:
        # Spark puts settings and variables of the environment in place of `${..}`
        apart = blocks.selectExpr(f"inline({_ROWS})", *map(_name, self._beside))
        return apart.selectExpr(*map(_name, range(len(self.rows)))).toDF(*self.rows.names)

    @cached_property
    def _inside(self) -> list[int]:
        """A block has one column of its own at least, which says how many rows it has."""
        return [place for place in range(len(self.rows)) if place not in self.alike] or [0]

    @cached_property
    def _beside(self) -> list[int]:
        return sorted(self.alike - set(self._inside))

    @cached_property
    def _names(self) -> list[str]:
        return [_name(place) for place in self._inside]


def _name(place: int) -> str:
    return f"c{place}"
