"""Writes rows into data files that a table's writer commits.

| rows | written by |
|---|---|
| of a small plan | this process, which read them |
| of a larger one | the tasks that read them (`file_writing_tasks`): only facts and receipts cross into Spark |
| of a transform | tasks that get them from Spark, as Arrow |
"""

from __future__ import annotations

import json
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    AnsiIntervalType,
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    SpatialType,
    StringType,
    StructType,
    VariantType,
)

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.lake.data_files import DataFile, FileTarget, WindowFiles
from airflow_provider_streams.lake.writer import DataFrameSinkWriter
from airflow_provider_streams.model.plan.receipt import worst
from airflow_provider_streams.spark.datasource.option_redaction import mask_secret, unmask_secret
from airflow_provider_streams.spark.error_transport import one_line
from airflow_provider_streams.spark.job.dataframes import arrow_columns
from airflow_provider_streams.spark.job.file_writing_tasks import SplitTasks, Staged, report
from airflow_provider_streams.spark.job.progress_log import TaskProgress, event_counter, watched
from airflow_provider_streams.spark.job.scan import observed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_streams.spark.job.job_spec import WindowSpec

REPORT = "report"
"""The one column of the tasks' reports on a transform's rows."""


def write_table(table: pa.Table, target: FileTarget) -> list[DataFile]:
    """A window's rows, written by this process.

    Raises:
        SinkError: they cannot be written.
    """
    with closing(WindowFiles(target)) as files:
        for batch in table.to_batches():
            files.write(batch)
        return files.finish()


def stage_by_tasks(
    specs: tuple[WindowSpec, ...], targets: Mapping[int, FileTarget], spark: SparkSession
) -> Mapping[int, Staged]:
    """Read windows in Spark's tasks, which write their files; what became of each, by its place in `specs`.

    Raises:
        StreamsError: as the system's reader says; or the rows cannot be written.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - only where Spark runs

    events = event_counter(spark)
    tasks = SplitTasks.of(specs, targets, events)
    progress = TaskProgress(tasks.shares, None if events is None else lambda: events.value)
    numbers = spark.range(0, len(tasks.shares), 1, len(tasks.shares))
    # a few lines of text: without Arrow, and so without pandas
    land = F.udf(tasks, ArrayType(StringType()), useArrow=False).asNondeterministic()
    with watched(spark, progress):
        rows = numbers.select(land("id")).collect()
    found = _collected(text for (texts,) in rows for text in texts)
    for one in found.values():
        one.receipts = worst(one.receipts)
    return found


def stage_frame(df: DataFrame, targets: Mapping[int, FileTarget], column: str | None = None) -> Mapping[int, Staged]:
    """Write a DataFrame's rows in one pass; the files of each window, by number. No column: all of window 0."""
    hidden = {number: mask_secret(target.to_json()) for number, target in targets.items()}
    write = _Writing(hidden, tuple(df.columns), column)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of versions of pandas, which no row passes through
        # named by their places: PySpark looks columns up by names, and takes dots in them for structs
        places = df.toDF(*(f"c{place}" for place in range(len(df.columns))))
        reports = places.mapInArrow(write, f"{REPORT} string")
    return _collected(text for (text,) in reports.collect())


def stage_by_writer(df: DataFrame, writer: DataFrameSinkWriter) -> int | None:
    """Have a writer stage a DataFrame, and count its rows in the same pass; None: Spark did not count them."""
    from pyspark.sql import Observation  # noqa: PLC0415 - only where Spark runs
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    written = Observation("streams rows written")
    writer.stage(df.observe(written, F.count(F.lit(1)).alias("rows")))
    rows = observed(written).get("rows")
    return None if rows is None else int(rows)


def arrow_schema(df: DataFrame) -> pa.Schema:
    """The columns of a DataFrame in Arrow.

    Raises:
        UnfitColumn: one is of a type that no data file holds.
    """
    for one in df.schema:
        if unfit := _unfit(one.dataType):
            raise UnfitColumn(f"no data file holds the column `{one.name}` of the type {unfit}")
    return arrow_columns(df.schema)


class UnfitColumn(Exception):
    """A column of a type that data files do not have."""


def _unfit(kind: DataType) -> str | None:
    """The first type inside a column's that only Spark has, and no table."""
    inner: list[DataType] = []
    match kind:
        case StructType():
            inner = [one.dataType for one in kind]
        case ArrayType():
            inner = [kind.elementType]
        case MapType():
            inner = [kind.keyType, kind.valueType]
        case AtomicType() if not isinstance(kind, _ONLY_SPARKS):
            return None
        case _:
            return kind.simpleString()
    return next(filter(None, map(_unfit, inner)), None)


_ONLY_SPARKS = (AnsiIntervalType, VariantType, SpatialType)


def _collected(reports: Iterable[str]) -> Mapping[int, Staged]:
    found: dict[int, Staged] = defaultdict(Staged)
    for text in reports:
        told = json.loads(text)
        found[told["window"]].add(told)
    return found


@dataclass(frozen=True)
class _Writing:
    """What a task does with a transform's rows."""

    targets: Mapping[int, str] = field(repr=False)
    names: tuple[str, ...]
    """Of the rows' columns."""
    column: str | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            reports = self._write(batches)
        except StreamsError as error:
            raise one_line(error) from None
        yield pa.record_batch({REPORT: pa.array(reports, pa.string())})

    def _write(self, batches: Iterable[pa.RecordBatch]) -> list[str]:
        files: dict[int, WindowFiles] = {}
        with ExitStack() as stack:
            for batch in batches:
                for number, rows in self._by_window(batch.rename_columns(list(self.names))):
                    if number not in files:
                        target = FileTarget.from_json(unmask_secret(self.targets[number]))
                        files[number] = stack.enter_context(closing(WindowFiles(target)))
                    files[number].write(rows)
            return [report(number, [], one.finish()) for number, one in files.items()]

    def _by_window(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        if self.column is None:
            yield 0, batch
            return
        numbers = batch.column(self.column)
        for number in pc.unique(numbers):
            yield number.as_py(), batch.filter(pc.equal(numbers, number))
