"""The PySpark Data Sources: `format("pulsar")`, `format("pravega")`, ..: one generic class, one name per system.

The window is resolved once per `load()`, when the source is built on the driver's side. Every later step only parses
that plan. There is no filter pushdown on purpose: PySpark 4.1 to 4.3 share a pushed filter between unrelated scans.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import ClassVar, NoReturn

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from airflow_provider_streams.errors import InvalidRequest, StreamsError
from airflow_provider_streams.model.plan.plan import Plan, Split
from airflow_provider_streams.model.plan.receipt import SplitReceipt, check_split
from airflow_provider_streams.spark.datasource.option_names import for_options
from airflow_provider_streams.spark.datasource.options import RECEIPT_COLUMN, ReadOptions
from airflow_provider_streams.spark.datasource.split_reading import open_split, schema_of
from airflow_provider_streams.spark.datasource.task_splits import TaskSystem, one_split
from airflow_provider_streams.spark.datasource.worker_memory import keep_imports
from airflow_provider_streams.systems.base import StreamSystem
from airflow_provider_streams.systems.registry import load_system, path_of, register


class StreamDataSource(DataSource):
    """Reads one plan of one system; its subclasses name the system."""

    system: ClassVar[str]
    declaration: ClassVar[str]

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        try:
            register(self.system, self.declaration)
            self._reading = _Reading.of(load_system(self.system), options)
            keep_imports()
        except StreamsError as error:
            raise for_options(error) from None  # Spark shows this line as the error's place

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return cls.system

    def schema(self) -> StructType:
        """The requested columns, and `_receipt` on request."""
        return from_arrow_schema(self._reading.schema)

    def reader(self, schema: StructType) -> PlanReader:
        """A reader of the plan, for exactly the source's own schema."""
        own = self.schema()
        if [(one.name, one.dataType) for one in schema] != [(one.name, one.dataType) for one in own]:
            raise InvalidRequest(
                f"format {self.system!r} decides its own schema, {own.simpleString()}: leave .schema(..) out, "
                "choose with option 'columns', and cast afterwards"
            )
        return PlanReader(self._reading)

    def streamReader(self, schema: StructType) -> NoReturn:  # noqa: N802, ARG002 - Spark's name for it
        """Refused: a window ends."""
        raise InvalidRequest(f"format {self.system!r} reads what is in the stream now: use spark.read, not readStream")

    def writer(self, schema: StructType, overwrite: bool) -> NoReturn:  # noqa: ARG002, FBT001 - Spark's own method
        """Refused: it only reads."""
        raise InvalidRequest(f"format {self.system!r} only reads: it cannot be written to")


@dataclass(frozen=True)
class SplitPartition(InputPartition):
    """One split: all that a task needs in addition to what all tasks share."""

    split: Split


@dataclass(frozen=True)
class _Reading:
    """What all tasks of one `load()` share."""

    system: TaskSystem
    options: ReadOptions
    plan: Plan
    schema: pa.Schema

    @classmethod
    def of(cls, system: type[StreamSystem], given: Mapping[str, str]) -> _Reading:
        options = ReadOptions.parse(system, given)
        _ = options.split_read_options  # refuses what tasks would refuse
        with closing(system.from_options(options.system)) as connected:
            plan = options.plan(connected)
            schema = schema_of(connected, plan, options.columns)
        if options.receipt:
            schema = schema.append(pa.field(RECEIPT_COLUMN, pa.string()))
        return cls(TaskSystem.of(system.name, options.system), options, plan, schema)


class PlanReader(DataSourceReader):
    """Spreads a plan's splits over tasks; a task reads one."""

    def __init__(self, reading: _Reading) -> None:
        self._reading = reading

    def __getstate__(self) -> dict[str, object]:
        """A task gets its own split only: thousands of others would be sent with each."""
        plan = self._reading.plan
        return {"_reading": replace(self._reading, plan=replace(plan, splits=(), ranges=()))}

    def partitions(self) -> list[SplitPartition]:
        """One per split. Asks the system nothing, for Spark may call this several times."""
        keep_imports()
        return [SplitPartition(split) for split in self._reading.plan.splits]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """The split's batches; then its receipt, as a row or checked here."""
        # for an empty list of partitions, Spark calls this once with None, or an `InputPartition` (4.2)
        if isinstance(partition, SplitPartition):
            try:
                yield from self._read(partition.split)
            except StreamsError as error:
                raise for_options(error) from None  # Spark shows this line as the error's place

    def _read(self, split: Split) -> Iterator[pa.RecordBatch]:
        schema, options, how = self._reading.schema, self._reading.options, self._reading.options.split_read_options
        plan = one_split(self._reading.plan, split)
        with self._reading.system.opened() as system:
            with closing(open_split(system, plan, plan.splits[0], how)) as reader:
                for batch in reader:
                    yield (
                        batch.append_column(schema.field(RECEIPT_COLUMN), pa.nulls(len(batch), pa.string()))
                        if options.receipt
                        else batch
                    )
                receipt = reader.receipt
            if options.receipt:
                yield _receipt_row(schema, replace(receipt, index=split.index))
            else:
                (explained,) = system.explain(plan, [receipt], on_loss=how.on_loss)
                check_split(plan, plan.splits[0], explained)


def _receipt_row(schema: pa.Schema, receipt: SplitReceipt) -> pa.RecordBatch:
    nulls = [pa.nulls(1, column.type) for column in schema][:-1]
    text = pa.array([json.dumps(receipt.to_json())], pa.string())
    return pa.RecordBatch.from_arrays([*nulls, text], schema=schema)


def data_source(system: str) -> type[StreamDataSource]:
    """The Data Source of a system. It carries the system's declaration, for Spark pickles the class itself."""
    named = {"system": system, "declaration": path_of(system)}
    return type(f"{system.title()}DataSource", (StreamDataSource,), named)
