"""Arrow tables as DataFrames, with every row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A table's rows as a DataFrame of the same columns.

    `createDataFrame` takes a batch without rows for the end of the table (PySpark 4.2), so none is given to it.
    """
    batches = [batch for batch in table.to_batches() if len(batch)]
    if not batches:
        return spark.createDataFrame([], from_arrow_schema(table.schema))
    return spark.createDataFrame(pa.Table.from_batches(batches, table.schema), schema=from_arrow_schema(table.schema))
