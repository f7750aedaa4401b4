"""The PySpark Data Sources: `format("pulsar")`, `format("pravega")`, ..: one generic class, one name per system.

The window is resolved once per `load()`, when the source is built on the driver's side; every later step only parses
that plan. There is no filter pushdown on purpose: PySpark 4.1 to 4.3 share a pushed filter between unrelated scans.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from airflow_provider_streams.errors import InvalidRequest, StreamsError
from airflow_provider_streams.model.plan import Plan, Split
from airflow_provider_streams.model.receipt import SplitReceipt, check_split
from airflow_provider_streams.spark.failures import one_line
from airflow_provider_streams.spark.manner import Manner
from airflow_provider_streams.spark.options import RECEIPT_COLUMN, ReadOptions
from airflow_provider_streams.spark.split_reading import open_split, schema_of
from airflow_provider_streams.spark.worker_memory import keep_imports
from airflow_provider_streams.systems.base import StreamSystem
from airflow_provider_streams.systems.registry import load_system, path_of, register


class StreamDataSource(DataSource):
    """Reads one plan of one system; its subclasses name it."""

    system: ClassVar[str]
    declaration: ClassVar[str]

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        try:
            register(self.system, self.declaration)
            self._reading = _Reading.of(load_system(self.system), options)
            keep_imports()
        except StreamsError as error:
            raise one_line(error) from None

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return cls.system

    def schema(self) -> StructType:
        """The asked columns, and `_receipt` on request."""
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


@dataclass(frozen=True)
class SplitPartition(InputPartition):
    """One split: all that a task needs besides what all tasks share."""

    split: Split


@dataclass(frozen=True)
class _Reading:
    """What all tasks of one `load()` share."""

    system: type[StreamSystem]
    options: ReadOptions
    plan: Plan
    schema: pa.Schema
    manner: Manner
    declaration: str
    """Where the system is declared: a task's process has not heard of it."""

    @classmethod
    def of(cls, system: type[StreamSystem], given: Mapping[str, str]) -> _Reading:
        options = ReadOptions.parse(system, given)
        with closing(system.from_options(options.system)) as connected:
            plan = options.plan(connected)
            schema = schema_of(connected, plan, options.columns)
            if options.receipt:
                schema = schema.append(pa.field(RECEIPT_COLUMN, pa.string()))
            return cls(system, options, plan, schema, options.manner, path_of(system.name))


class PlanReader(DataSourceReader):
    """Spreads a plan's splits over tasks; a task reads one."""

    def __init__(self, reading: _Reading) -> None:
        self._reading = reading

    def __getstate__(self) -> dict[str, object]:
        """A task gets its own split only: thousands of others would be sent with each."""
        plan = self._reading.plan
        return {"_reading": replace(self._reading, plan=replace(plan, splits=(), ranges=()))}

    def partitions(self) -> list[SplitPartition]:
        """One per split; nothing is asked of the system here, for Spark may call it several times."""
        keep_imports()
        return [SplitPartition(split) for split in self._reading.plan.splits]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """The split's batches; then its receipt, as a row or checked here."""
        # Spark makes a partition of nothing out of an empty list: None, or an `InputPartition` (4.2)
        if isinstance(partition, SplitPartition):
            try:
                yield from self._read(partition.split)
            except StreamsError as error:
                raise one_line(error) from None  # the last line that runs here: Spark shows it as the error's place

    def _read(self, split: Split) -> Iterator[pa.RecordBatch]:
        reading, options = self._reading, self._reading.options
        register(reading.system.name, reading.declaration)
        keep_imports()
        with closing(reading.system.from_options(options.system)) as system:
            receipts = _Receipts(system, one_split(reading.plan, split), reading.manner)
            for batch in receipts.read():
                yield (
                    batch.append_column(reading.schema.field(RECEIPT_COLUMN), pa.nulls(len(batch), pa.string()))
                    if options.receipt
                    else batch
                )
            if options.receipt:
                yield _receipt_row(reading.schema, replace(receipts.receipt, index=split.index))
            else:
                receipts.check()


class _Receipts:
    """Reads a plan of one split, and judges it when nobody else will."""

    def __init__(self, system: StreamSystem, plan: Plan, manner: Manner) -> None:
        self._system, self._plan, self._manner = system, plan, manner
        self.receipt = SplitReceipt(0)

    def read(self) -> Iterator[pa.RecordBatch]:
        reader = open_split(self._system, self._plan, self._plan.splits[0], self._manner)
        try:
            yield from reader
            self.receipt = reader.receipt
        finally:
            reader.close()

    def check(self) -> None:
        (explained,) = self._system.explain(self._plan, [self.receipt], on_loss=self._manner.on_loss)
        check_split(self._plan, self._plan.splits[0], explained)


def one_split(plan: Plan, split: Split) -> Plan:
    """The plan of one split alone, renumbered to 0."""
    losses = tuple(loss for loss in plan.losses if loss.shard == split.shard)
    return replace(plan, splits=(replace(split, index=0),), ranges=(), losses=losses)


def _receipt_row(schema: pa.Schema, receipt: SplitReceipt) -> pa.RecordBatch:
    nulls = [pa.nulls(1, column.type) for column in schema][:-1]
    text = pa.array([json.dumps(receipt.to_json())], pa.string())
    return pa.RecordBatch.from_arrays([*nulls, text], schema=schema)


def data_source(system: str) -> type[StreamDataSource]:
    """The Data Source of a system. It brings along where the system is declared: Spark pickles the class itself.

    Raises:
        InvalidRequest: no such system.
    """
    named = {"system": system, "declaration": path_of(system)}
    return type(f"{system.title()}DataSource", (StreamDataSource,), named)
