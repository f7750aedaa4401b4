"""How the windows of a chunk are read together: by this process, or by Spark's tasks in one scan."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.model.patience import Patience
from airflow_provider_streams.model.receipt import SplitReceipt
from airflow_provider_streams.spark import failures, reading
from airflow_provider_streams.spark.batch_spec import ChunkSpec, concerns_all
from airflow_provider_streams.spark.scan import Scan
from airflow_provider_streams.spark.spec import JobSpec
from airflow_provider_streams.spark.transforms import Transform, settings
from airflow_provider_streams.spark.windows_source import NUMBER_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WINDOWS_AT_ONCE = 4
"""So many are read, or put in place, side by side in this process."""


class OwnSettings(Exception):
    """A transform changed Spark's settings for its window: other windows must not be read under them."""


class Read(Protocol):
    """The windows of a chunk being read."""

    df: DataFrame
    """All rows, each with the number of its window."""
    failed: dict[int, StreamsError]
    """Windows that could not be read, and are not in `df`."""

    def receipts(self) -> dict[int, list[SplitReceipt]]:
        """What the splits of each window saw, after the first action on `df` has ended."""


class TablesRead:
    """Read in this process, some windows at a time."""

    def __init__(self, chunk: ChunkSpec, patience: Patience) -> None:
        self.failed: dict[int, StreamsError] = {}
        self.tables: dict[int, pa.Table] = {}
        self.receipts: dict[int, list[SplitReceipt]] = {}
        self._patience = patience
        pool = ThreadPoolExecutor(min(WINDOWS_AT_ONCE, len(chunk.specs)), thread_name_prefix="streams-window")
        try:
            size = 0
            for number, found in enumerate(pool.map(self._table, chunk.specs)):
                if isinstance(found, StreamsError):
                    self.failed[number] = found
                    continue
                self.tables[number], self.receipts[number] = found
                size += found[0].nbytes
                if size > reading.MOST_BYTES:
                    raise reading.TooLarge
        finally:
            pool.shutdown(cancel_futures=True)

    def _table(self, spec: JobSpec) -> tuple[pa.Table, list[SplitReceipt]] | StreamsError:
        if self._patience.over:
            return self._patience.over
        try:
            return reading.read_table(spec)
        except StreamsError as error:
            known = failures.typed(error, spec.hidden)
            if concerns_all(known, several_tables=self._patience.several) or not isinstance(known, StreamsError):
                raise known from None
            self._patience.note(known)
            return known


class TableRead:
    """Read in this process, before Spark sees a row."""

    def __init__(self, chunk: ChunkSpec, spark: SparkSession, patience: Patience) -> None:
        read = TablesRead(chunk, patience)
        self.failed, self._receipts = read.failed, read.receipts
        if read.tables and chunk.how.sink is not None:
            self.df = _frame(spark, read.tables, _transforms(chunk, read.tables))

    def receipts(self) -> dict[int, list[SplitReceipt]]:
        """See `Read`."""
        return self._receipts


def _transforms(chunk: ChunkSpec, numbers: Iterable[int]) -> dict[int, Transform]:
    """One for each window."""
    first = Transform(str(chunk.transform), chunk.how)
    return {number: replace(first, spec=chunk.specs[number]) for number in numbers}


def _frame(spark: SparkSession, tables: dict[int, pa.Table], transforms: dict[int, Transform]) -> DataFrame:
    """All rows with the number of their window; a transform sees one window at a time, and no number."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - only where Spark runs

    from airflow_provider_streams.spark.frames import frame_of  # noqa: PLC0415

    before = settings(spark)
    frames = [
        transforms[number](frame_of(spark, table)).withColumn(NUMBER_COLUMN, F.lit(number))
        for number, table in tables.items()
    ]
    if settings(spark) != before:
        raise OwnSettings
    # in pairs, for Spark walks a plan recursively: 200 unions in a row are deep
    while len(frames) > 1:
        frames = [frames[i].unionByName(frames[i + 1]) for i in range(0, len(frames) - 1, 2)] + frames[
            len(frames) // 2 * 2 :
        ]
    return frames[0]


class SourceRead:
    """Read by Spark's tasks, in one scan."""

    def __init__(self, chunk: ChunkSpec, spark: SparkSession) -> None:
        self.failed: dict[int, StreamsError] = {}
        self._scan = Scan(chunk.specs, spark)
        self.df = self._scan.df

    def receipts(self) -> dict[int, list[SplitReceipt]]:
        """See `Read`."""
        return self._scan.receipts()
