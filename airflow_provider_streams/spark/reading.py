"""Two ways to read a plan, with the same rows and the same receipts.

Small plans are read here, by a few threads, and handed to Spark as one Arrow table: no Python worker starts. Larger
ones are read by Spark's tasks through the Data Source; receipts come back with an `Observation` in the same pass.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.plan import Split
from airflow_provider_streams.model.receipt import SplitReceipt
from airflow_provider_streams.spark import ending, preflight
from airflow_provider_streams.spark.scan import Scan
from airflow_provider_streams.spark.spec import JobSpec
from airflow_provider_streams.spark.split_reading import open_split, schema_of
from airflow_provider_streams.spark.windows_source import NUMBER_COLUMN
from airflow_provider_streams.systems.base import StreamSystem
from airflow_provider_streams.systems.registry import load_system

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_log = logging.getLogger(__name__)

_THREADS = 4
MOST_BYTES = 256 * 1024 * 1024
"""A compressed plan can be small and its rows not: beyond this, Spark's tasks read it."""


class Read(Protocol):
    """A plan being read."""

    @property
    def df(self) -> DataFrame:
        """Its rows."""

    def pass_over(self) -> None:
        """Read every row and keep none."""

    def expect_unread(self) -> None:
        """Called between the transform and the sink.

        Raises:
            InvalidRequest: the transform ran an action: the receipts would prove that pass, not the sink's.
        """

    def receipts(self) -> list[SplitReceipt]:
        """What the splits saw, after the first action on `df` has ended."""


class TooLarge(Exception):
    """The rows of a small plan outgrew this process."""


def read(spec: JobSpec, spark: SparkSession) -> Read:
    """Begin to read, by the way that suits the plan's size.

    Raises:
        PreflightFailed: Spark's tasks must read it, and cannot.
        StreamsError: as the system's reader says.
    """
    if spec.is_small or spec.plan.is_empty:
        try:
            return TableRead(spec, spark)
        except TooLarge:
            _log.info("the rows exceed %d bytes: Spark's tasks read them", MOST_BYTES)
            preflight.check_workers(spark)
    return SourceRead(spec, spark)


class TableRead:
    """Read in this process, before Spark sees a row."""

    def __init__(self, spec: JobSpec, spark: SparkSession) -> None:
        self._spark = spark
        self._table, self._receipts = read_table(spec)

    @cached_property
    def df(self) -> DataFrame:
        """See `Read`."""
        from airflow_provider_streams.spark.frames import frame_of  # noqa: PLC0415 - only where Spark runs

        return frame_of(self._spark, self._table)

    def pass_over(self) -> None:
        """See `Read`; the rows are here already."""

    def expect_unread(self) -> None:
        """See `Read`; the rows are here already, and every pass has the same."""

    def receipts(self) -> list[SplitReceipt]:
        """See `Read`."""
        return self._receipts


class SourceRead:
    """Read by Spark's tasks."""

    def __init__(self, spec: JobSpec, spark: SparkSession) -> None:
        self._scan = Scan((spec,), spark)
        self.df = self._scan.df.drop(NUMBER_COLUMN)

    def pass_over(self) -> None:
        """See `Read`."""
        self.df.write.format("noop").mode("overwrite").save()

    def expect_unread(self) -> None:
        """See `Read`."""
        if self._scan.is_over:
            raise InvalidRequest(
                "the transform ran a Spark action (count, collect, write, ..), so the stream would be read twice and "
                "only the first pass be proven: return a DataFrame and leave the action to the sink"
            )

    def receipts(self) -> list[SplitReceipt]:
        """See `Read`."""
        return self._scan.receipts()[0]


def read_table(spec: JobSpec) -> tuple[pa.Table, list[SplitReceipt]]:
    """All rows of a plan and its receipts, in the order of the splits.

    Raises:
        TooLarge: the rows do not fit.
        StreamsError: as the system's reader says.
    """
    system_type = load_system(spec.plan.source.system)
    schema = schema_of(system_type.from_options(spec.options), spec.plan, spec.columns)
    threads = min(_THREADS, len(spec.plan.splits)) or 1
    shares = [spec.plan.splits[first::threads] for first in range(threads)]
    stop = threading.Event()
    with ThreadPoolExecutor(threads, thread_name_prefix="streams-read") as pool:
        parts = [
            pool.submit(_read_share, system_type, spec, share, _Limit(MOST_BYTES // threads, stop)) for share in shares
        ]
        try:
            read_splits = sorted((one for part in parts for one in part.result()), key=lambda one: one[0].index)
        except BaseException:
            stop.set()  # a failure, or the task's end: the other threads leave at their next batch
            raise
    batches = [batch for _, batches in read_splits for batch in batches]
    return pa.Table.from_batches(batches, schema=schema), [receipt for receipt, _ in read_splits]


def _read_share(
    system_type: type[StreamSystem], spec: JobSpec, splits: Sequence[Split], limit: _Limit
) -> list[tuple[SplitReceipt, list[pa.RecordBatch]]]:
    system = system_type.from_options(spec.options)
    try:
        return [_read_split(system, spec, split, limit) for split in splits]
    finally:
        system.close()


def _read_split(
    system: StreamSystem, spec: JobSpec, split: Split, limit: _Limit
) -> tuple[SplitReceipt, list[pa.RecordBatch]]:
    reader = open_split(system, spec.plan, split, spec.manner)
    try:
        batches = list(limit.pass_on(reader))
        return reader.receipt, batches
    finally:
        reader.close()


class _Limit:
    """What one thread may still hold, and whether it shall go on."""

    def __init__(self, size: int, stop: threading.Event) -> None:
        self._left, self._stop = size, stop

    def pass_on(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self._left -= batch.nbytes
            if self._left < 0:
                raise TooLarge
            if self._stop.is_set():
                return
            ending.check()
            yield batch
