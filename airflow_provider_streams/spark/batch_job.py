"""Many windows in one job: read together, written in one pass, each proven and put in place on its own.

| what | how |
|---|---|
| a chunk's plans are small together | read by this process, handed to Spark as one Arrow table |
| larger | one scan of the splits of all plans (`WindowsDataSource`) |
| a transform | sees one window at a time, as in a job of one window; more rows than fit are halved |
| a window that cannot be read | fails alone; a chunk that fails as a whole is halved until the failure stands alone |
"""

from __future__ import annotations

import json
import logging
import time
import traceback
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from airflow_provider_streams.errors import OtherCluster, StreamsError
from airflow_provider_streams.model.landing import Landed, Schema
from airflow_provider_streams.model.plan import SourceRef
from airflow_provider_streams.model.receipt import SplitReceipt, compare
from airflow_provider_streams.redaction import redact
from airflow_provider_streams.spark import ending, failures, job, preflight, reading, sinks, veil
from airflow_provider_streams.spark.batch_source import NUMBER_COLUMN, WindowsDataSource, source_options
from airflow_provider_streams.spark.batch_spec import ChunkSpec, WindowFailure, WindowResult, concerns_all
from airflow_provider_streams.spark.observing import observed
from airflow_provider_streams.spark.options import RECEIPT_COLUMN
from airflow_provider_streams.spark.spec import JobSpec
from airflow_provider_streams.spark.transforms import Transform, settings, unchanged
from airflow_provider_streams.systems.registry import load_system

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_log = logging.getLogger(__name__)

_WINDOWS_AT_ONCE = 4


def run_chunk(chunk: ChunkSpec, spark: SparkSession) -> list[WindowResult]:
    """Read, prove and put in place every window of a chunk; what became of each, in the chunk's order.

    Raises:
        PreflightFailed, InvalidRequest, AccessError, SystemUnavailable, SinkError: it concerns all windows alike. Those
            that were put in place before stay so.
    """
    preflight.check_driver(spark)
    foreign = _of_other_clusters(chunk)
    own = [number for number in range(len(chunk.specs)) if number not in foreign]
    if own and not chunk.is_small:
        preflight.check_workers(spark)
    if chunk.transform:
        Transform(chunk.transform, chunk.how).rehearse(spark)
    _log.info("reading %d windows in one job", len(own))
    read = _attempt(ChunkSpec(tuple(chunk.specs[number] for number in own)), spark) if own else []
    results: dict[int, WindowResult] = {**foreign, **dict(zip(own, read, strict=True))}
    return [results[number] for number in range(len(chunk.specs))]


def _of_other_clusters(chunk: ChunkSpec) -> dict[int, WindowFailure]:
    """The windows whose plans mean nothing here; each origin is asked about once."""
    judged: dict[SourceRef, OtherCluster | None] = {}
    for spec in chunk.specs:
        if spec.plan.source not in judged:
            judged[spec.plan.source] = _origin_problem(spec)
    return {
        number: _failed(spec, problem)
        for number, spec in enumerate(chunk.specs)
        if (problem := judged[spec.plan.source]) is not None
    }


def _origin_problem(spec: JobSpec) -> OtherCluster | None:
    try:
        job.check_origin(spec, spec.plan)
    except OtherCluster as error:
        return error
    return None


def _attempt(chunk: ChunkSpec, spark: SparkSession) -> list[WindowResult]:
    try:
        return _together(chunk, spark) if _can_share(chunk) else [_alone(spec, spark) for spec in chunk.specs]
    except _OwnSettings:
        _log.info("the transform changes Spark's settings: each of %d windows is read alone", len(chunk.specs))
        return [_alone(spec, spark) for spec in chunk.specs]
    except reading.TooLarge:
        if len(chunk.specs) == 1:
            return [_alone(chunk.how, spark)]  # which lets Spark's tasks read it
        _log.info("the rows of %d windows are too many for this process and a transform: halving", len(chunk.specs))
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not spoil the other windows
        known = failures.typed(error, chunk.secrets.values())
        if concerns_all(known):
            raise known from None  # Spark's text is pages of traceback, and may quote a secret
        if len(chunk.specs) == 1:
            return [_failed(chunk.how, known)]
        _log.warning("%d windows failed together (%s): halving", len(chunk.specs), type(known).__name__)
    half = len(chunk.specs) // 2
    return [*_attempt(chunk.part(0, half), spark), *_attempt(chunk.part(half, len(chunk.specs)), spark)]


def _together(chunk: ChunkSpec, spark: SparkSession) -> list[WindowResult]:
    with unchanged(spark) if chunk.transform else nullcontext():
        return _Together(chunk, spark).run()


class _OwnSettings(Exception):
    """A transform changed Spark's settings for its window: other windows must not be read under them."""


def _alone(spec: JobSpec, spark: SparkSession) -> WindowResult:
    try:
        return job.run(spec, spark)
    except Exception as error:
        if concerns_all(error):
            raise
        return _failed(spec, error)


def _failed(spec: JobSpec, error: BaseException) -> WindowFailure:
    if spec.transform:
        error = Transform(spec.transform, spec).blamed(error)
    if isinstance(error, StreamsError):
        _log.warning("window %s failed: %s: %s", spec.plan.window, type(error).__name__, error)
    else:
        text = "".join(traceback.format_exception(error))
        _log.error("window %s failed: %s", spec.plan.window, redact(text, spec.secrets.values()))
    return WindowFailure.of(error)


def _can_share(chunk: ChunkSpec) -> bool:
    """Whether one pass can write all: the sink can, and a transform need not read the stream once per window."""
    sink = chunk.how.sink
    writes_many = sink is None or hasattr(sinks.writer_type(sink.kind), "stage_together")
    return writes_many and (chunk.transform is None or chunk.is_small)


class _Read(Protocol):
    """The windows of a chunk being read."""

    df: DataFrame
    """All rows, each with the number of its window."""
    failed: dict[int, StreamsError]
    """Windows that could not be read, and are not in `df`."""

    def receipts(self) -> dict[int, list[SplitReceipt]]:
        """What the splits of each window saw, after the first action on `df` has ended."""


class _Together:
    """One pass over all windows of a chunk."""

    def __init__(self, chunk: ChunkSpec, spark: SparkSession) -> None:
        self._chunk, self._spark = chunk, spark
        self._started = time.monotonic()

    def run(self) -> list[WindowResult]:
        """What became of each window, in order."""
        read = self._read()
        results: dict[int, WindowResult] = {
            number: _failed(self._chunk.specs[number], error) for number, error in read.failed.items()
        }
        numbers = [number for number in range(len(self._chunk.specs)) if number not in results]
        if numbers:
            results |= self._land(read, numbers)
        return [results[number] for number in range(len(self._chunk.specs))]

    def _read(self) -> _Read:
        if self._chunk.is_small:
            try:
                return _TableRead(self._chunk, self._spark)
            except reading.TooLarge:
                if self._chunk.transform is not None:
                    raise
                _log.info("the rows are too many for this process: Spark's tasks read them")
                preflight.check_workers(self._spark)
        return _SourceRead(self._chunk, self._spark)

    def _land(self, read: _Read, numbers: Sequence[int]) -> dict[int, WindowResult]:
        sink = self._chunk.how.sink
        if sink is None:
            if not isinstance(read, _TableRead):
                read.df.write.format("noop").mode("overwrite").save()
            return self._proven(read.receipts(), numbers, {})
        terms = self._chunk.how.terms
        if terms is None:
            raise AssertionError("JobSpec refuses a sink without terms")
        schema = job.schema_of(self._chunk.how, read.df.drop(NUMBER_COLUMN))
        writers = {number: sinks.writer_of(sink, self._chunk.specs[number].plan.window, terms) for number in numbers}
        try:
            first = writers[numbers[0]]
            first.stage_together(writers, read.df, NUMBER_COLUMN)  # type: ignore[attr-defined]  # see _can_share
            return self._proven(read.receipts(), numbers, writers, schema)
        finally:
            for writer in writers.values():
                writer.discard()

    def _proven(
        self,
        receipts: dict[int, list[SplitReceipt]],
        numbers: Sequence[int],
        writers: dict[int, sinks.Writer],
        schema: Schema | None = None,
    ) -> dict[int, WindowResult]:
        """Each window on its own: its receipt agrees and its rows are in place, or it failed."""
        system = load_system(self._chunk.how.plan.source.system).from_options(self._chunk.how.options)
        results: dict[int, WindowResult] = {}
        try:
            for number in numbers:
                spec = self._chunk.specs[number]
                ending.check()
                try:
                    explained = system.explain(spec.plan, receipts[number], on_loss=spec.on_loss)
                    receipt = compare(spec.plan, explained, seconds=time.monotonic() - self._started)
                    written = None
                    if number in writers:
                        written = writers[number].commit(receipt, job.expected_rows(spec, receipt, None))
                    results[number] = Landed(receipt, written, schema)
                except StreamsError as error:
                    results[number] = _failed(spec, error)
        finally:
            system.close()
        return results


class _TableRead:
    """Read in this process, some windows at a time, before Spark sees a row."""

    def __init__(self, chunk: ChunkSpec, spark: SparkSession) -> None:
        self.failed: dict[int, StreamsError] = {}
        self._receipts: dict[int, list[SplitReceipt]] = {}
        tables: dict[int, pa.Table] = {}
        pool = ThreadPoolExecutor(min(_WINDOWS_AT_ONCE, len(chunk.specs)), thread_name_prefix="streams-window")
        try:
            for number, found in enumerate(pool.map(_table, chunk.specs)):
                if isinstance(found, StreamsError):
                    self.failed[number] = found
                    continue
                tables[number], self._receipts[number] = found
                if sum(table.nbytes for table in tables.values()) > reading.MOST_BYTES:
                    raise reading.TooLarge
        finally:
            pool.shutdown(cancel_futures=True)
        if tables and chunk.how.sink is not None:
            self.df = _frame(spark, tables, _transforms(chunk, tables) if chunk.transform else None)

    def receipts(self) -> dict[int, list[SplitReceipt]]:
        """See `_Read`."""
        return self._receipts


def _table(spec: JobSpec) -> tuple[pa.Table, list[SplitReceipt]] | StreamsError:
    try:
        return reading.read_table(spec)
    except StreamsError as error:
        known = failures.typed(error, spec.secrets.values())
        if concerns_all(known) or not isinstance(known, StreamsError):
            raise known from None
        return known


def _transforms(chunk: ChunkSpec, numbers: Iterable[int]) -> dict[int, Transform]:
    """One for each window."""
    first = Transform(str(chunk.transform), chunk.how)
    return {number: replace(first, spec=chunk.specs[number]) for number in numbers}


def _frame(spark: SparkSession, tables: dict[int, pa.Table], transforms: dict[int, Transform] | None) -> DataFrame:
    """All rows with the number of their window; a transform sees one window at a time, and no number."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - only where Spark runs

    from airflow_provider_streams.spark.frames import frame_of  # noqa: PLC0415

    if transforms is None:
        marked = [
            table.append_column(NUMBER_COLUMN, pa.array([number] * len(table), pa.int32()))
            for number, table in tables.items()
        ]
        return frame_of(spark, pa.concat_tables(marked))
    before = settings(spark)
    frames = [
        transforms[number](frame_of(spark, table)).withColumn(NUMBER_COLUMN, F.lit(number))
        for number, table in tables.items()
    ]
    if settings(spark) != before:
        raise _OwnSettings
    # in pairs, for Spark walks a plan recursively: 200 unions in a row are deep
    while len(frames) > 1:
        frames = [frames[i].unionByName(frames[i + 1]) for i in range(0, len(frames) - 1, 2)] + frames[
            len(frames) // 2 * 2 :
        ]
    return frames[0]


class _SourceRead:
    """Read by Spark's tasks, in one scan."""

    def __init__(self, chunk: ChunkSpec, spark: SparkSession) -> None:
        from pyspark.sql import Observation  # noqa: PLC0415 - only where Spark runs
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        self.failed: dict[int, StreamsError] = {}
        veil.hide(spark)
        spark.dataSource.register(WindowsDataSource)
        source = spark.read.format(WindowsDataSource.name()).options(**source_options(chunk.specs)).load()
        self._observation = Observation("streams receipts of windows")
        observed = source.observe(self._observation, F.collect_list(RECEIPT_COLUMN).alias("receipts"))
        self.df: DataFrame = observed.filter(f"{RECEIPT_COLUMN} is null").drop(RECEIPT_COLUMN)

    def receipts(self) -> dict[int, list[SplitReceipt]]:
        """See `_Read`."""
        texts: dict[int, list[str]] = defaultdict(list)
        for text in observed(self._observation).get("receipts") or ():
            data = json.loads(text)
            texts[data["window"]].append(json.dumps(data["receipt"]))
        return defaultdict(list, {number: reading.distinct(found) for number, found in texts.items()})
