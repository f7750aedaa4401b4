"""Reads small windows in this process, by a few threads, before Spark sees a row: no Python worker starts."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.model.circuit_breaker import CircuitBreaker
from airflow_provider_streams.model.plan.plan import Split
from airflow_provider_streams.model.plan.receipt import SplitReceipt
from airflow_provider_streams.spark import error_transport
from airflow_provider_streams.spark.datasource.split_reading import open_split
from airflow_provider_streams.spark.datasource.windows_source import NUMBER_COLUMN
from airflow_provider_streams.spark.job.concurrency import side_by_side
from airflow_provider_streams.spark.job.job_spec import JobSpec, WindowSpec
from airflow_provider_streams.spark.job.open_systems import OpenSystems
from airflow_provider_streams.spark.job.outcomes import is_fatal_for_all
from airflow_provider_streams.spark.job.progress_log import SplitProgress
from airflow_provider_streams.spark.job.transforms import Transform, settings
from airflow_provider_streams.spark.launch import cancellation
from airflow_provider_streams.systems.base import StreamSystem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_THREADS = 4
MOST_BYTES = 256 * 1024 * 1024
"""A small compressed plan can have large rows: beyond this size, Spark's tasks read it."""


class TooLarge(Exception):
    """The rows of small plans outgrew this process."""


class SparkSettingsChanged(Exception):
    """A transform changed Spark's settings for its window: other windows must not be read under them."""


class TablesRead:
    """Windows read in this process, some at a time.

    Raises:
        TooLarge: the rows do not fit.
        StreamsError: what concerns all windows alike.
    """

    def __init__(self, specs: Sequence[WindowSpec], systems: OpenSystems, circuit_breaker: CircuitBreaker) -> None:
        self.failed: dict[int, StreamsError] = {}
        self.tables: dict[int, pa.Table] = {}
        self.receipts: dict[int, list[SplitReceipt]] = {}
        self._systems, self._circuit_breaker = systems, circuit_breaker
        self._progress = SplitProgress(split.bytes for spec in specs for split in spec.plan.splits)
        size = 0
        with side_by_side(self._table, specs, "streams-window") as each:
            for number, found in enumerate(each):
                if isinstance(found, StreamsError):
                    self.failed[number] = found
                    continue
                self.tables[number], self.receipts[number] = found
                size += found[0].nbytes
                if size > MOST_BYTES:
                    raise TooLarge

    def _table(self, spec: WindowSpec) -> tuple[pa.Table, list[SplitReceipt]] | StreamsError:
        if self._circuit_breaker.over:
            return self._circuit_breaker.over
        try:
            return read_table(spec, self._systems, self._progress)
        except StreamsError as error:
            known = error_transport.typed(error, spec.hidden)
            if is_fatal_for_all(known, several_tables=self._circuit_breaker.several) or not isinstance(
                known, StreamsError
            ):
                raise known from None
            self._circuit_breaker.note(known)
            return known


def frame_of_tables(job: JobSpec, tables: dict[int, pa.Table], spark: SparkSession) -> DataFrame:
    """All rows; those of several windows have the window's number. A transform sees one window, and no number.

    Raises:
        SparkSettingsChanged: the transform of several windows changed a setting.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - only where Spark runs

    from airflow_provider_streams.spark.job.dataframes import frame_of  # noqa: PLC0415

    first = Transform(job.transform, job.how) if job.transform else None

    def rows_of(number: int) -> DataFrame:
        frame = frame_of(spark, tables[number])
        return replace(first, spec=job.specs[number])(frame) if first else frame

    if job.is_single:
        return rows_of(0)
    before = settings(spark)
    frames = [rows_of(number).withColumn(NUMBER_COLUMN, F.lit(number)) for number in tables]
    if settings(spark) != before:
        raise SparkSettingsChanged
    # in pairs, for Spark walks a plan recursively: 200 unions in a row are deep
    while len(frames) > 1:
        frames = [frames[i].unionByName(frames[i + 1]) for i in range(0, len(frames) - 1, 2)] + frames[
            len(frames) // 2 * 2 :
        ]
    return frames[0]


def read_table(
    spec: WindowSpec, systems: OpenSystems, progress: SplitProgress | None = None
) -> tuple[pa.Table, list[SplitReceipt]]:
    """All rows of a plan and its receipts, in the order of the splits.

    Raises:
        TooLarge: the rows do not fit.
        StreamsError: as the system's reader says.
    """
    schema = systems.schema_of(spec)
    threads = min(_THREADS, len(spec.plan.splits)) or 1
    shares = [spec.plan.splits[first::threads] for first in range(threads)]
    stop = threading.Event()
    progress = progress or SplitProgress(split.bytes for split in spec.plan.splits)
    with ThreadPoolExecutor(threads, thread_name_prefix="streams-read") as pool:
        parts = [
            pool.submit(_read_share, systems, spec, share, _Limit(MOST_BYTES // threads, stop, progress))
            for share in shares
        ]
        try:
            read_splits = sorted((one for part in parts for one in part.result()), key=lambda one: one[0].index)
        except BaseException:
            stop.set()  # a failure, or the task's end: the other threads leave at their next batch
            raise
    batches = [batch for _, batches in read_splits for batch in batches]
    return pa.Table.from_batches(batches, schema=schema), [receipt for receipt, _ in read_splits]


def _read_share(
    systems: OpenSystems, spec: WindowSpec, splits: Sequence[Split], limit: _Limit
) -> list[tuple[SplitReceipt, list[pa.RecordBatch]]]:
    with systems.one() as system:
        return [_read_split(system, spec, split, limit) for split in splits]


def _read_split(
    system: StreamSystem, spec: WindowSpec, split: Split, limit: _Limit
) -> tuple[SplitReceipt, list[pa.RecordBatch]]:
    reader = open_split(system, spec.plan, split, spec.split_read_options)
    try:
        batches = list(limit.pass_on(reader))
        limit.progress.end_split(split.bytes)
        return reader.receipt, batches
    finally:
        reader.close()


class _Limit:
    """How much one thread may still hold, and whether it goes on."""

    def __init__(self, size: int, stop: threading.Event, progress: SplitProgress) -> None:
        self._left, self._stop, self.progress = size, stop, progress

    def pass_on(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self._left -= batch.nbytes
            if self._left < 0:
                raise TooLarge
            if self._stop.is_set():
                return
            cancellation.check()
            self.progress.read(len(batch))
            yield batch
