"""Arrow tables as DataFrames, with every row."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A table's rows as a DataFrame of the same columns.

    `createDataFrame` takes a batch without rows for the end of the table (PySpark 4.2), so none is given to it.
    """
    batches = [batch for batch in table.to_batches() if len(batch)]
    if not batches:
        return spark.createDataFrame([], from_arrow_schema(table.schema))
    return spark.createDataFrame(pa.Table.from_batches(batches, table.schema), schema=from_arrow_schema(table.schema))


def arrow_columns(columns: StructType) -> pa.Schema:
    """The columns of a DataFrame as Arrow has them, times in UTC."""
    return to_arrow_schema(columns, **_IN_UTC)


_IN_UTC: dict[str, Any] = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
"""Spark 4.1 takes no other zone."""
