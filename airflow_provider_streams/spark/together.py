"""One pass over the windows of a chunk: read and written together, each proven and put in place on its own."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.lake.files import FileTarget
from airflow_provider_streams.lake.writer import TableWriter
from airflow_provider_streams.model.landing import Landed, Schema
from airflow_provider_streams.model.patience import Patience
from airflow_provider_streams.model.receipt import compare
from airflow_provider_streams.spark import ending, failures, job, preflight, reading, sinks, staging
from airflow_provider_streams.spark.batch_reading import (
    WINDOWS_AT_ONCE,
    Read,
    SourceRead,
    TableRead,
    TablesRead,
)
from airflow_provider_streams.spark.batch_spec import ChunkSpec, concerns_all, table_of
from airflow_provider_streams.spark.split_tasks import Staged
from airflow_provider_streams.spark.type_names import spark_names
from airflow_provider_streams.spark.windows_source import NUMBER_COLUMN
from airflow_provider_streams.systems.registry import load_system

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_streams.systems.base import StreamSystem

_log = logging.getLogger(__name__)

Found = Landed | Exception
"""What became of a window, before it is told."""


class Together:
    """One pass.

    Args:
        chunk: the windows.
        spark: the session.
        patience: with what does not answer.
    """

    def __init__(self, chunk: ChunkSpec, spark: SparkSession, patience: Patience) -> None:
        self._spark, self._patience, self._started = spark, patience, time.monotonic()
        self._writers: dict[int, TableWriter] = {
            number: sinks.writer_of(spec.sink, spec.plan.window, spec.terms)  # type: ignore[misc]  # see `batch_job`
            for number, spec in enumerate(chunk.specs)
            if spec.sink is not None and spec.terms is not None
        }
        self._chunk = chunk
        self._found: dict[int, Found] = {}

    def run(self) -> list[Found]:
        """What became of each window, in order."""
        try:
            specs = [sinks.with_quarantine(spec, self._writers.get(n)) for n, spec in enumerate(self._chunk.specs)]
            self._chunk = replace(self._chunk, specs=tuple(specs))
            if self._chunk.how.sink is not None and self._chunk.transform is None:
                self._directly()
            else:
                self._through_spark()
            return [self._found[number] for number in range(len(self._chunk.specs))]
        finally:
            for writer in self._writers.values():
                writer.discard()

    def _directly(self) -> None:
        """Whoever reads the rows writes them: they never cross into Spark."""
        if not self._chunk.is_small:
            return self._by_tasks()
        try:
            read = TablesRead(self._chunk, self._patience)
        except reading.TooLarge:
            self._leave_to_tasks()
            return self._by_tasks()
        self._found |= read.failed
        rows = self._row_schemas(list(read.tables))
        staged: dict[int, Staged] = {}

        def write(number: int) -> None:
            files = staging.write_table(read.tables[number], self._writers[number].open(rows[number]))
            staged[number] = Staged(read.receipts[number], files)

        self._each(rows, write)
        self._prove(staged, rows)
        return None

    def _by_tasks(self) -> None:
        rows = self._row_schemas(range(len(self._chunk.specs)))
        targets = self._opened(rows)
        numbers = list(targets)
        if not numbers:
            return
        specs = tuple(self._chunk.specs[number] for number in numbers)
        found = staging.stage_by_tasks(
            specs, {place: targets[number] for place, number in enumerate(numbers)}, self._spark
        )
        self._prove({number: found[place] for place, number in enumerate(numbers)}, rows)

    def _through_spark(self) -> None:
        read = self._read()
        self._found |= read.failed
        numbers = [number for number in range(len(self._chunk.specs)) if number not in read.failed]
        if numbers:
            self._land(read, numbers)

    def _leave_to_tasks(self) -> None:
        _log.info("the rows are too many for this process: Spark's tasks read them")
        preflight.check_workers(self._spark)

    def _read(self) -> Read:
        if self._chunk.is_small:
            try:
                return TableRead(self._chunk, self._spark, self._patience)
            except reading.TooLarge:
                if self._chunk.transform is not None:
                    raise
                self._leave_to_tasks()
        return SourceRead(self._chunk, self._spark)

    def _land(self, read: Read, numbers: Sequence[int]) -> None:
        if self._chunk.how.sink is None:
            if not isinstance(read, TableRead):
                read.df.write.format("noop").mode("overwrite").save()
            receipts = read.receipts()
            self._prove({number: Staged(receipts[number]) for number in numbers}, {})
            return
        df = read.df.drop(NUMBER_COLUMN)
        for number in numbers:
            job.schema_of(self._chunk.specs[number], df)
        rows = dict.fromkeys(numbers, job.arrow_schema(self._chunk.how, df))
        targets = self._opened(rows)
        if not targets:
            return
        files = staging.stage_frame(_only(read.df, targets, numbers), targets, NUMBER_COLUMN)
        receipts = read.receipts()
        staged = {number: Staged(receipts[number], files[number].files) for number in targets}
        self._prove(staged, rows, job.schema_of(self._chunk.how, df))

    # Each window on its own

    def _row_schemas(self, numbers: Iterable[int]) -> dict[int, pa.Schema]:
        """The columns of each window's rows, where its table can take them."""
        known: dict[str, pa.Schema] = {}
        found: dict[int, pa.Schema] = {}
        for number in numbers:
            spec = self._chunk.specs[number]
            decoded = str(spec.plan.decoding)
            try:
                known[decoded] = known[decoded] if decoded in known else job.row_schema(spec)
                job.check_schema(spec, spark_names(known[decoded]))
            except StreamsError as error:
                self._fail(number, error)
            else:
                found[number] = known[decoded]
        return found

    def _opened(self, rows: Mapping[int, pa.Schema]) -> dict[int, FileTarget]:
        """Where the files of each window go."""
        found: dict[int, FileTarget] = {}

        def open_one(number: int) -> None:
            found[number] = self._writers[number].open(rows[number])

        self._each(rows, open_one)
        return {number: found[number] for number in rows if number in found}

    def _each(self, numbers: Iterable[int], act: Callable[[int], None]) -> None:
        """Prepare each window; those of different tables side by side. What fails is judged by `_fail`."""

        def act_on(some: Sequence[int]) -> None:
            for number in some:
                ending.check()
                if self._patience.over:
                    self._found[number] = self._patience.over
                    continue
                try:
                    act(number)
                except Exception as error:  # noqa: BLE001 - it is judged
                    self._fail(number, error)

        self._by_table(numbers, act_on)

    def _by_table(self, numbers: Iterable[int], act: Callable[[Sequence[int]], None]) -> None:
        tables: dict[str, list[int]] = {}
        for number in numbers:
            tables.setdefault(table_of(self._chunk.specs[number]), []).append(number)
        pool = ThreadPoolExecutor(min(WINDOWS_AT_ONCE, len(tables)) or 1, thread_name_prefix="streams-table")
        try:
            list(pool.map(act, tables.values()))
        finally:
            pool.shutdown(cancel_futures=True)

    def _fail(self, number: int, error: Exception) -> None:
        """A window that cannot be prepared: of one table among several, that is its own matter; else it is raised."""
        known = failures.typed(error, self._chunk.how.hidden)
        if not self._patience.several or concerns_all(known, several_tables=True):
            raise error
        self._patience.note(known)
        self._found[number] = known if isinstance(known, StreamsError) else error

    def _prove(self, staged: Mapping[int, Staged], rows: Mapping[int, pa.Schema], schema: Schema | None = None) -> None:
        """Each window on its own: its receipt agrees and its rows are in place, or it failed.

        Args:
            staged: what was read and written of each.
            rows: the columns of each, where they are not those of a transform.
            schema: those.
        """

        def prove(some: Sequence[int]) -> None:
            with closing(self._system()) as system:
                for number in some:
                    ending.check()
                    named = schema or (spark_names(rows[number]) if number in rows else None)
                    self._found[number] = self._proven(system, number, staged[number], named)

        self._by_table(staged, prove)

    def _system(self) -> StreamSystem:
        return load_system(self._chunk.how.plan.source.system).from_options(self._chunk.how.options)

    def _proven(self, system: StreamSystem, number: int, one: Staged, schema: Schema | None) -> Landed | StreamsError:
        spec = self._chunk.specs[number]
        try:
            explained = system.explain(spec.plan, one.receipts, on_loss=spec.on_loss)
            receipt = compare(spec.plan, explained, seconds=time.monotonic() - self._started)
            spec.undecodable.check(spec.plan, receipt)
            if number not in self._writers:
                return Landed(receipt, None, schema)
            job.commit(spec, one, self._writers[number], receipt)
        except StreamsError as error:
            return error
        return Landed(receipt, one.rows, schema)


def _only(df: DataFrame, wanted: Collection[int], there: Collection[int]) -> DataFrame:
    """The rows of the windows that can be written."""
    return df if len(wanted) == len(there) else df.filter(df[NUMBER_COLUMN].isin(list(wanted)))
