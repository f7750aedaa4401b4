"""One pass over windows of a job: read and written together, each proven and committed on its own."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from airflow_provider_streams.errors import InvalidRequest, StreamsError, foreseen
from airflow_provider_streams.lake.data_files import FileTarget
from airflow_provider_streams.lake.registry import writer_of
from airflow_provider_streams.lake.writer import TableWriter, Writer
from airflow_provider_streams.model.circuit_breaker import CircuitBreaker
from airflow_provider_streams.model.plan.receipt import SplitReceipt, compare
from airflow_provider_streams.model.sinks.landing import Landed, Schema
from airflow_provider_streams.spark import error_transport
from airflow_provider_streams.spark.datasource.task_splits import shares_of
from airflow_provider_streams.spark.datasource.windows_source import NUMBER_COLUMN
from airflow_provider_streams.spark.job import commit_checks, plan_reading, staging
from airflow_provider_streams.spark.job.concurrency import side_by_side
from airflow_provider_streams.spark.job.file_writing_tasks import Staged
from airflow_provider_streams.spark.job.job_spec import JobSpec, WindowSpec, table_of
from airflow_provider_streams.spark.job.open_systems import OpenSystems
from airflow_provider_streams.spark.job.outcomes import is_fatal_for_all
from airflow_provider_streams.spark.job.plan_reading import TablesRead
from airflow_provider_streams.spark.job.progress_log import TaskProgress, watched
from airflow_provider_streams.spark.job.scan import Scan
from airflow_provider_streams.spark.job.transforms import Transform
from airflow_provider_streams.spark.launch import cancellation, preflight
from airflow_provider_streams.spark.type_names import spark_names
from airflow_provider_streams.systems.base import StreamSystem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_log = logging.getLogger(__name__)

Receipts = Callable[[], Mapping[int, list[SplitReceipt]]]
"""The receipts of each window's splits, after the first action on a DataFrame has ended."""

Found = Landed | Exception
"""What became of a window."""


class JobPass:
    """One pass.

    Args:
        job: the windows; only one, if the sink's writer takes a DataFrame, or Spark's tasks read for a transform.
        spark: the session.
        systems: of the windows' connection.
        circuit_breaker: ends the pass when several sources or tables do not answer.
        touching: called with each window just before its table changes.
    """

    def __init__(
        self,
        job: JobSpec,
        spark: SparkSession,
        systems: OpenSystems,
        circuit_breaker: CircuitBreaker,
        touching: Callable[[WindowSpec], None],
    ) -> None:
        self._touching = touching
        self._job, self._spark, self._systems, self._circuit_breaker = job, spark, systems, circuit_breaker
        self._started = time.monotonic()
        self._writers: dict[int, Writer] = {
            number: writer_of(spec.sink)(spec.sink, spec.plan.window, spec.terms)
            for number, spec in enumerate(job.specs)
            if spec.sink is not None and spec.terms is not None
        }
        self._found: dict[int, Found] = {}

    def run(self) -> list[Found]:
        """What became of each window, in order.

        Raises:
            TooLarge: the rows of several windows do not fit, and a transform is to see each.
            SparkSettingsChanged: see there.
            StreamsError: no window's own.
        """
        try:
            specs = [
                commit_checks.with_quarantine(spec, self._writers.get(n)) for n, spec in enumerate(self._job.specs)
            ]
            self._job = replace(self._job, specs=tuple(specs))
            self._read_and_land()
            return [self._found[number] for number in range(len(self._job.specs))]
        finally:
            for writer in self._writers.values():
                writer.discard()

    def _read_and_land(self) -> None:
        read = self._read_here()
        if not self._job.how.is_direct and (self._job.transform or self._job.how.sink or read is None):
            self._through_spark(read)
        elif read is None:
            self._by_tasks()
        elif self._job.how.sink is None:
            self._prove({number: Staged(receipts) for number, receipts in read.receipts.items()}, {})
        else:
            self._write_here(read)

    # Reading and writing

    def _read_here(self) -> TablesRead | None:
        """Read in this process; None: Spark's tasks read."""
        if not self._job.is_small:
            return None
        try:
            read = TablesRead(self._job.specs, self._systems, self._circuit_breaker)
        except plan_reading.TooLarge:
            if self._job.transform and not self._job.is_single:
                raise
            _log.info("the rows exceed %d bytes: Spark's tasks read them", plan_reading.MOST_BYTES)
            preflight.check_workers(self._spark)
            return None
        self._found |= read.failed
        return read

    def _write_here(self, read: TablesRead) -> None:
        """This process writes the rows that it read: they never cross into Spark."""
        rows = self._row_schemas(list(read.tables))
        staged: dict[int, Staged] = {}

        def write(number: int) -> None:
            files = staging.write_table(read.tables[number], self._target(number, rows[number]))
            staged[number] = Staged(read.receipts[number], files)

        self._each(rows, write)
        self._prove(staged, rows)

    def _by_tasks(self) -> None:
        """As `_write_here`, where Spark's tasks read."""
        rows = self._row_schemas(range(len(self._job.specs)))
        targets = self._opened(rows)
        numbers = list(targets)
        if not numbers:
            return
        specs = tuple(self._job.specs[number] for number in numbers)
        self._systems.close()
        found = staging.stage_by_tasks(
            specs, {place: targets[number] for place, number in enumerate(numbers)}, self._spark
        )
        self._prove({number: found[place] for place, number in enumerate(numbers)}, rows)

    def _through_spark(self, read: TablesRead | None) -> None:
        """Rows cross into Spark: for a transform, for a writer of DataFrames, or if only tasks can read them."""
        if read is None:
            scan = Scan(self._job.specs, self._spark)
            shares = shares_of((spec.plan, spec.quarantine) for spec in self._job.specs)
            with watched(self._spark, TaskProgress(shares)):
                self._land(self._scanned(scan), scan.receipts, range(len(self._job.specs)))
        elif read.tables:
            df = plan_reading.frame_of_tables(self._job, read.tables, self._spark)
            self._land(df, lambda: read.receipts, list(read.tables))

    def _scanned(self, scan: Scan) -> DataFrame:
        if not self._job.is_single:
            return scan.df
        df = scan.df.drop(NUMBER_COLUMN)
        if self._job.transform:
            df = Transform(self._job.transform, self._job.how)(df)
        if scan.is_over:
            raise InvalidRequest(
                "the transform ran a Spark action (count, collect, write, ..), so the stream would be read twice and "
                "only the first pass be proven: return a DataFrame and leave the action to the sink"
            )
        return df

    def _land(self, df: DataFrame, receipts: Receipts, numbers: Sequence[int]) -> None:
        """Run the one Spark action on a DataFrame, after which there are receipts."""
        self._systems.close()
        writer = next(iter(self._writers.values()), None)
        if writer is None:
            df.write.format("noop").mode("overwrite").save()
            self._prove({number: Staged(receipts()[number]) for number in numbers}, {})
        elif isinstance(writer, TableWriter):
            self._land_files(df, receipts, numbers)
        else:
            schema = commit_checks.schema_of(self._job.how, df, self._systems)
            handed = staging.stage_by_writer(df, writer)
            self._prove({0: Staged(receipts()[0], handed=handed)}, {}, schema)

    def _land_files(self, df: DataFrame, receipts: Receipts, numbers: Sequence[int]) -> None:
        column = None if self._job.is_single else NUMBER_COLUMN
        named = df if column is None else df.drop(column)
        schemas = [commit_checks.schema_of(self._job.specs[number], named, self._systems) for number in numbers]
        rows = dict.fromkeys(numbers, commit_checks.arrow_schema(self._job.how, named))
        targets = self._opened(rows)
        if not targets:
            return
        files = staging.stage_frame(_only(df, targets, numbers), targets, column)
        known = receipts()
        self._prove({number: Staged(known[number], files[number].files) for number in targets}, rows, schemas[0])

    # Each window on its own

    def _row_schemas(self, numbers: Iterable[int]) -> dict[int, pa.Schema]:
        """The columns of each window's rows, where its table can take them."""
        known: dict[str, pa.Schema] = {}
        found: dict[int, pa.Schema] = {}
        for number in numbers:
            spec = self._job.specs[number]
            decoded = str(spec.plan.decoding)
            try:
                known[decoded] = known[decoded] if decoded in known else self._systems.schema_of(spec)
                commit_checks.check_schema(spec, spark_names(known[decoded]), self._systems)
            except StreamsError as error:
                self._fail(number, error)
            else:
                found[number] = known[decoded]
        return found

    def _target(self, number: int, rows: pa.Schema) -> FileTarget:
        writer = self._writers[number]
        assert isinstance(writer, TableWriter)  # noqa: S101 - others take a DataFrame
        with foreseen() if self._job.transform is None else nullcontext():  # doctor knows no transform's rows
            return writer.open(rows)

    def _opened(self, rows: Mapping[int, pa.Schema]) -> dict[int, FileTarget]:
        """Where the files of each window go."""
        found: dict[int, FileTarget] = {}

        def open_one(number: int) -> None:
            found[number] = self._target(number, rows[number])

        self._each(rows, open_one)
        return {number: found[number] for number in rows if number in found}

    def _each(self, numbers: Iterable[int], act: Callable[[int], None]) -> None:
        """Prepare each window; those of different tables side by side. `_fail` judges failures."""

        def act_on(some: Sequence[int]) -> None:
            for number in some:
                cancellation.check()
                if self._circuit_breaker.over:
                    self._found[number] = self._circuit_breaker.over
                    continue
                try:
                    act(number)
                except Exception as error:  # noqa: BLE001 - it is judged
                    self._fail(number, error)

        self._by_table(numbers, act_on)

    def _by_table(self, numbers: Iterable[int], act: Callable[[Sequence[int]], None]) -> None:
        tables: dict[str, list[int]] = {}
        for number in numbers:
            tables.setdefault(table_of(self._job.specs[number]), []).append(number)
        with side_by_side(act, tables.values(), "streams-table") as each:
            list(each)

    def _fail(self, number: int, error: Exception) -> None:
        """A window cannot be prepared: of one table among several, it fails alone; else the error is raised."""
        known = error_transport.typed(error, self._job.how.hidden)
        if not self._circuit_breaker.several or is_fatal_for_all(known, several_tables=True):
            raise error
        self._circuit_breaker.note(known)
        self._found[number] = known if isinstance(known, StreamsError) else error

    def _prove(self, staged: Mapping[int, Staged], rows: Mapping[int, pa.Schema], schema: Schema | None = None) -> None:
        """Prove and commit each window on its own.

        Args:
            staged: what was read and written of each.
            rows: the columns of each, unless they come from a DataFrame.
            schema: the columns of the DataFrame.
        """

        def prove(some: Sequence[int]) -> None:
            with self._systems.one() as system:
                for number in some:
                    cancellation.check()
                    named = schema or (spark_names(rows[number]) if number in rows else None)
                    self._found[number] = self._proven(system, number, staged[number], named)

        self._by_table(staged, prove)

    def _proven(self, system: StreamSystem, number: int, one: Staged, schema: Schema | None) -> Landed | StreamsError:
        """Commit a window once every gap is explained and every count agrees."""
        spec = self._job.specs[number]
        try:
            explained = system.explain(spec.plan, one.receipts, on_loss=spec.on_loss)
            receipt = compare(spec.plan, explained, seconds=time.monotonic() - self._started)
            spec.undecodable.check(spec.plan, receipt)
            if number not in self._writers:
                return Landed(receipt, None, schema)
            written = commit_checks.commit(spec, one, self._writers[number], receipt, partial(self._touching, spec))
        except StreamsError as error:
            self._circuit_breaker.note(error)
            return error
        return Landed(receipt, written, schema)


def _only(df: DataFrame, wanted: Collection[int], there: Collection[int]) -> DataFrame:
    """The rows of the windows that can be written."""
    return df if len(wanted) == len(there) else df.filter(df[NUMBER_COLUMN].isin(list(wanted)))
