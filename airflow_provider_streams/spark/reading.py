"""Two ways to read a plan, with the same rows and the same receipts.

Small plans are read here, by a few threads, and handed to Spark as one Arrow table: no Python worker starts. Larger
ones are read by Spark's tasks through the Data Source; receipts come back with an `Observation` in the same pass.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.plan import Split
from airflow_provider_streams.model.receipt import SplitReceipt
from airflow_provider_streams.spark import ending, preflight, veil
from airflow_provider_streams.spark.observing import observed
from airflow_provider_streams.spark.options import RECEIPT_COLUMN
from airflow_provider_streams.spark.spec import JobSpec
from airflow_provider_streams.spark.split_reading import open_split, schema_of
from airflow_provider_streams.systems.base import StreamSystem
from airflow_provider_streams.systems.registry import load_system

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation, SparkSession

_log = logging.getLogger(__name__)

_THREADS = 4
MOST_BYTES = 256 * 1024 * 1024
"""A compressed plan can be small and its rows not: beyond this, Spark's tasks read it."""


class Read(Protocol):
    """A plan being read."""

    df: DataFrame

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
        from airflow_provider_streams.spark.frames import frame_of  # noqa: PLC0415 - only where Spark runs

        table, self._receipts = read_table(spec)
        self.df: DataFrame = frame_of(spark, table)

    def expect_unread(self) -> None:
        """See `Read`; the rows are here already, and every pass has the same."""

    def receipts(self) -> list[SplitReceipt]:
        """See `Read`."""
        return self._receipts


class SourceRead:
    """Read by Spark's tasks."""

    def __init__(self, spec: JobSpec, spark: SparkSession) -> None:
        from pyspark.sql import Observation  # noqa: PLC0415 - only where Spark runs
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        from airflow_provider_streams.spark.source import data_source  # noqa: PLC0415

        veil.hide(spark)
        spark.dataSource.register(data_source(spec.plan.source.system))
        self._source = spark.read.format(spec.plan.source.system).options(**_source_options(spec)).load()
        self._splits = len(spec.plan.splits)
        self._observation = Observation("streams receipts")
        receipts = F.collect_list(RECEIPT_COLUMN).alias("receipts")
        self.df: DataFrame = _rows(self._source.observe(self._observation, receipts))

    def expect_unread(self) -> None:
        """See `Read`."""
        if _is_over(self._observation):
            raise InvalidRequest(
                "the transform ran a Spark action (count, collect, write, ..), so the stream would be read twice and "
                "only the first pass be proven: return a DataFrame and leave the action to the sink"
            )

    def receipts(self) -> list[SplitReceipt]:
        """See `Read`.

        When the transform let Spark skip splits (a filter that is always false, a limit), nothing came from them: the
        source is then read once more, for the receipts alone.
        """
        found = distinct(observed(self._observation).get("receipts") or ())
        if len(found) < self._splits:
            _log.warning(
                "Spark skipped %d of %d splits: reading for the receipts", self._splits - len(found), self._splits
            )
            rows = self._source.filter(f"{RECEIPT_COLUMN} is not null").select(RECEIPT_COLUMN).collect()
            found = distinct(row[0] for row in rows)
        return found


def _is_over(observation: Observation) -> bool:
    """Whether an action has passed by; asking `get` would wait for one. Connect's client fills a dictionary."""
    java = getattr(observation, "_jo", None)
    return bool(java.future().isCompleted() if java is not None else getattr(observation, "_result", None))


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


def _source_options(spec: JobSpec) -> dict[str, str]:
    options = {
        **{name: value for name, value in spec.options.items() if value},
        **{name: veil.veiled(value) for name, value in spec.secret_options.items()},
        "plan": json.dumps(spec.plan.to_json(), separators=(",", ":")),
        "on_loss": spec.on_loss,
        "on_undecodable": spec.undecodable.then,
        "receipt": "true",
    }
    if spec.quarantine is not None:
        options["quarantine_path"] = spec.quarantine
    if spec.columns is not None:
        options["columns"] = ",".join(spec.columns)
    return options


def _rows(df: DataFrame) -> DataFrame:
    return df.filter(f"{RECEIPT_COLUMN} is null").drop(RECEIPT_COLUMN)


def distinct(texts: Iterable[Any]) -> list[SplitReceipt]:
    """One receipt per split, of their texts; see `worst`."""
    return worst(SplitReceipt.from_json(json.loads(text)) for text in texts)


def worst(receipts: Iterable[SplitReceipt]) -> list[SplitReceipt]:
    """One receipt per split: a split read twice (a self-join, a lost executor) reports twice; the worse one counts."""
    found: dict[int, SplitReceipt] = {}
    for receipt in receipts:
        known = found.get(receipt.index)
        if known is None or receipt.entries < known.entries:
            found[receipt.index] = receipt
    return list(found.values())
